"""Round-by-round matching of uniform direct networks (`colsynth.kernels.rounds`)."""

from __future__ import annotations

import numpy as np

from colsynth.bounds.offsets import group_by, offsets
from colsynth.kernels.rounds import play_rounds, start_rows
from colsynth.kernels.sequences import find_runs, sort_by_port
from colsynth.model import Hops, TimedPhase
from colsynth.synthesis.timed.demands import Lists, Wants
from colsynth.synthesis.timed.phases import chunk_type
from colsynth.synthesis.timed.progress import WorkMeter

_CELLS = 2**22
"""Entries of the table of transfers per GPU and round that one call fills."""


def is_uniform(hops: Hops) -> bool:
    """Whether every hop is one link, and all take equally long and are free on arrival."""
    if not len(hops.links) == len(hops) > 0:
        return False
    return bool((hops.stride == hops.end[0]).all() and (hops.duration == hops.end[0]).all())


def match_rounds(hops: Hops, gpus: int, wants: Wants, turn: int, meter: WorkMeter) -> TimedPhase:
    """Return the phase that matching round by round gives.

    Parameters
    ----------
    hops : Hops
        Uniform.
    gpus : int
    wants : Wants
        Without lists of who wants what; one group.
    turn : int
        Which port of every GPU chooses first in the first round.
    meter : WorkMeter
        Told of progress.
    """
    game = _Game(hops, gpus, wants, turn)
    moved = 1
    while moved:
        moved = game.advance()
        meter.add(moved, game.rounds * game.tick)
    return game.phase()


class _Game:
    """The state of one run of the kernels."""

    def __init__(self, hops: Hops, gpus: int, wants: Wants, turn: int) -> None:
        chunks = len(wants.number)
        own = _by_holder(wants.holders, gpus)
        self.hops, self.wants, self.tick, self.rounds = hops, wants, int(hops.end[0]), 0
        self._turn = turn
        self._own_first, self._own = own.first, own.items
        self._first_hop = np.searchsorted(hops.target, np.arange(gpus + 1)).astype(np.int64)
        self._has = start_rows(chunks, own.first, own.items)
        self._start = offsets(chunks - np.diff(own.first))
        room = int(self._start[-1])
        self._log = np.empty(room, chunk_type(chunks - 1))
        ports = int(np.diff(self._first_hop).max())
        self._port = np.empty(room, np.uint8 if ports <= 2**8 else np.uint16)
        self._visible, self._seen = np.zeros(gpus, np.int64), np.zeros(gpus, np.int64)
        self._at = np.zeros(len(hops), np.int32)
        self._last, self._count = np.full(len(hops), -2), np.zeros(len(hops), np.int64)
        self._runs, self._run = 0, np.empty((3, 0), np.int64)
        self._sent = np.empty((gpus, max(1, _CELLS // gpus // ports)), np.int32)

    def advance(self) -> int:
        """Play some rounds; return the number of transfers."""
        moved, rounds = play_rounds(
            self._sent.shape[1],
            self.rounds + self._turn,
            self.hops.source,
            self._first_hop,
            self._own_first,
            self._own,
            self._has,
            self._visible,
            self._start,
            self._log,
            self._port,
            self._at,
            self._sent,
        )
        self._make_room(int(moved))
        self._runs = find_runs(
            self.rounds,
            rounds,
            self._start,
            self._seen,
            self._port,
            self._sent,
            self._first_hop,
            self._last,
            self._count,
            self._run[0],
            self._run[1],
            self._run[2],
            self._runs,
        )
        self.rounds += int(rounds)
        return int(moved)

    def _make_room(self, more: int) -> None:
        if self._runs + more > self._run.shape[1]:
            grown = np.empty((3, 2 * self._runs + more), np.int64)
            grown[:, : self._runs] = self._run[:, : self._runs]
            self._run = grown

    def phase(self) -> TimedPhase:
        """Return what was sent; the log becomes the phase's sequence of chunks."""
        first = offsets(self._count)
        if int(first[-1]) == len(self._log):
            sort_by_port(self._log, self._port, self._start, self._first_hop, first)
        hop, begun, place = self._run[:, : self._runs]
        order = np.lexsort((begun, hop))
        hop, begun, place = hop[order], begun[order], place[order]
        run_first = np.searchsorted(hop, np.arange(len(self.hops) + 1)).astype(np.int64)
        last = np.ones(len(hop), np.bool_)
        last[:-1] = hop[1:] != hop[:-1]
        following = np.where(last, self._count[hop], np.append(place[1:], 0))
        return TimedPhase(
            direction=self.wants.direction,
            hops=self.hops,
            first=first,
            chunk=self._log[: int(first[-1])],
            run_first=run_first,
            run_start=begun * self.tick,
            run_length=following - place,
        )


def _by_holder(holders: Lists, gpus: int) -> Lists:
    """Return the chunks that each GPU holds."""
    chunk = np.repeat(np.arange(len(holders.first) - 1, dtype=np.int32), np.diff(holders.first))
    first, order = group_by(holders.items, gpus)
    return Lists(first, chunk[order])
