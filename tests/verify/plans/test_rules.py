"""Every rule about plans is broken by a small change of a small plan, and by that rule alone."""

import json
import re

import pytest

from colsynth.model import Severity
from colsynth.runtimes import profile
from colsynth.runtimes.rules import severities
from colsynth.verify import verify_bytes

SIGNAL = {"name": "signal", "channel_ids": [0], "channel_type": "memory"}
WAIT = {**SIGNAL, "name": "wait"}
NOP = {"name": "nop"}


def buffer(kind, index, size=1):
    return {"type": kind, "index": index, "size": size}


def rank_of(rank):
    """An allreduce of two ranks: both send their input, and add what they get."""
    far = {"buffer_id": 0, "index": 0, "size": 2}
    put = {"name": "put", "src_buff": [buffer("i", 0, 2)], "dst_buff": [far]}
    both = [buffer("s", 0, 2), buffer("i", 0, 2)]
    add = {"name": "re", "src_buff": both, "dst_buff": [buffer("o", 0, 2)]}
    ops = [SIGNAL, WAIT, NOP, {**put, "channel_type": "memory"}, NOP, SIGNAL, WAIT, NOP, add]
    block = {
        "id": 0,
        "ops": ops,
        "channels": [{"channel_type": "memory", "channel_ids": [0]}],
        "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}],
    }
    return {
        "id": rank,
        "input_chunks": 2,
        "output_chunks": 2,
        "scratch_chunks": 2,
        "channels": [{"channel_type": "memory", "connected_to": [1 - rank]}],
        "remote_buffers": [{"rank": 1 - rank, "type": "s", "access_channel_types": ["memory"]}],
        "semaphores": [],
        "threadblocks": [block],
    }


def plan(**changes):
    fixed = {
        "name": "sum",
        "collective": "allreduce",
        "protocol": "Simple",
        "inplace": True,
        "reuse_resources": True,
        "max_message_size": 1 << 20,
        "gpus": [rank_of(0), rank_of(1)],
    }
    return {**fixed, **changes}


def on_both(change):
    """Return a plan of which the threadblock of both ranks is changed."""
    made = plan()
    for gpu in made["gpus"]:
        change(gpu, gpu["threadblocks"][0]["ops"])
    return made


def renamed(place, name):
    return lambda _, ops: ops.__setitem__(place, {**ops[place], "name": name})


def looped(unit, reverse=False):
    """Return a change that makes a loop of the part between the handshake and the end."""

    def change(_, ops):
        body = [json.loads(json.dumps(op).replace('"size": 2', '"size": 1')) for op in ops[3:]]
        if reverse:
            body[-1]["src_buff"].reverse()
        loop = {"name": "pipeline", "iter_context": {"unit_size": unit, "num_chunks": 1}}
        ops[3:] = [{**loop, "ops": body}]

    return change


def crossed(_gpu, ops):
    """Wait for the peer before telling it to go on."""
    ops[0], ops[1] = ops[1], ops[0]


def shared(gpu, ops):
    """Let a second threadblock take from the same channel."""
    twin = {**gpu["threadblocks"][0], "id": 1, "ops": [WAIT]}
    gpu["threadblocks"].append(twin)
    ops.insert(0, SIGNAL)


def to_output(gpu, _ops):
    gpu["remote_buffers"][0]["type"] = "i"


CASES = {
    "P01": {"gpus": []},
    "P02": on_both(lambda gpu, _: gpu.__setitem__("id", 1 - gpu["id"])),
    "P03": on_both(lambda _, ops: ops.extend([NOP] * 60)),
    "P04": on_both(renamed(3, "pws")),
    "P05": on_both(lambda gpu, _: gpu.__setitem__("scratch_chunks", 1)),
    "P06": plan(gpus=[{**rank_of(0), "channels": []}, rank_of(1)]),
    "P07": on_both(shared),
    "P08": on_both(lambda _, ops: ops.insert(0, SIGNAL)),
    "P09": on_both(crossed),
    "P10": on_both(lambda _, ops: ops.pop(7)),
    "P11": on_both(renamed(8, "re")) | {"collective": "allreduce"},
    "P12": on_both(looped(3 << 20)),
    "P13": on_both(looped(1 << 20, reverse=True)),
    "P15": plan(max_message_size=1 << 27),
    "P17": on_both(renamed(8, "recpkt")),
}
CASES["P06"]["gpus"][0]["threadblocks"] = [
    {"id": 0, "ops": [NOP], "channels": [], "remote_buffer_refs": []}
]
CASES["P11"]["gpus"][0]["threadblocks"][0]["ops"][8]["src_buff"].pop()


def verified(made, runtime="mscclpp"):
    return verify_bytes(json.dumps(made).encode(), profile(runtime), subject="plan")


def test_the_small_plan_is_right_in_both_modes():
    for inplace in (True, False):
        report = verified(plan(inplace=inplace))
        assert report.findings == ()
        assert dict(report.facts)["content"] == "executed symbolically"


def test_a_semaphore_below_zero_is_refused():
    gpus = [{**rank_of(rank), "semaphores": [{"init_value": -1}]} for rank in (0, 1)]
    assert {finding.rule for finding in verified(plan(gpus=gpus)).errors} == {"P02"}


def test_gpus_without_threadblocks_cannot_be_launched():
    report = verified(plan(gpus=[{**rank_of(rank), "threadblocks": []} for rank in (0, 1)]))
    assert {finding.rule for finding in report.errors} == {"P02"}


@pytest.mark.parametrize("side", ["src_buff", "dst_buff"])
def test_a_put_moves_each_source_to_the_destination_in_its_place(side):
    made = on_both(lambda _, ops: ops[3].__setitem__(side, ops[3][side] * 2))
    (finding, *_) = verified(made).errors
    assert (finding.rule, finding.message) == ("P04", "put needs one source per destination")


@pytest.mark.parametrize("rule", CASES)
def test_a_change_breaks_its_rule(rule):
    made = CASES[rule] if "name" in CASES[rule] else plan(**CASES[rule])
    report = verified(made, "mscclpp@0.8" if rule == "P17" else "mscclpp")
    assert rule in {finding.rule for finding in report.errors}, report.findings
    assert not report.ok


def test_one_of_a_kind_is_told_in_the_singular():
    """Both where counters of one length are compared, and where those of all lengths are."""
    ops = {0: [SIGNAL] * 2, 1: [WAIT]}
    for change in ({}, {"reuse_resources": True, "max_message_size": 1 << 22}):
        made = plan(**change)
        for gpu in made["gpus"]:
            loops = [looped_nop(unit) for unit in ((1 << 19, 1 << 18) if change else ())]
            gpu["threadblocks"][0]["ops"] = loops + ops[gpu["id"]]
        messages = [finding.message for finding in verified(made).errors if finding.rule == "P08"]
        assert messages
        assert not re.search(r"\b1 (signals|waits)\b", " ".join(messages))


def looped_nop(unit):
    return {"name": "pipeline", "iter_context": {"unit_size": unit, "num_chunks": 1}, "ops": [NOP]}


def test_what_may_be_right_is_only_a_warning():
    reached = on_both(to_output)
    reached["gpus"][0]["threadblocks"][0]["ops"][3]["dst_buff"][0]["index"] = 0
    warned = {x.rule for x in verified(reached).findings if x.severity is Severity.WARNING}
    assert "P14" in warned
    switched = on_both(lambda _, ops: ops.append({"name": "gstorepkt"}))
    assert {x.rule for x in verified(switched, "mscclpp@0.10").findings} == {"P16"}
    assert set(CASES) | {"P14", "P16"} == set(severities("mscclpp"))


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"<algo/>", b'{"name": 1}', b"\xff" * 9])
def test_what_is_no_plan_is_refused(text):
    report = verify_bytes(text, profile("mscclpp"), subject="plan")
    assert [finding.rule for finding in report.findings] == ["P01"]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"num_threads_per_block": 4096}, "P02"),
        ({"num_threads_per_block": 0}, "P02"),
        ({"min_message_size": -16}, "P15"),
    ],
)
def test_numbers_that_no_gpu_has_are_refused(changes, rule):
    assert rule in {finding.rule for finding in verified(plan(**changes)).errors}
