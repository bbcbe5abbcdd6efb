import pytest

from colsynth.errors import InputError
from colsynth.topology import load
from colsynth.topology.damage import dropped_names
from colsynth.topology.single_failures import read_kinds, single_failures

DGX = load("dgx-a100", nodes=2)


def names(topology, kind):
    return [dropped_names(topology, failures) for failures in single_failures(topology, kind)]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("links:1", ("links",)),
        ("nics", ("nics",)),
        (" gpus : 1 , links:1", ("links", "gpus")),
        ("links:1,links:1", ("links",)),
    ],
)
def test_kinds(text, kinds):
    assert read_kinds(text) == kinds


@pytest.mark.parametrize(
    ("text", "phrase", "help_"),
    [
        ("link:1", "no failures 'link:1'", "did you mean 'links:1'?"),
        ("", "no failures ''", None),
        ("links:1,", "no failures ''", None),
        ("links:x", "no failures 'links:x'", "did you mean 'links:1'?"),
        ("links:2", "links:2 is not one failure at a time", "write links:1"),
        ("gpus:0", "gpus:0 is not one failure at a time", "write gpus:1"),
    ],
)
def test_other_texts_are_refused(text, phrase, help_):
    with pytest.raises(InputError) as caught:
        read_kinds(text)
    found = caught.value.diagnostic
    assert found.code == "CS136"
    assert phrase in found.phrase
    assert help_ is None or found.help.startswith(help_)


def test_every_link_fails_once_and_in_both_directions():
    found = single_failures(DGX, "links")
    assert sorted(ends for failures in found for ends in failures.links) == sorted(DGX.link_between)
    assert all(len(failures.links) == 2 for failures in found)
    assert names(DGX, "links")[0] == ("gpu0.0-nvswitch0",)
    assert len(found) == len(DGX.links) // 2 == 48


def test_gpus_and_nics():
    assert names(DGX, "gpus") == [(DGX.nodes[node].name,) for node in DGX.ranks]
    assert names(DGX, "nics") == [(f"nic{box}.{i}",) for box in range(2) for i in range(8)]


def test_nothing_of_a_kind():
    with pytest.raises(InputError, match="mi250 x1 has no nics"):
        single_failures(load("mi250"), "nics")
