"""Which messages use a file: what the module says against the contract, call by call."""

from itertools import product
from random import Random

import pytest

from colsynth.model import Collective, Header
from colsynth.runtimes import profile, taken_sizes
from colsynth.runtimes.selection import (
    dividing,
    never_usual,
    parts_of_chunks,
    unused,
    usual_size,
)

PER_RANK = (Collective.ALLGATHER, Collective.REDUCE_SCATTER, Collective.ALLTOALL)


def header(collective, ranks, chunks, least=0, most=None):
    return Header("", collective, "Simple", ranks, chunks, 1, True, True, least, most)


def selected(runtime, head, elements, width):
    """Say whether the runtime selects the file (contract 1.4), for elements of all ranks."""
    size = elements * width
    in_bytes = runtime == "msccl" and head.collective in ("allgather", "broadcast")
    total = size if in_bytes else elements
    most = size if head.max_bytes is None else head.max_bytes
    return total > 0 and head.min_bytes <= size <= most and total % head.chunks == 0


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl"])
def test_calls_use_a_file_where_the_contract_says_so(runtime):
    random = Random(11)
    for _ in range(2000):
        collective = random.choice(list(profile(runtime).collectives))
        ranks, width = random.randint(2, 12), random.choice((1, 2, 4, 8))
        shards = ranks if collective in PER_RANK else 1
        chunks = shards * random.choice((1, 2, 3, 6, 7, 8, 12, 48))
        head = header(
            collective, ranks, chunks, random.choice((0, 100)), random.choice((None, 4096))
        )
        elements = shards * random.randint(1, 200)
        law = taken_sizes(head, profile(runtime), width)
        assert law.takes(elements * width) == selected(runtime, head, elements, width)


@pytest.mark.parametrize("runtime", ["msccl", "msccl-executor", "rccl", "mscclpp"])
def test_chunks_may_be_cut_into_the_divisors_of_their_parts(runtime):
    target = profile(runtime)
    for collective in (Collective.ALLGATHER, Collective.ALLREDUCE):
        for size, chunks, ranks in ((2**20, 16, 16), (10**9, 32, 16), (10**6, 8, 8), (2**20, 7, 7)):
            parts = parts_of_chunks(size, chunks, collective, ranks, target)
            for number in range(1, 100):
                law = taken_sizes(header(collective, ranks, chunks * number), target)
                assert law.takes(size) == (parts > 0 and parts % number == 0)


def test_the_largest_divisor():
    assert [dividing(20, most) for most in (0, 1, 3, 9, 19, 50)] == [0, 1, 2, 5, 10, 20]
    assert [dividing(0, most) for most in (0, 1, 3, 9)] == [0, 1, 2, 8]
    assert [dividing(25, 9, least) for least in (1, 5, 6)] == [5, 5, 8]
    for parts, most in product(range(1, 100), range(1, 120)):
        assert dividing(parts, most) == max(n for n in range(1, most + 1) if parts % n == 0)
    assert [dividing(3 << 40, 2**most) for most in (39, 41, 62)] == [2**39, 3 << 39, 3 << 40]


def test_sizes_that_ranks_cannot_share_are_those_of_nccl_tests():
    """Of 12 ranks each gets 16 bytes less than a twelfth of a gigabyte, at most."""
    twelve = [header(Collective.ALLGATHER, 12, 12 * n) for n in (1, 4, 8)]
    laws = [taken_sizes(head, profile("rccl")) for head in twelve]
    assert [law.takes(2**30) for law in laws] == [True, True, False]
    assert all(law.takes(usual_size(2**30, Collective.ALLGATHER, 12)) for law in laws)


def test_no_call_has_a_part_of_an_element():
    law = taken_sizes(header(Collective.ALLREDUCE, 4, 8), profile("msccl"))
    assert [size for size in range(30, 70) if law.takes(size)] == [32, 64]
    assert law.called([32, 33, 36]) == [32, 33, 36]
    shared = taken_sizes(header(Collective.ALLGATHER, 3, 3), profile("msccl"))
    assert shared.called([1000, 1001, 1008]) == [960, 1001, 1008]


def test_chunks_with_other_odd_factors_are_never_used():
    for chunks, usual in ((48, False), (7, False), (64, True), (1, True)):
        law = taken_sizes(header(Collective.ALLREDUCE, 8, chunks), profile("msccl"))
        assert law.takes_usual() == usual
        assert any(law.takes(2**k) for k in range(40)) == usual
        assert (never_usual(law) is None) == usual


def test_it_is_told_which_calls_do_not_use_a_file():
    law = taken_sizes(header(Collective.ALLREDUCE, 6, 48), profile("rccl"))
    assert unused(law).startswith("no message of a power of two bytes uses the file; it is for")
    assert unused(law, 3 * 2**20) is None
    assert unused(law, 2**20).startswith("no message of 1 MiB uses the file; it is for multiples")
    assert unused(taken_sizes(header(Collective.ALLREDUCE, 6, 64), profile("rccl"))) is None
    assert unused(taken_sizes(header(Collective.ALLGATHER, 6, 48), profile("rccl"))) is None
    odd = taken_sizes(header(Collective.ALLGATHER, 6, 42), profile("rccl"))
    assert unused(odd).startswith("no message of a power of two times 3 bytes uses the file")


@pytest.mark.parametrize("ranks", [2, 3, 6, 8, 12, 24, 56])
def test_usual_sizes_are_powers_of_two_times_an_odd_factor_that_ranks_share(ranks):
    cases = product(
        (1, 1000, 2**20, 2**30, 2**30 + 1), (Collective.ALLGATHER, Collective.ALLREDUCE)
    )
    for most, collective in cases:
        found = usual_size(most, collective, ranks)
        odd = ranks // (ranks & -ranks) if collective is Collective.ALLGATHER else 1
        assert found <= most < max(2 * found, odd)
        assert found == most or (found // odd).bit_count() == 1


def test_the_law_is_told_in_words():
    law = taken_sizes(header(Collective.ALLREDUCE, 8, 48, 1, 2**31 - 1), profile("msccl"))
    assert str(law) == "multiples of 192 bytes (48 elements of 4 bytes), below 2 GiB"
    assert law.as_object()["multiple_bytes"] == 192
