"""Arithmetic in topology files: exact, with units, bounded."""

import operator
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colsynth import api
from colsynth.errors import Diagnostic, InputError, Span
from colsynth.topology import load
from colsynth.topology.document import parse_document
from colsynth.topology.expressions import MOST_CHARACTERS, Amount, evaluate
from colsynth.topology.load import read_topology

README = Path(__file__).parents[2] / "colsynth" / "guide" / "topologies.md"
UNITS = {
    "": Amount(1),
    "GB/s": Amount(10**9, bandwidth=1),
    "us": Amount(Fraction(1, 10**6), time=1),
}
VALUES = {"nic": Amount(Fraction(25 * 10**9), 1), "nic-latency": Amount(Fraction(1, 3), 0, 1)}


def unknown(name, span):
    raise AssertionError((name, span))


def value(text):
    return evaluate(text, VALUES, lambda at: Span("x", 1, at), unknown)


@st.composite
def formulas(draw, depth=3):
    """Return (text, its Amount), or None for the value where units or zero forbid it."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted(VALUES)))
            return draw(st.sampled_from(["", "$"])) + name, VALUES[name]
        number = draw(st.sampled_from(["3", "0.75", "12", "0", "1e3"]))
        unit = draw(st.sampled_from(sorted(UNITS)))
        one = UNITS[unit]
        text = f"{number} {unit}".strip()
        return text, Amount(Fraction(number) * one.value, one.bandwidth, one.time)
    (left, one), (right, two) = draw(formulas(depth - 1)), draw(formulas(depth - 1))
    sign = draw(st.sampled_from("+-*/"))
    return f"({left}) {sign} ({right})", joined(sign, one, two)


def joined(sign, one, two):
    if one is None or two is None:
        return None
    powers = (one.bandwidth, one.time), (two.bandwidth, two.time)
    if sign in "+-":
        change = {"+": operator.add, "-": operator.sub}[sign]
        same = powers[0] == powers[1]
        return Amount(change(one.value, two.value), *powers[0]) if same else None
    if sign == "*":
        return Amount(one.value * two.value, *map(sum, zip(*powers, strict=True)))
    if not two.value:
        return None
    return Amount(one.value / two.value, *(x - y for x, y in zip(*powers, strict=True)))


@given(formulas())
def test_values_are_exact_and_units_fit(formula):
    text, expected = formula
    if expected is None:
        with pytest.raises(InputError) as caught:
            value(text)
        assert caught.value.diagnostic.code == "CS138"
    elif len(text) <= MOST_CHARACTERS:
        assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "number"),
    [("2 + 3 * 4", 14), ("2 - 3 - 4", -5), ("8 / 4 / 2", 1), ("8/2*4", 16), ("(2+3)*4", 20)],
)
def test_products_bind_first_and_from_the_left(text, number):
    assert value(text) == Amount(Fraction(number))


@given(st.text(alphabet="nic-0123456789./*+()$ GBbsuKi\n\\eé²", max_size=250))
def test_any_text_has_a_value_or_one_diagnostic(text):
    try:
        evaluate(text, VALUES, lambda at: Span("x", 1, at), missing)
    except InputError as error:
        span = error.diagnostic.span
    else:
        span = Span("x", 1, 0)
    assert 0 <= span.column <= len(text)


def missing(_name, span):
    return InputError(Diagnostic("CS122", "unknown", span))


def example():
    pages = re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    return next(text for text in pages if "oversubscription" in text)


def test_the_oversubscribed_spine_of_the_page():
    document = parse_document(example(), "tapered.yaml")
    names = ("100 GB/s", {}), ("800/3 GB/s", {"oversubscription": "1.5"})
    for algbw, settings in names:
        topology = read_topology(document, None, settings)
        uplink = topology.link_between[
            next(i for i, x in enumerate(topology.nodes) if x.name == "leaf0"),
            next(i for i, x in enumerate(topology.nodes) if x.name == "spine0"),
        ]
        assert topology.links[uplink].bandwidth == Fraction(value(algbw).value, 2)
        problem = api.make_problem(topology, "allgather")
        assert api.bound(problem).algbw == value(algbw).value * 4 / 3


def test_a_setting_is_an_expression_too():
    plain = load("dgx-a100", nodes=2, settings={"nic": "12.5 GB/s"})
    found = load("dgx-a100", nodes=2, settings={"nic": "nvlink / 2"})
    assert found.links == plain.links
    assert found.name == "dgx-a100 x2 nic=nvlink / 2"
