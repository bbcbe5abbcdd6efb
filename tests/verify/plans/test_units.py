"""Pipelines whose units differ: the verdict is compared with executions at many lengths."""

import copy
import random

import numpy as np
import pytest

from colsynth.model import Severity
from colsynth.units import parse_size
from tests.reference.plan_executor import Executor, Hang
from tests.verify.plans.test_execution import buffers, compiled
from tests.verify.plans.test_rules import NOP, buffer, verified

SHRINK = 1 << 14
ELEMENT = 16 * SHRINK
"""Bytes that an element of the executor stands for."""
SLOT = 16 << 20
"""Bytes of each of four slots in 64 MiB of scratch."""
CHUNKS = 2
OUT, INTO = 0, 1
UNITS = (SLOT // 2, SLOT // 4, SLOT // 8)


def speak(name, part, way):
    """Return a signal or a wait; rank 0 sends on even channels and receives on odd ones."""
    return {"name": name, "channel_type": "memory", "channel_ids": [2 * part + way]}


def mirrored(op, rank):
    """Return an operation as the rank has it: what one sends on, the other receives on."""
    op = dict(op)
    if "channel_ids" in op:
        op["channel_ids"] = [k ^ rank for k in op["channel_ids"]]
    if "ops" in op:
        op["ops"] = [mirrored(inner, rank) for inner in op["ops"]]
    return op


def loop(unit, ops, count=1):
    return {
        "name": "pipeline",
        "iter_context": {"unit_size": unit, "num_chunks": count},
        "ops": ops,
    }


def sending(part, unit, *, ahead=2, wait=True, signal=True, size=1, lane=None):
    """Return operations that send chunks, before, in and behind a loop."""
    lane = part if lane is None else lane
    far = {"buffer_id": 0, "index": part, "size": size}
    put = {"name": "put", "channel_type": "memory", "src_buff": [buffer("i", part, size)]}
    body = [{**put, "dst_buff": [far]}, NOP]
    head = [] if wait else [speak("wait", lane, OUT), NOP]
    tail = [speak("wait", lane, OUT)] * (ahead if wait else 0)
    body = [speak("wait", lane, OUT), NOP] * wait + body + [speak("signal", lane, OUT)] * signal
    return head, [loop(unit, body, size)], tail + [speak("signal", lane, OUT)] * (not signal)


def receiving(part, unit, *, ahead=2, wait=True, signal=True, size=1, lane=None):
    """Return the operations of the other side; the sender waits and signals as often."""
    lane = part if lane is None else lane
    add = {"name": "re", "src_buff": [buffer("s", part, size), buffer("i", part, size)]}
    body = [{**add, "dst_buff": [buffer("o", part, size)]}, NOP]
    head = [speak("signal", lane, INTO)] * (ahead if wait else 1)
    body = [speak("wait", lane, INTO), NOP] * signal + body + [speak("signal", lane, INTO)] * wait
    start = [] if signal else [speak("wait", lane, INTO), NOP]
    return head, [*start, loop(unit, body, size)], []


def gpu(rank, blocks, channels=2 * CHUNKS):
    lists = [{"channel_type": "memory", "channel_ids": list(range(channels))}]
    refs = [{"access_channel_type": "memory", "remote_buffer_ids": [0]}]
    return {
        "id": rank,
        "input_chunks": CHUNKS,
        "output_chunks": CHUNKS,
        "scratch_chunks": 4,
        "channels": [{"channel_type": "memory", "connected_to": [1 - rank] * channels}],
        "remote_buffers": [{"rank": 1 - rank, "type": "s", "access_channel_types": ["memory"]}],
        "semaphores": [],
        "threadblocks": [
            {
                "id": k,
                "ops": [mirrored(op, rank) for op in ops],
                "channels": lists,
                "remote_buffer_refs": refs,
            }
            for k, ops in enumerate(blocks)
        ],
    }


def plan(blocks, most=CHUNKS * 8 * SLOT, least=0):
    return {
        "name": "sum",
        "collective": "allreduce",
        "protocol": "Simple",
        "inplace": False,
        "reuse_resources": True,
        "min_message_size": least,
        "max_message_size": most,
        "gpus": [gpu(rank, blocks[rank % len(blocks)]) for rank in (0, 1)],
    }


def joined(*sides):
    """Return one threadblock that does several things: all heads first, all tails last."""
    return [op for k in range(3) for side in sides for op in side[k]]


def own(units, **options):
    """Each chunk by two threadblocks with a unit of their own."""
    pairs = [(sending(k, u, **options), receiving(k, u, **options)) for k, u in enumerate(units)]
    return [joined(side) for pair in pairs for side in pair]


def right(made, chunk, seed):
    rng = np.random.default_rng(seed)
    calls = [buffers(made, chunk, rng) for _ in range(2)]
    try:
        Executor(made, chunk, SHRINK, seed).run([call for call, _ in calls])
    except Hang:
        return False
    return all(
        (output == expected).all()
        for (_, outputs), wanted in calls
        for output, expected in zip(outputs, wanted, strict=True)
    )


def rules(made):
    return {x.rule for x in verified(made).findings if x.severity is Severity.ERROR}


def named(report):
    """Return the elements of a chunk, rounded up, in the smallest message that errors name."""
    texts = [x.message.partition("in messages of ")[2] for x in report.errors]
    sizes = [parse_size(" ".join(text.split()[:2]).rstrip(",;")) for text in texts if text]
    return -(-min(sizes) // (CHUNKS * ELEMENT)) if sizes else None


def test_chunks_with_units_of_their_own_are_right():
    made = plan([own((UNITS[0], UNITS[2]))])
    report = verified(made)
    assert report.findings == ()
    assert dict(report.facts)["content"] == "executed symbolically"
    for chunk in (1, 8, 9, 16, 17, 63, 64, 65, 150):
        assert right(made, chunk, chunk)


def test_sender_and_receiver_with_different_units_are_refused_at_the_first_size_that_hangs():
    sides = joined(sending(0, UNITS[1])), joined(receiving(0, UNITS[2]))
    made = plan([[*sides, *own((UNITS[0],) * 2)[2:]]])
    report = verified(made)
    assert {x.rule for x in report.errors} == {"P08"}
    assert named(report) == UNITS[2] // ELEMENT + 1  # one iteration against two
    assert not right(made, named(report), 0)
    assert right(made, named(report) - 1, 0)


@pytest.mark.parametrize(("most", "fine"), [(CHUNKS * UNITS[2], True), (CHUNKS * UNITS[1], False)])
def test_the_byte_range_decides_whether_the_difference_matters(most, fine):
    sides = joined(sending(0, UNITS[1])), joined(receiving(0, UNITS[2]))
    made = plan([[*sides, *own((UNITS[0],) * 2)[2:]]], most=most)
    assert (verified(made).findings == ()) == fine
    assert all(right(made, chunk, 1) for chunk in range(1, most // CHUNKS // ELEMENT + 1)) == fine


def test_the_last_size_of_a_narrow_range_is_looked_at():
    """One iteration more than the peer's, for the last message only."""
    sides = joined(sending(0, UNITS[1])), joined(receiving(0, UNITS[2]))
    blocks = [[*sides, *own((UNITS[0],) * 2)[2:]]]
    assert rules(plan(blocks, most=CHUNKS * (UNITS[2] + 16))) == {"P08"}
    assert rules(plan(blocks, most=CHUNKS * (UNITS[2] + 15))) == set()


def test_a_threadblock_that_sends_all_before_it_receives_hangs_when_slots_are_full():
    """Units are equal; the ring holds a few iterations, and more of them never end."""
    one = joined(sending(0, UNITS[1]), receiving(0, UNITS[1]))
    made = plan([[one, joined(sending(1, UNITS[1])), joined(receiving(1, UNITS[1]))]])
    report = verified(made)
    assert {x.rule for x in report.errors} == {"P09"}
    assert not right(made, named(report), 0)
    assert right(made, named(report) - 1, 0)
    short = plan(
        [[one, joined(sending(1, UNITS[1])), joined(receiving(1, UNITS[1]))]],
        most=CHUNKS * (named(report) - 1) * ELEMENT,
    )
    assert verified(short).findings == ()


def test_two_loops_of_a_chunk_do_not_go_round_as_often_as_one_of_two_chunks():
    """Units are equal; two half units are two iterations on one side and one on the other."""
    both = joined(sending(0, UNITS[1], size=2))
    each = joined(receiving(0, UNITS[1]), receiving(1, UNITS[1], ahead=0, lane=0))
    made = plan([[both, each]])
    report = verified(made)
    assert {x.rule for x in report.errors} == {"P08"}
    assert not right(made, named(report), 0)
    assert rules(plan([[both, joined(receiving(0, UNITS[1], size=2))]])) == set()


def test_more_iterations_than_16_bits_count_are_refused_where_the_range_has_no_end():
    made = plan([own((SLOT >> 10, SLOT >> 10))])
    del made["max_message_size"]
    assert rules(made) == {"P12"}


def test_units_that_are_too_small_to_try_all_lengths_are_a_warning():
    made = plan([own((SLOT // 2, SLOT >> 14))], most=CHUNKS * 2 * SLOT)
    report = verified(made)
    assert {x.rule for x in report.findings} == {"P16"}
    assert report.ok
    assert dict(report.facts)["content"] != "executed symbolically"


def test_a_range_without_any_message_of_whole_chunks_is_refused():
    assert rules(plan([own((UNITS[0],) * 2)], least=33, most=63)) == {"P15"}
    assert rules(plan([own((UNITS[0],) * 2)], least=33, most=64)) == set()


def paired(rng, units):
    """Return sides that move both chunks in one loop, or in two over the same channel."""
    ahead, unit = rng.choice([1, 2, 2]), rng.choice(units)
    other = unit if rng.random() < 0.8 else rng.choice(units)
    sides = []
    for side, length in ((sending, unit), (receiving, other)):
        if rng.random() < 0.6:
            sides.append(joined(side(0, length, ahead=ahead, size=2)))
            continue
        first = side(0, length, ahead=ahead)
        second = side(1, length, ahead=0, lane=0)
        sides.append(joined(first, second))
    return sides


def drawn(rng):
    """Return a plan of random loops, most of them nearly right."""
    units = rng.choice([UNITS, UNITS[:1], UNITS[1:2]])
    most = rng.choice([1, 2, 3, 5, 8, 16, 40, 63, 64, 65, 100, 200, 400])
    least = rng.choice([0, 0, 0, 0, rng.randint(0, most)])
    span = {"most": CHUNKS * most * ELEMENT, "least": CHUNKS * least * ELEMENT}
    if rng.random() < 0.3:
        return plan([paired(rng, units)], **span), least, most
    blocks = []
    for part in range(CHUNKS):
        wait, signal = rng.random() < 0.8, rng.random() < 0.8
        ahead = rng.choice([1, 2, 2, 2, 3, 4])
        options = {"ahead": ahead, "wait": wait, "signal": signal}
        unit = rng.choice(units)
        other = unit if rng.random() < 0.7 else rng.choice(units)
        blocks.append([sending(part, unit, **options), receiving(part, other, **options)])
    (a, b), (c, d) = blocks
    shape = rng.choice(["apart", "apart", "phases", "lines", "one"])
    made = {
        "apart": [[a], [b], [c], [d]],
        "phases": [[a, c], [b, d]] if rng.random() < 0.7 else [[a, c], [d, b]],
        "lines": [[a, d], [c, b]],
        "one": [[a, b], [c, d]],
    }[shape]
    return plan([[joined(*sides) for sides in made]], **span), least, most


@pytest.mark.parametrize("seed", range(24))
def test_what_is_verified_is_right_at_every_length(seed):
    rng = random.Random(seed)
    seen = {True: 0, False: 0}
    for _ in range(16):
        made, least, most = drawn(rng)
        report = verified(made)
        fine = report.findings == ()
        seen[fine] += 1
        chunks = {max(1, least), most, *(rng.randint(max(1, least), most) for _ in range(3))}
        if fine:
            assert all(right(made, chunk, rng.randrange(99)) for chunk in chunks)
        elif {x.rule for x in report.errors} & {"P09", "P11"} and named(report):
            assert not right(made, named(report), 0)
    assert min(seen.values()) > 1


def test_packets_in_pipelines_are_as_good_as_others():
    """They take twice their room in scratch there too, and three launches show early ones."""
    for given in compiled("mesh:2x2", "allgather", "forest", "LL"):
        made = {**copy.deepcopy(given), "max_message_size": 1 << 16}
        for block in (block for one in made["gpus"] for block in one["threadblocks"]):
            block["ops"] = [in_loop(op) for op in block["ops"]]
        report = verified(made)
        assert report.findings == verified(given).findings == ()
        assert "3 launches" in dict(report.facts)["sizes"]
        assert "CUDA graphs" in dict(report.facts)
        assert rules({**made, "use_double_scratch_buffer": False}) == {"P10"}


def in_loop(op):
    """Return an operation on data as a loop of its own, of one iteration."""
    sizes = {o["size"] for side in ("src_buff", "dst_buff") for o in op.get(side, ())}
    op = {key: value for key, value in op.items() if key != "tbg_info" or not sizes}
    return loop(1118480, [op], sizes.pop()) if sizes else op


def test_numbers_without_limit_are_executed_as_what_they_amount_to():
    """Units longer than any message, and more credits than are ever taken."""
    made = {**plan([own((UNITS[0], 1 << 70))]), "reuse_resources": False}
    assert verified(made).findings == ()
    given = compiled("mesh:2x2", "reduce-scatter", "forest", "Simple")[0]
    made = copy.deepcopy(given)
    numbers = [one["semaphores"] for one in made["gpus"] if one.get("semaphores")]
    assert numbers
    for one in numbers[0]:
        one["init_value"] = 1 << 70
    assert rules(made) <= {"P10", "P11"}
