"""More than a hundred planted faults in plans, each of which the verifier finds."""

import copy
import json
import random

import pytest

from colsynth.runtimes import profile
from colsynth.verify import verify_bytes
from tests.lowering.test_fold_sums import compiled as folded
from tests.verify.plans.test_execution import compiled

BASES = (
    ("pairs", "allreduce", "ten", "Simple"),
    ("mesh:2x2", "reduce-scatter", "forest", "Simple"),
    ("ring:4", "allgather", "forest", "Simple", 1 << 20),
    ("pairs", "allreduce", "ten", "LL"),
    ("mesh:2x2", "allgather", "forest", "LL"),
    ("clique:4", "alltoall", "ten", "Simple"),
)
FOLDED = (("clique:4", {}), ("clique:4", {"protocol": "LL", "max_bytes": 1 << 16}))
WANTED = 130
DATA = {"copy", "put", "pws", "re", "res", "ppkt", "upkt", "repkt", "respkt", "cpkt", "rppkt"}
SPEAKS = {"signal", "pws", "sem_release"}


def lists(plan):
    """Return (GPU, list of operations) of all threadblocks and loops."""
    for gpu in plan["gpus"]:
        for block in gpu["threadblocks"]:
            yield gpu, block["ops"]
            for op in block["ops"]:
                if op["name"] == "pipeline":
                    yield gpu, op["ops"]


def places(plan, fits):
    return [(gpu, ops, k) for gpu, ops in lists(plan) for k in range(len(ops)) if fits(ops, k)]


def drop(names):
    def mutate(plan, rng):
        found = places(plan, lambda ops, k: ops[k]["name"] in names)
        if found:
            _, ops, k = rng.choice(found)
            del ops[k]
        return bool(found)

    return mutate


def drop_nop(before, after):
    """Remove a nop between two kinds of operation, which then are unordered."""

    def mutate(plan, rng):
        found = places(
            plan,
            lambda ops, k: (
                0 < k < len(ops) - 1
                and ops[k]["name"] == "nop"
                and ops[k - 1]["name"] in before
                and ops[k + 1]["name"] in after
            ),
        )
        if found:
            _, ops, k = rng.choice(found)
            del ops[k]
        return bool(found)

    return mutate


def shift(side):
    """Let an operation read or write another chunk of the same buffer."""

    def mutate(plan, rng):
        found = places(plan, lambda ops, k: ops[k]["name"] in DATA)
        gpu, ops, k = rng.choice(found)
        if ops[k]["name"] in ("re", "repkt") and side == "src_buff":
            return False
        operand = ops[k][side][0]
        if side == "dst_buff" and ops[k]["name"] == "res" and operand["type"] == "s":
            return False  # nobody reads a sum that only travels on: another free chunk is as good
        name = {"i": "input_chunks", "o": "output_chunks"}.get(operand.get("type"), "")
        room = gpu.get(name, gpu["scratch_chunks"])
        operand["index"] = (operand["index"] + rng.randint(1, max(1, room - 1))) % room
        return room > 1

    return mutate


def credit(plan, _rng):
    """Give one credit more than slots hold, and take it back at the end."""
    first = next((ops for _, ops in lists(plan) if ops[0]["name"] == "signal"), None)
    if first is None:
        return False
    first.insert(0, copy.deepcopy(first[0]))
    return True


def unit(plan, _rng):
    found = places(plan, lambda ops, k: ops[k]["name"] == "pipeline")
    for _, ops, k in found:
        ops[k]["iter_context"]["unit_size"] = 3 << 18
    return bool(found)


def number(plan, rng):
    """Use a channel, buffer or semaphore that is not there."""
    keys = ("channel_ids", "semaphore_ids")
    found = places(plan, lambda ops, k: any(key in ops[k] for key in keys))
    if not found:
        return False
    _, ops, k = rng.choice(found)
    key = next(key for key in keys if key in ops[k])
    ops[k][key] = [99]
    return True


def peer(plan, rng):
    gpu = rng.choice([g for g in plan["gpus"] if g["channels"]] or [None])
    if gpu is None:
        return False
    peers = gpu["channels"][0]["connected_to"]
    others = [r for r in range(len(plan["gpus"])) if r not in (gpu["id"], peers[0])]
    peers[0] = rng.choice(others)
    return True


def owner(plan, rng):
    gpu = rng.choice(plan["gpus"])
    remote = rng.choice(gpu["remote_buffers"])
    others = [r for r in range(len(plan["gpus"])) if r not in (gpu["id"], remote["rank"])]
    remote["rank"] = rng.choice(others)
    return True


def fewer(name, key):
    """Leave out one of several sources or channels of an operation."""

    def mutate(plan, rng):
        found = places(plan, lambda ops, k: ops[k]["name"] in name and len(ops[k][key]) > 2)
        if found:
            _, ops, k = rng.choice(found)
            del ops[k][key][rng.randrange(len(ops[k][key]))]
        return bool(found)

    return mutate


def twice(plan, rng):
    """Add one of several messages twice instead of another."""
    found = places(plan, lambda ops, k: len(ops[k].get("src_buff", ())) > 2)
    if found:
        _, ops, k = rng.choice(found)
        one, other = rng.sample(range(len(ops[k]["src_buff"])), 2)
        ops[k]["src_buff"][one] = ops[k]["src_buff"][other]
    return bool(found)


def wraps(plan, rng):
    """Drop a target that tells the executor where a source in scratch wraps."""
    found = places(plan, lambda ops, k: ops[k]["name"] == "re" and len(ops[k]["dst_buff"]) > 1)
    if found:
        _, ops, k = rng.choice(found)
        ops[k]["dst_buff"].pop()
    return bool(found)


def double(plan, _rng):
    plan["use_double_scratch_buffer"] = False  # an allreduce is right without it
    return plan["protocol"] == "LL" and plan["collective"] == "allgather"


KINDS = {
    "drop data": drop(DATA - {"pws"}),
    "drop signal": drop({"signal"}),
    "drop wait": drop({"wait"}),
    "drop pws": drop({"pws"}),
    "drop semaphore": drop({"sem_acquire", "sem_release"}),
    "nop behind wait": drop_nop({"wait", "sem_acquire"}, DATA),
    "nop before signal": drop_nop(DATA, SPEAKS),
    "source": shift("src_buff"),
    "target": shift("dst_buff"),
    "credit": credit,
    "unit": unit,
    "number": number,
    "peer": peer,
    "owner": owner,
    "double": double,
    "fewer sources": fewer({"re", "repkt"}, "src_buff"),
    "fewer waits": fewer({"wait"}, "channel_ids"),
    "fewer signals": fewer({"signal"}, "channel_ids"),
    "twice": twice,
    "wraps": wraps,
}


@pytest.mark.slow
def test_all_planted_faults_are_found():
    rng = random.Random(20261122)
    bases = [plan for base in BASES for plan in compiled(*base)]
    for machine, options in FOLDED:
        done = folded(machine, "reduce-scatter", 3, **options)[1]
        bases += [json.loads(artefact.data) for artefact in done.artefacts]
    assert all(accepted(plan) for plan in bases)
    planted, missed = set(), []
    for turn in range(100 * WANTED):  # some kinds have few different faults
        if len(planted) == WANTED:
            break
        kind = sorted(KINDS)[turn % len(KINDS)]
        base = rng.choice(bases)
        mutant = copy.deepcopy(base)
        if not KINDS[kind](mutant, rng):
            continue
        text = json.dumps(mutant)
        if mutant == base or text in planted:
            continue
        planted.add(text)
        if accepted(mutant):
            missed.append(kind)
    assert (len(planted), missed) == (WANTED, [])


def accepted(plan):
    data = json.dumps(plan).encode()
    return verify_bytes(data, profile("mscclpp"), subject="mutant").ok
