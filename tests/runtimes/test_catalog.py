"""Profiles are complete, sourced, and found by name."""

from __future__ import annotations

from dataclasses import fields

import pytest

from colsynth.errors import InputError
from colsynth.model import Collective
from colsynth.runtimes import Profile, profile, profiles
from colsynth.runtimes.rules import severities

SERVED_BY_NONE = {Collective.SCATTER, Collective.GATHER, Collective.CUSTOM}
"""Collectives for which no runtime has a word in its files."""

OWN = {"name", "title", "notes", "warnings", "sources"}

XML = [p for p in profiles() if p.xml]


def test_five_runtimes():
    assert [p.name for p in profiles()] == [*(p.name for p in XML), "mscclpp", "torch"]
    assert [p.name for p in XML] == ["msccl", "msccl-executor", "rccl"]
    assert [p.name for p in profiles() if p.plans] == ["mscclpp"]


@pytest.mark.parametrize("version", ["0.8", "0.10"])
def test_a_version_may_be_pinned_and_says_what_differs(version):
    pinned, usual = profile(f"mscclpp@{version}"), profile("mscclpp")
    assert pinned.family == usual.name
    assert (pinned.version, pinned.plans) != (usual.version, usual.plans)
    assert severities(pinned.family) == severities("mscclpp")


@pytest.mark.parametrize("runtime", profiles(), ids=lambda p: p.name)
def test_every_value_has_a_source(runtime):
    others = {"plans": runtime.plans, "rounds": runtime.rounds, "library": runtime.rounds}
    absent = {name for name, has in others.items() if not has}
    assert set(runtime.sources) == {field.name for field in fields(Profile)} - OWN - absent
    assert all(len(source) > 10 for source in runtime.sources.values())


@pytest.mark.parametrize("runtime", profiles(), ids=lambda p: p.name)
def test_limits_fit_together(runtime):
    assert set(runtime.collectives) == set(Collective) - SERVED_BY_NONE
    assert runtime.resident_threadblocks <= runtime.max_threadblocks
    assert runtime.max_channels <= runtime.hard_channels
    assert set(runtime.required) <= set(runtime.attributes)
    protocols = {
        "Simple",
        *(() if runtime.rounds else ("LL",)),
        *(("LL128",) if runtime.xml else ()),
    }
    assert set(runtime.fifo_calls) == set(runtime.tile_bytes) == protocols


def test_dialects_differ_where_the_runtimes_do():
    scatter = {p.name: p.collectives[Collective.REDUCE_SCATTER] for p in profiles()}
    assert scatter == {
        "msccl": "reduce_scatter",
        "msccl-executor": "reducescatter",
        "rccl": "reducescatter",
        "mscclpp": "reducescatter",
        "torch": "reduce-scatter",
    }
    assert [p.fuses for p in profiles()] == [True, True, False, True, True]


def test_users_of_rccl_are_told_that_newer_ones_ignore_files():
    rccl = profile("rccl")
    assert any("2.28.3" in text for text in (*rccl.notes, *rccl.warnings))


def test_unknown_runtimes_get_the_nearest_word():
    with pytest.raises(InputError) as caught:
        profile("msccl-exec")
    assert "'msccl-executor'" in caught.value.diagnostic.help


@pytest.mark.parametrize("name", ["MSCCL", "msccl_executor", "RCCL", "Msccl Executor"])
def test_case_and_hyphens_of_a_runtime_do_not_count(name):
    with pytest.raises(InputError) as caught:
        profile(name)
    meant = name.lower().replace("_", "-").replace(" ", "-")
    assert f"did you mean {meant!r}?" in caught.value.diagnostic.help


@pytest.mark.parametrize("name", ["MSCCL++", "mscclp", "MSCCLPP"])
def test_other_spellings_of_mscclpp_are_understood(name):
    with pytest.raises(InputError, match="unknown runtime") as caught:
        profile(name)
    assert "did you mean 'mscclpp'?" in caught.value.diagnostic.help


def test_a_wrong_version_is_answered_with_the_versions():
    with pytest.raises(InputError) as caught:
        profile("mscclpp@0.7")
    assert "did you mean 'mscclpp@0.8'?" in caught.value.diagnostic.help


@pytest.mark.parametrize(
    ("name", "notes"),
    [("nccl", 1), ("NCCL", 1), ("nccl-2.20", 1), ("Open-MPI", 1), ("ncll", 0), ("foo", 0)],
)
def test_what_reads_no_files_is_explained_and_no_other_runtime_proposed_for_it(name, notes):
    with pytest.raises(InputError) as caught:
        profile(name)
    found = caught.value.diagnostic
    assert found.code == "CS501"
    assert "did you mean" not in found.help
    assert all(f"-r {runtime.name}" in found.help for runtime in profiles())
    assert len(found.notes) == notes  # only what is named for sure is spoken of


@pytest.mark.parametrize("runtime", profiles(), ids=lambda p: p.name)
def test_rules_of_every_kind_apply_and_say_how_serious_they_are(runtime):
    found = severities(runtime.name)
    assert set(found.values()) <= {"error", "warning", "note"}
    if not runtime.xml:
        assert {rule[0] for rule in found} == {"P" if runtime.plans else "N"}
        return
    kinds = {rule[0] for other in XML for rule in severities(other.name)}
    assert {rule[0] for rule in found} == kinds
