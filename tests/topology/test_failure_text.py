from fractions import Fraction

import pytest

from colsynth.errors import InputError
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology import load
from colsynth.topology.damage import Failures
from colsynth.topology.failure_text import read_failures

DGX = load("dgx-a100", nodes=2)


def named(*names, links):
    """Return GPUs with names of all sorts; links are pairs of places, both ways."""
    both = sorted({*links, *((b, a) for a, b in links)})
    nodes = tuple(Node(name, Kind.GPU) for name in names)
    joined = tuple(Link(a, b, Fraction(10**9)) for a, b in both)
    return Topology("odd names", nodes, joined, tuple(range(len(names))))


def refusal(topology=DGX, **texts):
    with pytest.raises(InputError) as caught:
        read_failures(topology, **texts)
    return caught.value.diagnostic


def test_gpus_by_name_and_by_rank():
    assert read_failures(DGX, gpus=["gpu1.0"]) == read_failures(DGX, gpus=[" 8 "])


def test_ranks_also_name_the_ends_of_links():
    by_rank = read_failures(DGX, links=["8-nvswitch1"])
    assert by_rank == read_failures(DGX, links=["gpu1.0-nvswitch1"])
    assert len(by_rank.links) == 2


def test_a_name_that_looks_like_a_rank_is_the_name():
    topology = named("2", "1", "0", links=[(0, 1), (1, 2)])
    assert read_failures(topology, gpus=["2"]) == Failures(gpus=(0,))


def test_both_directions_or_one():
    place = {node.name: i for i, node in enumerate(DGX.nodes)}
    way = (place["nic0.0"], place["ib0"])
    assert set(read_failures(DGX, links=["nic0.0-ib0"]).links) == {way, way[::-1]}
    assert read_failures(DGX, links=["nic0.0 -> ib0"]).links == (way,)
    assert read_failures(DGX, links=["ib0->nic0.0"]).links == (way[::-1],)


def test_both_directions_of_a_one_way_link_are_the_one_there_is():
    topology = Topology(
        "one way",
        tuple(Node(name, Kind.GPU) for name in "abc"),
        tuple(Link(i, (i + 1) % 3, Fraction(1)) for i in range(3)),
        (0, 1, 2),
    )
    assert read_failures(topology, links=["b-a"]).links == ((0, 1),)
    assert refusal(topology, links=["b->a"]).code == "CS132"


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("rack-1/gpu-0-rack-1/gpu-1", (0, 1)),
        ("rack-1/gpu-1->rack-2", (1, 2)),
        ("rack-2->rack-1/gpu-1", (2, 1)),
        ("rack-2->->x", (2, 3)),
        ("rack-2->x", (2, 4)),
    ],
)
def test_names_may_hold_what_joins_them(text, ends):
    names = ("rack-1/gpu-0", "rack-1/gpu-1", "rack-2", "->x", "x")
    topology = named(*names, links=[(0, 1), (1, 2), (2, 3), (2, 4)])
    assert read_failures(topology, links=[text]).links[0] in (ends, ends[::-1])


def test_the_link_that_is_there_is_meant():
    topology = named("a", "b-c", "a-b", "c", links=[(0, 1), (1, 2), (1, 3)])
    assert set(read_failures(topology, links=["a-b-c"]).links) == {(0, 1), (1, 0)}


def test_a_text_that_may_mean_two_links_is_refused_with_both():
    topology = named("a", "b-c", "a-b", "c", links=[(0, 1), (1, 2), (2, 3)])
    found = refusal(topology, links=["a-b-c"])
    assert found.code == "CS133"
    assert found.notes == ("it may mean 'a' and 'b-c'", "it may mean 'a-b' and 'c'")
    assert read_failures(topology, links=["a->b-c"]).links == ((0, 1),)


def test_degraded_links_keep_an_exact_share():
    found = read_failures(DGX, degraded=["nic0.0->ib0=100/3 %", "nic0.1-ib1=0.5%"])
    shares = [share for _, share in found.degraded]
    assert shares == [Fraction(1, 3), Fraction(1, 200), Fraction(1, 200)]


def test_names_may_hold_an_equals_sign():
    topology = named("a=1", "b=2", links=[(0, 1)])
    assert read_failures(topology, degraded=["a=1->b=2=50%"]).degraded == (
        ((0, 1), Fraction(1, 2)),
    )


@pytest.mark.parametrize(
    ("texts", "option", "phrase", "help_"),
    [
        ({"gpus": ["gpu0.8"]}, "--drop-gpu", "no GPU 'gpu0.8'", "did you mean 'gpu0.7'?"),
        ({"gpus": ["16"]}, "--drop-gpu", "no GPU '16'", None),
        ({"gpus": ["-1"]}, "--drop-gpu", "no GPU '-1'", None),
        ({"gpus": [""]}, "--drop-gpu", "no GPU ''", None),
        ({"gpus": ["gpu*"]}, "--drop-gpu", "no GPU 'gpu*'", "did you mean 'gpu1.7'?"),
        ({"gpus": ["nvswitch0"]}, "--drop-gpu", "'nvswitch0' is a switch, not a GPU", None),
        ({"gpus": ["nic0.1"]}, "--drop-gpu", "is a NIC", "--drop-nic nic0.1 drops it"),
        ({"nics": ["gpu0.1"]}, "--drop-nic", "is a GPU", "--drop-gpu gpu0.1 drops it"),
        ({"nics": ["nic0.9"]}, "--drop-nic", "no NIC 'nic0.9'", "did you mean 'nic0.7'?"),
        (
            {"links": ["gpu0.0-nvswich0"]},
            "--drop-link",
            "no link 'gpu0.0-nvswich0'",
            "did you mean 'gpu0.0-nvswitch0'?",
        ),
        (
            {"degraded": ["nvswich0->gpu0.0=50%"]},
            "--degrade",
            "no link 'nvswich0->gpu0.0'",
            "did you mean 'nvswitch0->gpu0.0'?",
        ),
        ({"links": ["gpu0.0"]}, "--drop-link", "no link 'gpu0.0'", None),
        ({"links": ["gpu0.0-gpu0.1"]}, "--drop-link", "no link 'gpu0.0-gpu0.1'", None),
        ({"links": ["gpu0.0-gpu0.0"]}, "--drop-link", "no link", None),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest(texts, option, phrase, help_):
    found = refusal(**texts)
    assert found.code == "CS132"
    assert found.span.file == option
    assert phrase in found.phrase
    assert help_ is None or found.help == help_


def test_nodes_without_a_link_between_them_say_whom_they_are_linked_to():
    found = refusal(links=["gpu0.0-gpu0.1"])
    assert found.notes == ("gpu0.0 is linked to nvswitch0, nic0.0",)


def test_a_cluster_without_nics_says_so():
    assert refusal(load("mi250"), nics=["nic0.0"]).phrase == "mi250 x1 has no NICs"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("nic0.0-ib0", "does not say what is left"),
        ("nic0.0-ib0=", "is no percentage"),
        ("nic0.0-ib0=50", "is no percentage"),
        ("nic0.0-ib0=-5%", "is no percentage"),
        ("nic0.0-ib0=nan%", "is no percentage"),
        ("nic0.0-ib0=1/0%", "is no percentage"),
        ("nic0.0-ib0=0%", "cannot keep 0%"),
        ("nic0.0-ib0=100.1%", "cannot keep 100.1%"),
    ],
)
def test_wrong_percentages(text, word):
    found = refusal(degraded=[text])
    assert found.code == "CS134"
    assert word in found.phrase


def test_what_takes_all_of_a_link_is_named():
    assert refusal(degraded=["nic0.0-ib0=0%"]).help == "--drop-link nic0.0-ib0 takes all of it"


def test_a_link_is_degraded_once():
    found = refusal(degraded=["nic0.0-ib0=50%", "ib0->nic0.0=20%"])
    assert found.code == "CS135"
