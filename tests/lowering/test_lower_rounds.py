"""Rounds: few, balanced, right in both modes of the call; the verifier finds planted faults."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from colsynth import api
from colsynth.cost import ideal_model
from colsynth.errors import InputError, NegativeFinding
from colsynth.lowering.round_numbers import fewest, spread_out
from colsynth.model import Collective, Direction, Origin, Slot, Transfer
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.registry import ALGORITHMS, pipeline_of
from colsynth.pipeline.target import aim
from colsynth.runtimes import profile
from colsynth.runtimes.rounds import parse_rounds, write_rounds
from colsynth.search.wish import configured
from colsynth.simulate import simulate
from colsynth.topology import load
from colsynth.verify import verify_bytes
from tests.reference.round_executor import execute, is_right

COLLECTIVES = ("allreduce", "allgather", "reduce-scatter", "alltoall", "broadcast", "reduce")
TORCH = profile("torch")


def lowered(machine, collective, algorithm, in_place=True, out_of_place=True, spread=0):
    """Return the rounds of an algorithm, None where it does not serve the collective."""
    root = 1 if Collective(collective).rooted else None
    problem = api.make_problem(machine, collective, root)
    target = replace(aim(problem, TORCH), in_place=in_place, out_of_place=out_of_place)
    try:
        text = f"{pipeline_of(algorithm, rounds=True)}{{spread={spread}}}"
        return Pipeline.from_text(text).run(problem, target)
    except (InputError, NegativeFinding):
        return None


def verified(program):
    return verify_bytes(write_rounds(program), TORCH, subject="rounds").ok


@pytest.mark.parametrize("place", ["dgx-1v", "torus:2x3", "ring:5"])
def test_rounds_of_every_algorithm_give_the_right_numbers(place):
    machine, served = load(place), 0
    for collective in COLLECTIVES:
        for algorithm in ALGORITHMS:
            if algorithm == "exact" and machine.size > 5:
                continue  # its solver works for seconds, on schedules like those of "ten"
            program = lowered(machine, collective, algorithm, spread=served % 3 * 2)
            if program is None:
                continue
            served += 1
            assert is_right(program), (collective, algorithm)
            assert verified(program), (collective, algorithm)
            again = parse_rounds(write_rounds(program))
            assert again.rounds == program.rounds
            assert write_rounds(again) == write_rounds(program)
    assert served > 20


def test_direct_exchange_takes_as_many_rounds_as_phases():
    machine = load("dgx-a100")
    for algorithm, collective, most in (
        ("allpairs", "alltoall", 1),
        ("forest", "reduce-scatter", 1),
        ("allpairs2", "allreduce", 2),
        ("ring", "allreduce", 14),
    ):
        program = lowered(machine, collective, algorithm, out_of_place=collective != "allreduce",
                          in_place=collective == "allreduce")  # fmt: skip
        assert sum(bool(found.messages) for found in program.rounds) == most, algorithm


def test_links_are_relieved_where_chains_leave_time():
    """Rank 0 sends twice over one link; what nobody waits for moves to the round of the reply."""
    origin, slot = Origin(0, Direction.OUT, 0), Slot("i", 0)
    places = [(0, 1, ()), (0, 2, ()), (1, 3, (0,))]
    moves = tuple(Transfer(a, b, 0, 1, False, after, origin, slot, slot) for a, b, after in places)
    wires = {(0, 1): ((0, 5),), (0, 2): ((0, 5), (1, 5)), (1, 3): ((2, 5),)}
    before = [{}, {}, {0: 1}]
    assert fewest(moves, before, wires) == [0, 1, 1]
    assert spread_out(moves, before, wires, 1) == [0, 0, 1]
    assert spread_out(moves, before, wires, 2) == [0, 1, 1]


def test_spread_chunks_follow_each_other_where_trees_are_tall():
    """Large messages gain; small ones want few rounds."""
    machine = load("mi250")
    problem = api.make_problem(machine, "allreduce", None)
    text = pipeline_of("forest", rounds=True).replace("coalesce-chunks", "coalesce-chunks{merge=1}")
    text = text.replace("pack-trees", "pack-trees{trees=1}")
    few, many = (
        Pipeline.from_text(f"{text}{{spread={spread}}}".replace("lower-forest", lower)).run(
            problem, aim(problem, TORCH)
        )
        for spread, lower in ((0, "lower-forest"), (8, "lower-forest{instances=8}"))
    )
    small, large = zip(
        *([x.seconds for x in simulate(p, machine, TORCH, [1024, 1 << 30])] for p in (few, many)),
        strict=True,
    )
    assert len(few.rounds) < len(many.rounds)
    assert small[0] < small[1]
    assert large[0] > 1.5 * large[1]


def mutants(program, draw, number):
    """Yield programs with one fault each: something lost, moved, swapped or counted twice."""
    for _ in range(number):
        rounds = list(program.rounds)
        place = draw.randrange(len(rounds))
        found = rounds[place]
        field = draw.choice([name for name in ("messages", "local") if getattr(found, name)])
        items = list(getattr(found, field))
        at = draw.randrange(len(items))
        item = items[at]
        shifted = Slot(item.write.buffer, max(0, item.write.offset + draw.choice((-1, 1))))
        elsewhere = Slot(item.read.buffer, max(0, item.read.offset + draw.choice((-1, 1))))
        match draw.randrange(5):
            case 0:
                items[at : at + 1] = []
            case 1:
                items[at] = replace(item, write=shifted)
            case 2:
                items[at] = replace(item, read=elsewhere)
            case 3:
                items.append(item)
            case _:
                rounds.insert(draw.randrange(len(rounds) + 1), rounds.pop(place))
                yield replace(program, rounds=tuple(rounds))
                continue
        rounds[place] = replace(found, **{field: tuple(items)})
        yield replace(program, rounds=tuple(rounds))


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_planted_faults_that_change_numbers_are_found(collective):
    program = lowered(load("torus:2x3"), collective, "forest") or lowered(
        load("torus:2x3"), collective, "ten"
    )
    found = harmless = 0
    for mutant in mutants(program, random.Random(7), 60):
        if verified(mutant):
            harmless += 1
            assert all(is_right(mutant, seed) for seed in range(2))
        else:
            found += 1
    assert found > harmless > 0


def test_races_are_refused_although_the_numbers_may_be_right():
    """Two messages to one chunk, which happen to carry the same."""
    program = lowered(load("torus:2x3"), "allgather", "ring")
    *before, last = program.rounds
    twice = replace(last, messages=(*last.messages, last.messages[0]))
    racing = replace(program, rounds=(*before, twice))
    got, wanted = execute(racing, in_place=False)
    assert all((a == b).all() for a, b in zip(got, wanted, strict=True))
    (finding, *_) = verify_bytes(write_rounds(racing), TORCH, subject="rounds").errors
    offset = last.messages[0].write.offset
    assert (finding.rule, f"two messages write o[{offset}]" in finding.message) == ("N04", True)


@pytest.mark.parametrize(
    "damage",
    [
        (b'"scratch": [0, 0', b'"scratch": [0, 9%018d' % 0),
        (b'"chunks": 6', b'"chunks": 6%018d' % 0),
    ],
)
def test_buffers_without_end_are_a_finding(damage):
    data = write_rounds(lowered(load("torus:2x3"), "allgather", "ring"))
    assert damage[0] in data
    (finding,) = verify_bytes(data.replace(*damage, 1), TORCH, subject="rounds").errors
    assert finding.rule == "N02"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scratch": (-1, 0, 0)}, "no number may be below zero"),
        ({"scratch": (0, 0)}, "one number for every rank"),
        ({"in_place": False, "out_of_place": False}, "serves no mode"),
        ({"min_bytes": 2, "max_bytes": 1}, "no call is between 2 and 1 bytes"),
    ],
)
def test_headers_of_no_call_are_findings(changes, said):
    data = json.loads(write_rounds(lowered(load("ring:3"), "allgather", "ring")))
    text = json.dumps({**data, **changes}).encode()
    (finding,) = verify_bytes(text, TORCH, subject="rounds").errors
    assert (finding.rule, said in finding.message) == ("N02", True)


@pytest.mark.parametrize("operand", [["o", None], [None, 0]])
def test_half_an_operand_is_a_finding(operand):
    data = json.loads(write_rounds(lowered(load("ring:3"), "allreduce", "ring")))
    data["rounds"][0][1] = [[0, "i", 0, "o", 0, *operand, 1]]
    (finding,) = verify_bytes(json.dumps(data).encode(), TORCH, subject="rounds").findings
    assert finding.rule == "N01"
    assert "or null for both" in finding.message


def test_times_grow_with_rounds_links_and_chunks():
    machine, size = load("dgx-a100"), 1 << 30
    ring, direct = (lowered(machine, "allgather", name) for name in ("ring", "forest"))
    times = {
        name: [point.seconds for point in simulate(program, machine, TORCH, [size >> 20, size])]
        for name, program in (("ring", ring), ("direct", direct))
    }
    assert times["direct"][0] < times["ring"][0]  # one round against seven
    ideal = simulate(direct, machine, TORCH, [size], ideal_model())[0]
    share = 7 / 8 * size / 300e9
    latency = sum(float(link.latency) for link in machine.links[:2])
    assert ideal.seconds == pytest.approx(share + latency)


def test_channels_of_rails_make_rounds_no_faster_and_are_few():
    """Rounds have no threadblocks to share, so by default the program is small."""
    machine = load("dgx-a100", nodes=2)
    problem = api.make_problem(machine, "allreduce")
    default, many = (
        configured("rails", options, rounds=True).run(problem, aim(problem, TORCH))
        for options in ({}, {"instances": 4})
    )
    times = [simulate(p, machine, TORCH, [1 << 20, 1 << 30]) for p in (default, many)]
    assert default.header.chunks < many.header.chunks
    for one, other in zip(*times, strict=True):
        assert one.seconds == pytest.approx(other.seconds, rel=1e-9)
