"""Plans whose switches multicast and reduce: executed, and no fault goes unseen."""

import copy
import json

import pytest

from colsynth.runtimes import profile
from colsynth.verify import verify_bytes
from tests.verify.plans.test_execution import right

RANKS = 3
NOP = {"name": "nop"}


def local(kind, index):
    return {"type": kind, "index": index, "size": 1}


def copies(source, target):
    whole = range(RANKS)
    return [
        {"name": "copy", "src_buff": [local(source, k)], "dst_buff": [local(target, k)]}
        for k in whole
    ]


def meeting():
    ids = {"channel_ids": list(range(RANKS - 1)), "channel_type": "memory"}
    return [NOP, {"name": "signal", **ids}, {"name": "wait", **ids}, NOP]


def switched(rank):
    """Return what a rank does: its shard is added up over all ranks, and stored at all."""
    own = {"switch_channel_id": 0, "index": rank, "size": 1}
    everywhere = {"name": "glres", "src_buff": [own], "dst_buff": [own]}
    return [*copies("i", "s"), *meeting(), everywhere, *meeting(), *copies("s", "o")]


def stored(rank):
    """Return what a rank does in an allgather: it stores its shard at all ranks."""
    own = {"switch_channel_id": 0, "index": rank, "size": 1}
    store = {"name": "gstore", "src_buff": [local("i", 0)], "dst_buff": [own]}
    return [store, *meeting(), *copies("s", "o"), *meeting()]


def plan(collective="allreduce"):
    """Return a plan of which messages are cut into iterations of 1 MiB."""
    gpus = []
    for rank in range(RANKS):
        others = [peer for peer in range(RANKS) if peer != rank]
        group = {"size": RANKS, "ranks": list(range(RANKS))}
        body = switched(rank) if collective == "allreduce" else stored(rank)
        loop = {"unit_size": 1 << 20, "num_chunks": 1}
        block = {
            "id": 0,
            "ops": [{"name": "pipeline", "iter_context": loop, "ops": body}],
            "channels": [
                {"channel_type": "memory", "channel_ids": list(range(RANKS - 1))},
                {"channel_type": "switch", "channel_ids": [0]},
            ],
        }
        gpu = {
            "id": rank,
            "input_chunks": RANKS if collective == "allreduce" else 1,
            "output_chunks": RANKS,
            "scratch_chunks": 16,
            "channels": [
                {"channel_type": "memory", "connected_to": others},
                {"channel_type": "switch", "buffer_type": "s", "rank_groups": [group]},
            ],
            "remote_buffers": [],
            "threadblocks": [block],
        }
        gpus.append(gpu)
    fixed = {"name": collective, "collective": collective, "protocol": "Simple", "inplace": False}
    limits = {"reuse_resources": True, "min_message_size": 1 << 10, "max_message_size": 1 << 30}
    return {**fixed, **limits, "gpus": gpus}


def verified(made, runtime="mscclpp@0.10"):
    return verify_bytes(json.dumps(made).encode(), profile(runtime), subject="plan")


@pytest.mark.parametrize("collective", ["allreduce", "allgather"])
def test_plans_over_switches_are_executed(collective):
    report = verified(plan(collective))
    assert report.findings == ()
    assert dict(report.facts)["content"] == "executed symbolically"
    assert all(right(plan(collective), seed) for seed in range(3))


@pytest.mark.parametrize("chunks", [8, 32])
def test_slots_are_equally_long_at_all_ranks_unless_chunks_are_shorter(chunks):
    """A rank counts with its own slots what it reaches at others."""
    made = plan()
    made["gpus"][1]["scratch_chunks"] = chunks
    slot = (64 << 20) // 32
    short = {**made, "max_message_size": RANKS * slot}
    if chunks == 8:
        assert verified(short).errors == ()
        assert {finding.rule for finding in verified(made).errors} == {"P15"}
        assert not right(made, 0)
    else:
        assert "P15" in {finding.rule for finding in verified(made).errors}


def body(made, rank=1):
    return made["gpus"][rank]["threadblocks"][0]["ops"][0]["ops"]


def place(made, name):
    return next(k for k, op in enumerate(body(made)) if op["name"] == name)


def dropped(name, which=0):
    def change(made):
        found = [k for k, op in enumerate(body(made)) if op["name"] == name]
        del body(made)[found[which]]

    return change


def moved(side):
    def change(made):
        body(made)[place(made, "glres")][side][0]["index"] = 2

    return change


def group(**changes):
    def change(made):
        made["gpus"][1]["channels"][1]["rank_groups"][0].update(changes)

    return change


def fewer(made):
    """Let a rank meet only one of the others."""
    for op in body(made):
        if op["name"] in ("signal", "wait"):
            op["channel_ids"] = [0]


MUTANTS = {
    "a copy before": dropped("copy"),
    "the sum": dropped("glres"),
    "a copy behind": dropped("copy", -1),
    "nop between copies and signals": dropped("nop", 0),
    "nop between waits and sum": dropped("nop", 1),
    "nop between sum and signals": dropped("nop", 2),
    "nop between waits and copies": dropped("nop", 3),
    "signals": dropped("signal"),
    "waits": dropped("wait", 1),
    "another shard": moved("src_buff"),
    "stored elsewhere": moved("dst_buff"),
    "too few meet": fewer,
    "a rank is left out": group(size=2, ranks=[0, 1]),
    "a rank twice": group(ranks=[0, 1, 1]),
    "wrong size": group(size=4),
    "no such rank": group(ranks=[0, 1, 7]),
    "no such channel": lambda made: body(made)[place(made, "glres")]["src_buff"][0].update(
        switch_channel_id=1
    ),
    "beyond the buffer": lambda made: body(made)[place(made, "glres")]["dst_buff"][0].update(
        index=16
    ),
    "no switch": lambda made: body(made)[place(made, "glres")].update(src_buff=[local("s", 1)]),
    "two sources": lambda made: body(made)[place(made, "glres")]["src_buff"].append(local("s", 1)),
    "two chunks": lambda made: body(made)[place(made, "glres")]["src_buff"][0].update(size=2),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_fault_is_found(name):
    made = copy.deepcopy(plan())
    MUTANTS[name](made)
    assert made != plan()
    assert not verified(made).ok


def test_what_is_multicast_to_callers_buffers_is_a_warning_and_old_versions_lack_stores():
    made = plan("allgather")
    for gpu in made["gpus"]:
        gpu["channels"][1]["buffer_type"] = "o"
        ops = gpu["threadblocks"][0]["ops"][0]["ops"]
        ops[:] = [op for op in ops if op["name"] != "copy"]
    assert "P10" in {finding.rule for finding in verified(made).errors}  # a peer's call may be old
    for gpu in made["gpus"]:
        gpu["threadblocks"][0]["ops"][:0] = meeting()
    report = verified(made)
    assert {finding.rule for finding in report.findings} == {"P14"}
    assert "P17" in {finding.rule for finding in verified(plan("allgather"), "mscclpp@0.8").errors}
