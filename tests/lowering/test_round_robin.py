"""Round-robin: boxes take turns, segments follow each other, nothing comes too early."""

import pytest

from colsynth.lowering.lower_forest import LowerForest
from colsynth.lowering.round_robin import round_robin


@pytest.fixture
def transfers(lowered):
    def made(collective, segments="1"):
        program = lowered("dgx-a100", collective, boxes=4, until=LowerForest, segments=segments)
        return program.transfers, program.problem.topology

    return made


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter", "allreduce"])
def test_each_comes_after_what_it_needs(transfers, collective):
    found, topology = transfers(collective, "1-2-1")
    order = round_robin(found, topology)
    assert sorted(order) == list(range(len(found)))
    place = {number: at for at, number in enumerate(order)}
    assert all(place[p] < place[t] for t in place for p in found[t].after)


@pytest.mark.parametrize("collective", ["allgather", "reduce-scatter"])
def test_no_two_boxes_send_to_one_at_a_time(transfers, collective):
    """The sends of all GPUs that leave their box, in turn, go to as many different ones."""
    found, topology = transfers(collective)
    sends = {rank: [] for rank in range(topology.size)}
    for number in round_robin(found, topology):
        transfer = found[number]
        if transfer.source // 8 != transfer.target // 8:
            sends[transfer.source].append(transfer.target)
    assert {len(targets) for targets in sends.values()} == {3}
    for at_a_time in zip(*sends.values(), strict=True):
        assert len(set(at_a_time)) == topology.size


def test_sums_for_other_boxes_come_first(transfers):
    """Within a box the same boxes are served first everywhere, the own one last."""
    found, topology = transfers("reduce-scatter")
    shifts = {}
    for number in round_robin(found, topology):
        transfer = found[number]
        if transfer.source // 8 == transfer.target // 8:
            root = transfer.chunk
            pair = transfer.source, transfer.target
            shifts.setdefault(pair, []).append((root // 8 - transfer.source // 8) % 4)
    assert set(map(tuple, shifts.values())) == {(1, 2, 3, 0)}


def test_segments_follow_each_other_by_one_beat(transfers):
    found, topology = transfers("allgather", "1-1-1")
    order = [found[number] for number in round_robin(found, topology)]
    first = {}
    for at, transfer in enumerate(order):
        first.setdefault((transfer.origin.segment, bool(transfer.after)), at)
    assert first[0, False] < first[1, False] < first[0, True] < first[2, False] < first[1, True]


def test_a_second_phase_may_lag_behind(transfers):
    """Before the first copies, as many segments more as the lag has beats begin to be added up."""
    found, topology = transfers("allreduce", "1-1-1-1-1-1")

    def begun(lag):
        order = [found[number] for number in round_robin(found, topology, lag)]
        copies = next(at for at, transfer in enumerate(order) if transfer.origin.phase == 1)
        return {transfer.origin.segment for transfer in order[:copies] if not transfer.after}

    assert begun(0) == {0, 1}
    assert begun(2) == {0, 1, 2, 3}


def test_data_may_wait_before_it_is_passed_on(transfers):
    """Before the first is passed on, more segments begin by as many as it waits beats."""
    found, topology = transfers("allgather", "1-1-1-1-1")

    def begun(spacing):
        order = [found[number] for number in round_robin(found, topology, spacing=spacing)]
        passed_on = next(at for at, transfer in enumerate(order) if transfer.after)
        return {transfer.origin.segment for transfer in order[:passed_on]}

    assert begun(0) == {0, 1}
    assert begun(2) == {0, 1, 2, 3}
