"""Text from outside: never a command to a terminal, never a list without end."""

import sys

import pytest

from colsynth.errors import Diagnostic, Span, did_you_mean
from colsynth.text import SHOWN, listed, printable


def test_nothing_that_a_terminal_executes_is_left():
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        spelt = printable(character)
        assert spelt.isprintable()
        assert (spelt == character) is character.isprintable()


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("\x1b[2J\x9b31m", r"\x1b[2J\x9b31m"),
        ("a\nb\tc", r"a\nb\tc"),
        ("exe\u202egnp", r"exe\u202egnp"),
        (b"\x9b31m".decode("utf-8", "surrogateescape"), r"\x9b31m"),
        ("Knoten-ä 機械", "Knoten-ä 機械"),
    ],
)
def test_control_characters_are_spelt_out(text, spelt):
    assert printable(text) == spelt


def test_every_part_of_a_diagnostic_is_printable():
    bad = "x\x1b]0;title\x07\n"
    lines = str(Diagnostic("CS100", bad, Span(bad, 1), (bad, bad), bad)).split("\n")
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("word", ["name7", "nothing like it", "x" * 10**6])
@pytest.mark.parametrize("count", [SHOWN, SHOWN + 1, 20_000])
def test_advice_is_short_however_many_words_are_valid(word, count):
    advice = did_you_mean(word, [f"name-{i}" * 10**3 for i in range(count)])
    assert len(advice) < 4000
    assert listed(map(str, range(count))).count(",") == SHOWN - 1
    near = "did you mean" in advice
    assert (f"and {count - SHOWN} more" in advice) is (count > SHOWN and not near)


def test_few_valid_words_are_all_named():
    assert did_you_mean("ringg", ["ring", "tree"]) == "did you mean 'ring'? valid: ring, tree"
    assert did_you_mean("?", ["ring", "tree"]) == "valid: ring, tree"
    assert did_you_mean("name7", [f"name{i}" for i in range(99)]) == "did you mean 'name7'?"
