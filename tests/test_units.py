"""Quantities: exact in, exact out."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colsynth import units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("25 GB/s", 25 * 10**9),
        ("200 Gb/s", 25 * 10**9),
        ("200Gbps", 25 * 10**9),
        ("50 GiB/s", 50 * 2**30),
        ("300/7 GB/s", Fraction(300 * 10**9, 7)),
        ("0.1 MB/s", 10**5),
        ("1e2 B/s", 100),
    ],
)
def test_bandwidths(text, expected):
    assert units.parse_bandwidth(text) == expected


@pytest.mark.parametrize("text", ["25", "25 GB", "GB/s", "-1 GB/s", "25 gb/s x", "1e999 B/s", ""])
def test_bandwidths_without_meaning_are_refused(text):
    with pytest.raises(ValueError, match="expected a bandwidth"):
        units.parse_bandwidth(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.7 us", Fraction(7, 10**7)),
        ("700ns", Fraction(7, 10**7)),
        ("0 s", 0),
        ("2 ms", Fraction(1, 500)),
    ],
)
def test_durations(text, expected):
    assert units.parse_duration(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4096", 4096),
        ("64MB", 64 * 10**6),
        ("64M", 2**26),
        ("64MiB", 2**26),
        ("1kB", 1000),
        ("2 GiB", 2**31),
    ],
)
def test_sizes(text, expected):
    assert units.parse_size(text) == expected


@pytest.mark.parametrize("text", ["1.5", "1 GB/s", "x", "0.3K"])
def test_sizes_without_meaning_are_refused(text):
    with pytest.raises(ValueError, match="expected"):
        units.parse_size(text)


fractions = st.fractions(min_value=Fraction(1, 1000), max_value=10**6)


@given(fractions)
def test_what_is_spelt_is_read_back(value):
    assert units.parse_bandwidth(units.spell_bandwidth(value * 10**9)) == value * 10**9
    assert units.parse_duration(units.spell_duration(value)) == value


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("50%", Fraction(1, 2)),
        ("12.5 %", Fraction(1, 8)),
        ("200/3%", Fraction(2, 3)),
        ("0%", 0),
        ("1e-1%", Fraction(1, 1000)),
    ],
)
def test_percentages(text, share):
    assert units.parse_percent(text) == share
    assert units.parse_percent(units.spell_percent(share)) == share
    assert units.percent(share) == pytest.approx(float(share) * 100, abs=1e-6)


@pytest.mark.parametrize("text", ["50", "%", "-5%", "1/0%", "half", ""])
def test_percentages_without_meaning_are_refused(text):
    with pytest.raises(ValueError, match="expected a percentage"):
        units.parse_percent(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        *((0, "0 B"), (1, "1 B"), (1000, "1 KB"), (1024, "1 KiB"), (1001, "1001 B")),
        *((10**9, "1 GB"), (2**30, "1 GiB"), (3 * 2**20, "3 MiB"), (2**42, "4 TiB")),
    ],
)
def test_sizes_for_people(size, text):
    assert units.format_size(size) == text
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    ("size", "text"),
    [(1024, "up to 1 KiB"), (2**31 - 1, "below 2 GiB"), (1001, "up to 1001 B")],
)
def test_largest_sizes_for_people(size, text):
    assert units.format_most(size) == text
