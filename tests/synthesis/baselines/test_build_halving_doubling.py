"""Recursive halving and doubling: log2 N rounds a phase, half as much in each."""

import pytest

from colsynth.errors import InputError


def rounds(program):
    """Return the transfers of every round: by their longest chain of prerequisites."""
    level, found = [], []
    for transfer in program.transfers:
        level.append(1 + max((level[t] for t in transfer.after), default=-1))
        found += [[] for _ in range(level[-1] + 1 - len(found))]
        found[level[-1]].append(transfer)
    return found


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_an_allreduce_takes_twice_the_logarithm_in_rounds(schedule, size):
    found = rounds(schedule("halving-doubling", f"clique:{size}", "allreduce"))
    log = size.bit_length() - 1
    assert len(found) == 2 * log
    halves = [size >> k for k in range(1, log + 1)]
    for transfers, share in zip(found, halves + halves[::-1], strict=True):
        assert len(transfers) == size * share
    assert [{t.source ^ t.target for t in one} for one in found[:log]] == [
        {1 << k} for k in range(log)
    ]


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter"])
def test_half_of_it_takes_the_logarithm(schedule, collective):
    found = rounds(schedule("halving-doubling", "clique:16", collective))
    assert len(found) == 4
    inwards = collective == "reduce-scatter"
    counts = [len(transfers) // 16 for transfers in found]
    assert counts == ([8, 4, 2, 1] if inwards else [1, 2, 4, 8])


@pytest.mark.parametrize(
    ("collective", "instances"), [("allreduce", 1), ("allreduce", 4), ("allgather", 1)]
)
def test_what_partners_exchange_is_one_step(compiled, collective, instances):
    options = {"mode": "in-place", "instances": instances}
    done = compiled("halving-doubling", "dgx-a100", collective, **options)[0]
    sends = sum(
        step.op in ("s", "rcs", "rrs", "rrcs")
        for block in done.artefacts[0].program.gpus[0].threadblocks
        for step in block.steps
    )
    assert sends == 3 * (2 if collective == "allreduce" else 1) * instances


@pytest.mark.parametrize("size", [3, 6, 12])
def test_other_numbers_than_powers_of_two_are_refused(schedule, size):
    with pytest.raises(InputError) as refused:
        schedule("halving-doubling", f"clique:{size}", "allreduce")
    assert refused.value.diagnostic.code == "CS312"
    assert "power of two" in refused.value.diagnostic.phrase
