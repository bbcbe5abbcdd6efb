"""Max-min fair rates, kept up to date, equal progressive filling from scratch."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colsynth.kernels.sharing import TOLERANCE, enter, leave, other_links, rate_of, settle
from tests.reference.simulate import Connection, Flow, share


def filled(routes, caps, capacity):
    """Return the rate of each flow: all rise together until something is full."""
    flows = {c: Flow(Connection(route, caps[c], 0.0, 0.0), 1.0) for c, route in routes.items()}
    share(list(flows.values()), capacity)
    return {c: flow.rate for c, flow in flows.items()}


class Network:
    """The arrays of the kernel, and a plain set of the flows that are there."""

    def __init__(self, rng, links, connections):
        self.capacity = np.array([rng.choice((1.0, 2.5, 10.0, 40.0)) for _ in range(links)])
        self.routes = [
            tuple(rng.sample(range(links), rng.randint(1, min(4, links))))
            for _ in range(connections)
        ]
        self.caps = np.array([rng.choice((0.5, 3.0, 24.0, 1e18)) for _ in range(connections)])
        lengths = [len(route) for route in self.routes]
        self.first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.route = np.array([link for route in self.routes for link in route], np.uint32)
        self.other = other_links(self.first, self.route, links)
        loads = np.bincount(self.route, minlength=links)
        self.base = np.concatenate([[0], np.cumsum(loads)]).astype(np.int64)
        self.load = np.zeros(links, np.int32)
        self.member = np.empty(self.route.size, np.int32)
        self.place = np.empty(self.route.size, np.int64)
        self.flow, self.across = np.empty((2, self.route.size), np.uint32)
        self.ceiling = np.empty(self.route.size)
        self.level = np.full(links + 1, np.inf)
        self.rate = np.zeros(connections)
        self.here = set()

    def change(self, connections):
        """Let flows come or go at one moment, and settle."""
        queued = np.zeros(self.capacity.size + 1, np.bool_)
        lists = self.base, self.load, self.member, self.flow, self.across, self.ceiling
        stale = np.zeros(len(self.routes), np.bool_)
        changed = np.zeros(len(self.routes) + 1, np.uint32)
        found = 0
        for c in connections:
            if c in self.here:
                leave(self.first, self.route, self.place, *lists, c)
            else:
                enter(self.first, self.route, self.other, self.caps, self.place, *lists, c)
                self.rate[c], stale[c], changed[found] = 0.0, True, c
                found += 1
            self.here ^= {c}
            queued[list(self.routes[c])] = True
        links = self.capacity.size
        queue = np.zeros(links + 1, np.uint32)
        dirty = np.flatnonzero(queued)
        queued[links] = True
        queue[: dirty.size] = dirty
        found = settle(
            queue, dirty.size, queued, np.zeros(links, np.int32), np.zeros(links, np.int32),
            self.capacity, self.first, self.route, self.base, self.load, self.flow, self.across,
            self.ceiling, self.level, np.zeros(self.route.size), self.rate, stale, changed, found,
        )  # fmt: skip
        assert np.flatnonzero(queued).tolist() == [links]
        assert stale.sum() == found
        for c in changed[:found].tolist():
            self.rate[c], _ = rate_of(c, self.first, self.route, self.level, self.caps)

    def rates(self):
        return {
            c: rate_of(c, self.first, self.route, self.level, self.caps)[0]
            for c in sorted(self.here)
        }


@given(st.integers(0, 2**32))
def test_flows_that_come_and_go_share_fairly(seed):
    rng = random.Random(seed)
    network = Network(rng, rng.randint(1, 12), rng.randint(1, 24))
    for _ in range(30):
        network.change(rng.sample(range(len(network.routes)), 1))
        rates = network.rates()
        assert rates == {c: network.rate[c] for c in network.here}  # no change went unreported
        for link, capacity in enumerate(network.capacity):
            used = sum(rate for c, rate in rates.items() if link in network.routes[c])
            assert used <= capacity * (1 + 1e-9)
        routes = {c: network.routes[c] for c in network.here}
        expected = filled(routes, network.caps, network.capacity)
        assert rates == pytest.approx(expected, rel=10 * TOLERANCE)


def test_a_full_link_names_itself():
    network = Network(random.Random(1), 1, 2)
    network.caps[:] = 1e9
    network.change([0, 1])
    rate, limiting = rate_of(0, network.first, network.route, network.level, network.caps)
    assert (rate, limiting) == (network.capacity[0] / 2, 0)
    network.change([1])
    assert network.rates() == {0: network.capacity[0]}
    network.caps[0] = network.capacity[0] / 4
    network.change([0])
    network.change([0])
    assert rate_of(0, network.first, network.route, network.level, network.caps)[1] == -1
