"""Plots show what they were given, in light, in dark and as PNG."""

import math
import re
from xml.etree import ElementTree as ET

import pytest

from colsynth.report import Series, exponent, picture, plot
from colsynth.report.plot import MOST_SIZES

SVG = "{http://www.w3.org/2000/svg}"
OURS = Series("ours <fast>", ((64, 0.01), (1024, 0.3), (4096, 3.0)))
THEIRS = Series("theirs", ((64, 0.1), (1024, 57.0)), joined=False, notes=("small", "a & b"))
BOUND = Series("bound", ((64, 5.0), (4096, 5.0)), colour=2, marked=False)


@pytest.fixture(scope="module", name="drawn")
def _drawn():
    pytest.importorskip("vl_convert")
    return picture(
        plot("time & size", "one < two", ("GPUs", "seconds"), (OURS, THEIRS, BOUND)), ".svg"
    )


def test_every_point_has_a_mark_and_every_series_its_line_of_the_legend(drawn):
    root = ET.fromstring(drawn)
    texts = {item.text for item in root.iter(f"{SVG}text")}
    named = {"time & size", "one < two", "ours <fast>", "theirs", "small", "a & b", "bound"}
    assert named | {"GPUs", "seconds", "100", "1,000"} <= texts
    groups = [item for item in root.iter(f"{SVG}g") if "class" in item.attrib]
    marks = [item for item in groups if item.get("class", "").startswith("mark-symbol role-mark")]
    assert sum(len(item) for item in marks) == len(OURS.points) + len(THEIRS.points)
    lines = [item for item in groups if item.get("class", "").startswith("mark-line role-mark")]
    assert len(lines) == 2


def test_light_and_dark_each_have_every_colour_that_is_used(drawn):
    text = drawn.decode()
    light, _, dark = text.split("</style>")[0].partition("prefers-color-scheme:dark")
    used = set(re.findall(r"var\((--\w+)\)", text))
    assert {"--s0", "--s2", "--card"} <= used
    assert all(f"{name}:#" in part for name in used for part in (light, dark))


def test_a_png_is_drawn_and_equal_plots_have_equal_bytes(drawn):
    spec = plot("time & size", "one < two", ("GPUs", "seconds"), (OURS, THEIRS, BOUND))
    assert picture(spec, ".svg") == drawn
    assert picture(spec, ".png").startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        (2**10, 2**32, [2**10, 2**12, 2**20, 2**28, 2**30, 2**32]),
        (2**20, 2**23, [2**20, 2**21, 2**22, 2**23]),
        (1, 2**40, [1, 2**5, 2**10, 2**40]),
        (10**6, 10**6, [2**20]),
    ],
)
def test_sizes_are_written_in_powers_of_two_and_leave_each_other_room(first, last, shown):
    series = Series("s", ((first, 1.0), (last, 2.0)))
    x = plot("t", "n", ("size", "GB/s"), (series,), sizes=True)["encoding"]["x"]
    assert set(shown) <= set(x["axis"]["values"])
    assert len(x["axis"]["values"]) <= MOST_SIZES
    low, high = x["scale"]["domain"]
    assert low < first <= last < high


def test_none_cannot_be_drawn():
    with pytest.raises(ValueError, match="point"):
        plot("t", "n", ("x", "y"), (Series("none", ()),))


def test_the_exponent_of_a_power_is_found():
    assert exponent((n, 3e-9 * n**2.5) for n in (64, 529, 4096)) == pytest.approx(2.5)
    assert exponent([(1, math.e), (10, math.e)]) == pytest.approx(0)
