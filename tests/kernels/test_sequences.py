"""Sequences of chunks, hop by hop, against lists of lists."""

import random
from itertools import pairwise

import numpy as np

from colsynth.kernels.sequences import find_runs, reverse_sequences, sort_by_port
from tests.each import each


def offsets(parts):
    return np.cumsum([0] + [len(part) for part in parts])


def joined(parts, kind=np.uint16):
    return np.array([x for part in parts for x in part], kind)


@each("seed", range(20))
def test_sequences_are_turned_around_and_put_elsewhere(seed):
    rng = random.Random(seed)
    old = [[rng.randrange(99) for _ in range(rng.randint(0, 5))] for _ in range(rng.randint(1, 6))]
    now = rng.sample(range(len(old)), len(old))
    new = [old[h][::-1] for h in now]
    found = reverse_sequences(joined(old), offsets(old), np.array(now), offsets(new))
    assert found.tolist() == joined(new).tolist()
    assert found.dtype == np.uint16


def random_arrivals(rng):
    """Return, for every GPU and round, the (port, chunk) that arrive; each port once a round."""
    ports = [rng.randint(0, 4) for _ in range(rng.randint(1, 5))]
    rounds = rng.randint(1, 8)
    table = [
        [
            [(p, rng.randrange(99)) for p in rng.sample(range(k), rng.randint(0, k))]
            for _ in range(rounds)
        ]
        for k in ports
    ]
    return ports, rounds, table


@each("seed", range(20))
def test_logs_are_sorted_by_port_and_keep_their_order_within(seed):
    ports, _, table = random_arrivals(random.Random(seed))
    logs = [[item for arrived in row for item in arrived] for row in table]
    log = joined([[chunk for _, chunk in items] for items in logs])
    port = joined([[p for p, _ in items] for items in logs], np.uint8)
    by_hop = [
        [chunk for p, chunk in items if p == q]
        for items, k in zip(logs, ports, strict=True)
        for q in range(k)
    ]
    first_hop = np.cumsum([0, *ports])
    sort_by_port(log, port, offsets(logs), first_hop, offsets(by_hop))
    assert log.tolist() == joined(by_hop).tolist()


@each("seed", range(40))
def test_runs_begin_where_a_hop_has_paused_wherever_the_calls_are_cut(seed):
    rng = random.Random(seed)
    ports, rounds, table = random_arrivals(rng)
    first_hop = np.cumsum([0, *ports])
    logs = [[p for arrived in row for p, _ in arrived] for row in table]
    port, start = joined(logs, np.uint8), offsets(logs)
    expected = []
    for v, row in enumerate(table):
        for p in range(ports[v]):
            sends = [r for r, arrived in enumerate(row) if p in [q for q, _ in arrived]]
            for place, r in enumerate(sends):
                if place == 0 or sends[place - 1] != r - 1:
                    expected.append((int(first_hop[v]) + p, r, place))

    seen, hops = np.zeros(len(ports), np.int64), int(first_hop[-1])
    last, count = np.full(hops, -2), np.zeros(hops, np.int64)
    run = np.empty((3, len(port)), np.int64)
    runs = 0
    cuts = sorted({0, rounds, *(rng.randint(0, rounds) for _ in range(2))})
    for lo, hi in pairwise(cuts):
        sent = np.array([[len(row[r]) for r in range(lo, hi)] for row in table], np.int32)
        tables = (start, seen, port, sent, first_hop, last, count)
        runs = find_runs(lo, hi - lo, *tables, *run, runs)
    assert sorted(map(tuple, run[:, :runs].T.tolist())) == sorted(expected)
    assert count.sum() == len(port)
