"""Tags are read as the runtimes' routine reads them."""

from __future__ import annotations

import tracemalloc
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colsynth.runtimes.numbers import is_plain, read_int
from colsynth.runtimes.rules import Findings
from colsynth.runtimes.scanner import CLOSE, OPEN, SINGLE, Scanner
from tests.watchdog import at_most


def scan(text):
    """Return (kind, name, attributes) of every tag, and the rules broken."""
    findings = Findings("rccl")
    scanner = Scanner(text, findings)
    tags = []
    while (tag := scanner.tag()) is not None:
        tags.append((tag.kind, tag.name, tag.attributes))
    return tags, [finding.rule for finding in findings.all()]


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ('<a x="1" y="">', [(OPEN, "a", {"x": "1", "y": ""})]),
        ('<a x="1"/>\r\n </a>', [(SINGLE, "a", {"x": "1"}), (CLOSE, "a", {})]),
        ("<a/><!-- x = 1 > -->\n<b>", [(SINGLE, "a", {}), (OPEN, "b", {})]),
        ("<!--x--><a>", [(OPEN, "a", {})]),
        ("<!--a/b--><a>", [(OPEN, "a", {})]),
        ('<a x="1>2">', [(OPEN, "a", {"x": "1>2"})]),
        ("", []),
        (" \n\r ", []),
    ],
)
def test_what_the_routine_takes(text, tags):
    assert scan(text) == (tags, [])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("\ufeff<a>".encode().decode("latin-1"), "X01"),
        ('<?xml version="1.0" ?><a>', "X01"),
        ("<![CDATA[x]]><a>", "X01"),
        ("\t<a>", "X03"),
        ("word<a>", "X03"),
        ('<a\tx="1">', "X03"),
        ('<a x="1"\t>', "X03"),
        ("<a \n>", "X04"),
        ("<a\n>", "X04"),
        ("<a / >", "X04"),
        ("<a x>", "X04"),
        ('<a x= "1">', "X05"),
        ("<a x=1>", "X05"),
        ('<a x="1"y="2">', "X04"),
        ("</a >", "X04"),
        ("<a=b>", "X04"),
        ('<a x="1', "X05"),
        ("<a", "X04"),
        ("<!-- never closed", "X04"),
        ('<a x="' + "v" * 256 + '">', "X05"),
        ("<" + "n" * 254 + ">", "X06"),
        ('<a x="a\nb">', "X04"),
    ],
)
def test_what_the_routine_does_not_take(text, rule):
    assert scan(text)[1] == [rule]


def test_faults_do_not_hide_what_follows():
    text = "<?xml version='1.0'?>\n<a x='1'\ty=\"2\">\t<b></b>\n</a>"
    tags, rules = scan(text)
    assert [(kind, name) for kind, name, _ in tags] == [
        (OPEN, "a"),
        (OPEN, "b"),
        (CLOSE, "b"),
        (CLOSE, "a"),
    ]
    assert tags[0][2] == {"x": "1", "y": "2"}
    assert sorted(rules) == ["X01", "X03", "X05"]


def test_attributes_of_which_the_first_sixteen_count():
    inside = " ".join(f'k{n}="{n}"' for n in range(16))
    assert scan(f"<a {inside}>")[1] == []
    assert scan(f"<a {inside} />")[1] == ["X07"]


def test_the_first_of_equal_attributes_counts():
    tags, rules = scan('<a x="1" x="2">')
    assert tags[0][2] == {"x": "1"}
    assert rules == ["X08"]


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("<>/=\"' \n\tab!-?x1")))
def test_any_text_comes_to_an_end(text):
    tags, _ = scan(text)
    assert len(tags) <= len(text)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z]{1,5}", fullmatch=True),
            st.dictionaries(
                st.from_regex(r"[a-z]{1,5}", fullmatch=True),
                st.from_regex(r"[a-z0-9 ()/=-]{0,9}", fullmatch=True),
                max_size=5,
            ),
        ),
        max_size=8,
    )
)
def test_tags_without_faults_mean_what_xml_means(elements):
    root = ET.Element("root")
    for name, attributes in elements:
        ET.SubElement(root, name, attributes)
    text = ET.tostring(root).decode().replace(" />", "/>")
    tags, rules = scan(text)
    if not elements:
        return
    assert rules == []
    assert [(name, attributes) for _, name, attributes in tags[1:-1]] == elements


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-1", -1),
        ("010", 8),
        ("0x10", 16),
        ("+5", 5),
        (" 7", 7),
        ("1e6", 1),
        ("12abc", 12),
        ("two", 0),
        ("", 0),
        ("08", 0),
        (str(2**31), -(2**31)),
        (str(2**32 + 3), 3),
    ],
)
def test_numbers_are_those_of_strtol(text, value):
    assert read_int(text) == value


@given(st.integers(-(2**31), 2**31 - 1))
def test_plain_numbers_are_themselves(number):
    assert is_plain(str(number))
    assert read_int(str(number)) == number


def test_wide_numbers_saturate():
    assert read_int(str(2**70), 64) == 2**63 - 1
    assert not is_plain("1.0")


ADVERSARIES = {
    "comments": "<!-- > ",
    "blanks": "<algo" + " " * 2000,
    "blanks before the end": "<a x = " + "\n" * 500,
    "attributes": '<a x="1" ',
    "one quote": '<a x="><',
    "both quotes": "<a y='\" k=\" z' x=\"><b c='\" d='>",
    "closing tags": "</ a",
    "words": "word < ",
    "newlines": "\n",
    "names": "<" + "a" * 300 + ">",
}


@pytest.mark.parametrize("part", ADVERSARIES.values(), ids=ADVERSARIES)
def test_scanning_takes_time_in_proportion_to_the_text(part):
    # Each of these took minutes or more where a pattern went back or a search began anew.
    with at_most(30):
        scan(part * (3_000_000 // len(part)))


def test_a_tag_of_a_million_attributes_is_counted_and_not_kept():
    text = "<a " + " ".join(f'x{i}="1"' for i in range(100_000)) + ">"
    tracemalloc.start()
    tags, rules = scan(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tags, rules) == ([], ["X07"])
    assert peak < 3 * len(text)


def test_lines_are_counted_however_far_apart():
    scanner = Scanner("\n" * 10_000 + "x" * 10_000 + "\n<a>", Findings("rccl"))
    assert [scanner.line(at) for at in (0, 1, 9_999, 10_000, 20_000, 20_001)] == [
        1,
        2,
        10_000,
        10_001,
        10_001,
        10_002,
    ]
