"""Regular graphs by name."""

from fractions import Fraction

import pytest

from colsynth.errors import InputError
from colsynth.topology import load
from colsynth.units import parse_bandwidth, parse_duration


def degrees(spec):
    topology = load(spec)
    assert topology.is_symmetric
    found = [0] * topology.size
    for link in topology.links:
        found[link.source] += 1
    return found


@pytest.mark.parametrize(
    ("spec", "gpus", "degree"),
    [
        ("ring:8", 8, 2),
        ("ring:3", 3, 2),
        ("ring:2", 2, 1),
        ("torus:4x4x4", 64, 6),
        ("torus:4x4", 16, 4),
        ("torus:2x2", 4, 2),
        ("torus:2x3", 6, 3),
        ("torus:1x5", 5, 2),
        ("hypercube:6", 64, 6),
        ("hypercube:1", 2, 1),
        ("clique:8", 8, 7),
    ],
)
def test_every_gpu_has_the_same_number_of_links(spec, gpus, degree):
    assert degrees(spec) == [degree] * gpus


def test_a_mesh_has_corners_edges_and_an_inside():
    assert degrees("mesh:3x4") == [2, 3, 3, 2, 3, 4, 4, 3, 2, 3, 3, 2]


def test_neighbours_of_a_torus():
    topology = load("torus:3x4")
    neighbours = {x.target for x in topology.links if x.source == 0}
    assert neighbours == {1, 3, 4, 8}


def test_neighbours_of_a_hypercube_differ_in_one_bit():
    topology = load("hypercube:4")
    assert all((x.source ^ x.target).bit_count() == 1 for x in topology.links)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_hypercube_is_a_torus_of_twos(size):
    cube, torus = load(f"hypercube:{size}"), load(f"torus:{'x'.join('2' * size)}")
    assert (cube.nodes, cube.links) == (torus.nodes, torus.links)


def test_bandwidth_and_latency():
    topology = load("ring:4", bandwidth="200 Gb/s", latency="500 ns")
    assert {link.bandwidth for link in topology.links} == {Fraction(25 * 10**9)}
    assert {link.latency for link in topology.links} == {Fraction(1, 2 * 10**6)}


def test_defaults_are_stated():
    link = load("clique:3").links[0]
    assert link.bandwidth == parse_bandwidth("50 GB/s")
    assert link.latency == parse_duration("0.7 us")


def test_names_and_boxes():
    topology = load("mesh:2x2")
    assert topology.name == "mesh:2x2"
    assert [(node.name, node.box) for node in topology.nodes] == [(f"gpu{i}", 0) for i in range(4)]


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ("rng:8", "CS121"),
        ("ring:", "CS121"),
        ("ring:0", "CS121"),
        ("ring:-4", "CS121"),
        ("ring:8x8", "CS121"),
        ("hypercube:2x2", "CS121"),
        ("torus:4,4", "CS121"),
        ("torus:4x", "CS121"),
        ("torus:4X4", "CS121"),
        ("mesh:3.5", "CS121"),
        ("mesh:٣x3", "CS121"),
        (":", "CS121"),
        ("ring:1", "CS117"),
        ("mesh:1x1", "CS117"),
        ("clique:100000", "CS125"),
        ("ring:999999999", "CS125"),
        ("ring:99999999999999999999", "CS125"),
        ("mesh:9999x9999x9999", "CS125"),
        ("hypercube:40", "CS125"),
        ("mesh:" + "x".join("1" * 1000), "CS125"),
    ],
)
def test_what_cannot_be_made(spec, code):
    with pytest.raises(InputError) as caught:
        load(spec)
    assert caught.value.diagnostic.code == code


def test_a_mistyped_kind_offers_the_nearest():
    with pytest.raises(InputError) as caught:
        load("tours:4x4")
    assert "did you mean 'torus'?" in caught.value.diagnostic.help


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"bandwidth": "25"}, "CS110"),
        ({"bandwidth": ""}, "CS110"),
        ({"bandwidth": "0 GB/s"}, "CS111"),
        ({"latency": "1"}, "CS110"),
        ({"nodes": 2}, "CS124"),
        ({"settings": {"size": "4"}}, "CS124"),
    ],
)
def test_options_that_do_not_fit(options, code):
    with pytest.raises(InputError) as caught:
        load("ring:4", **options)
    assert caught.value.diagnostic.code == code


@pytest.mark.parametrize("kind", ["mesh", "torus"])
def test_every_axis_has_its_own_figures(kind):
    topology = load(f"{kind}:2x3x4", bandwidth="100,200, 1/3 GB/s", latency="1 us,20 ns,3 us")
    figures = {
        12: (parse_bandwidth("100 GB/s"), parse_duration("1 us")),
        4: (parse_bandwidth("200 GB/s"), parse_duration("20 ns")),
        1: (parse_bandwidth("1/3 GB/s"), parse_duration("3 us")),
    }
    for link in topology.links:
        here, there = link.source, link.target
        (axis,) = [
            stride
            for stride, size in ((12, 2), (4, 3), (1, 4))
            if here // stride % size != there // stride % size
        ]
        assert (link.bandwidth, link.latency) == figures[axis]


@pytest.mark.parametrize(
    ("spec", "bandwidth", "code"),
    [
        ("torus:4x4", "1,2,3 GB/s", "CS121"),
        ("clique:4", "1,2 GB/s", "CS121"),
        ("torus:4x4", "1,2", "CS110"),
        ("torus:4x4", "1,,2 GB/s", "CS121"),
        ("torus:4x4", ",2 GB/s", "CS110"),
        ("torus:4x4", "", "CS110"),
        ("torus:4x4", "0,2 GB/s", "CS111"),
    ],
)
def test_figures_that_fit_no_axes(spec, bandwidth, code):
    with pytest.raises(InputError) as caught:
        load(spec, bandwidth=bandwidth)
    assert caught.value.diagnostic.code == code
