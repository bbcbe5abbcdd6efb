"""Tensors are copied where a call is not of a program's mode, and only there."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product

import pytest

from colsynth.model import Collective, Header

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs colsynth[torch]")

RANKS, RANK, SHARD = 4, 2, 6


def tensors(collective, place):
    """Return input and output: apart (False), in place (True), or with another overlap (None)."""
    import torch

    memory = torch.arange(3.0 * RANKS * SHARD)
    whole = memory[SHARD:][: RANKS * SHARD]
    first = {True: RANK * SHARD, False: -SHARD, None: RANK * SHARD - 1}[place]
    shard = memory[SHARD + first :][:SHARD]
    if collective is Collective.ALLGATHER:
        return shard, whole
    if collective is Collective.REDUCE_SCATTER:
        return whole, shard
    start = {True: SHARD, False: (RANKS + 1) * SHARD, None: 2 * SHARD}[place]
    return whole, memory[start:][: RANKS * SHARD]


@pytest.mark.parametrize("modes", [(True, False), (False, True), (True, True)])
def test_programs_get_a_mode_that_they_serve(modes):
    import torch

    from colsynth.torch.aliases import _aliased, fitted

    for name, place in product(("allgather", "reduce-scatter", "alltoall"), (True, False, None)):
        collective = Collective(name)
        source, target = tensors(collective, place)
        assert _aliased(collective, source, target, RANK) is place
        before, held = source.clone(), target.clone()
        header = Header("", collective, "Simple", RANKS, RANKS, 1, *modes)
        given, taken = fitted(header, RANK, source, target)
        found = _aliased(collective, given, taken, RANK)
        assert found is not None
        assert modes[0] if found else modes[1]
        assert torch.equal(given, before)
        assert taken.numel() == target.numel()
        if place is not None and modes[not place]:
            assert (given.data_ptr(), taken.data_ptr()) == (source.data_ptr(), target.data_ptr())
            assert torch.equal(taken, held)


def test_one_element_of_a_column_is_a_row_with_bytes():
    """PyTorch keeps its stride in `view`, and then refuses a view of bytes."""
    import torch

    from colsynth.torch.arguments import flat

    memory = torch.arange(10.0)
    row = flat(memory[::5][1:])
    assert row.view(torch.uint8).shape == (4,)
    assert row.data_ptr() == memory[5:].data_ptr()
    assert flat(memory[::5]) is None
    assert flat(memory[:0]).shape == (0,)
