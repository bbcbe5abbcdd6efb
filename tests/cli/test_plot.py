"""The plot of the benchmark is well-formed and shows what it was given."""

import math
from xml.etree import ElementTree as ET

import pytest

from colsynth.cli.plot import DARK, HEIGHT, LIGHT, MOST_SIZES, WIDTH, Series, draw, exponent

SVG = "{http://www.w3.org/2000/svg}"
OURS = Series("ours <fast>", ((64, 0.01), (1024, 0.3), (4096, 3.0)))
THEIRS = Series("theirs", ((64, 0.1), (1024, 57.0)), joined=False, notes=("small", "a & b"))


def parsed(*series):
    return ET.fromstring(draw("time & size", "one < two", ("GPUs", "seconds"), series))


def texts(root):
    return [item.text for item in root.iter(f"{SVG}text")]


def marks(root):
    """Return the places of all marks; those of the legend are below the plot."""
    paths = [p.get("d") for p in root.iter(f"{SVG}path") if "mark" in p.get("class")]
    return [tuple(map(float, d[1:].split("m")[0].split())) for d in paths]


def test_every_point_has_a_mark_and_every_series_its_line_of_the_legend():
    root = parsed(OURS, THEIRS)
    assert len(marks(root)) == len(OURS.points) + len(THEIRS.points) + 2
    shown = {
        "time & size",
        "one < two",
        "ours <fast>",
        "theirs",
        "small",
        "a & b",
        "GPUs",
        "seconds",
    }
    assert shown <= set(texts(root))
    joined = [p for p in root.iter(f"{SVG}path") if "L" in p.get("d")]
    assert [p.get("d").count("L") for p in joined] == [len(OURS.points) - 1]


def test_points_lie_inside_and_in_proportion_to_their_logarithms():
    points = ((1, 1.0), (10, 100.0), (100, 10.0))
    (x0, y0), (x1, y1), (x2, y2) = marks(parsed(Series("s", points)))[:3]
    assert all(0 < x < WIDTH and 0 < y < HEIGHT for x, y in ((x0, y0), (x1, y1), (x2, y2)))
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.02)
    assert y0 - y1 == pytest.approx(2 * (y0 - y2), abs=0.03)


def test_powers_of_ten_are_written_at_the_axes():
    shown = texts(parsed(OURS, THEIRS))
    assert {"100", "1,000", "0.1", "1", "10"} <= set(shown)


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        (2**10, 2**32, ["1 KiB", "4 KiB", "1 MiB", "256 MiB", "1 GiB", "4 GiB"]),
        (2**20, 2**23, ["1 MiB", "2 MiB", "4 MiB", "8 MiB"]),
        (1, 2**40, ["1 B", "32 B", "1 KiB", "1 TiB"]),
        (10**6, 10**6, ["1 MiB"]),
    ],
)
def test_sizes_are_written_in_powers_of_two_and_leave_each_other_room(first, last, shown):
    series = Series("s", ((first, 1.0), (last, 2.0)))
    written = texts(ET.fromstring(draw("t", "n", ("size", "GB/s"), (series,), sizes=True)))
    sizes = [text for text in written if text.endswith("B")]
    assert set(shown) <= set(sizes)
    assert len(sizes) <= MOST_SIZES


def test_light_and_dark_each_have_a_colour_for_every_series():
    style = parsed(OURS).find(f"{SVG}style").text
    light, _, dark = style.partition("prefers-color-scheme: dark")
    assert all(colour in light for colour in LIGHT)
    assert all(colour in dark for colour in DARK)
    assert len(LIGHT) == len(DARK)


def test_one_point_alone_can_be_drawn_and_none_cannot():
    assert len(marks(parsed(Series("one", ((5, 5.0),))))) == 2
    with pytest.raises(ValueError, match="point"):
        draw("t", "n", ("x", "y"), (Series("none", ()),))


def test_the_exponent_of_a_power_is_found():
    assert exponent((n, 3e-9 * n**2.5) for n in (64, 529, 4096)) == pytest.approx(2.5)
    assert exponent([(1, math.e), (10, math.e)]) == pytest.approx(0)


def test_a_line_without_marks_is_a_line_alone():
    bound = Series("bound", ((1, 5.0), (100, 5.0)), marked=False)
    root = parsed(OURS, bound)
    assert len(marks(root)) == len(OURS.points) + 1
    assert "bound" in texts(root)
