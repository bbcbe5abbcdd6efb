"""Matching on direct networks whose links all take equally long: round by round.

Every GPU wants every chunk. Each GPU keeps a log of the chunks it holds in order of
arrival (its own first), each hop a cursor into its sender's log. In a round every hop
advances its cursor to the first chunk that its target neither holds nor is being sent,
and sends it; what was sent is in the log from the next round on. Cursors never go back,
because a chunk that a target has it keeps: each log entry is read once per hop. The
ports of a GPU take turns to choose first. A hop writes only to its target's row and log,
so targets are matched in parallel, with the same result on any number of threads.

Time O(hops * chunks), memory per (GPU, chunk) one bit, a log entry and a port byte.
Method: TACOS (arXiv 2304.05301) without its random search. Twin: tests/reference/matching.py.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from colsynth.kernels.compiled import njit

_BLOCK = 64
"""Targets matched by one thread at a time."""

_SHARED = 128
"""Blocks from which on threads share them. Threads wait for each other in every round, which
costs more than it gains where rounds are short, and many times more on a busy machine."""


@njit(cache=True, nogil=True, inline="always")
def _lacks(row, chunk):
    return (row[chunk >> 6] >> np.uint64(chunk & 63)) & np.uint64(1) == 0


@njit(cache=True, nogil=True, inline="always")
def _mark(row, chunk):
    row[chunk >> 6] |= np.uint64(1) << np.uint64(chunk & 63)


@njit(cache=True, nogil=True)
def start_rows(chunks, own_first, own):
    """Return the bitset (GPUs, words) of what everybody holds at first."""
    gpus = own_first.size - 1
    has = np.zeros((gpus, (chunks + 63) >> 6), np.uint64)
    for v in range(gpus):
        for i in range(own_first[v], own_first[v + 1]):
            _mark(has[v], own[i])
    return has


@njit(cache=True, nogil=True)
def _match_target(v, turn, source, first_hop, own_first, own, has, visible, start, log, port, at):
    """Match all hops into one GPU for one round; return how many send.

    `at` holds the cursors; `visible` the lengths of logs that may be read.
    """
    begin, ports = first_hop[v], first_hop[v + 1] - first_hop[v]
    row = has[v]
    place = start[v] + visible[v]
    sent = 0
    for k in range(ports):
        p = (k + turn) % ports
        h = begin + p
        u = source[h]
        held = own_first[u + 1] - own_first[u]
        most = held + visible[u]
        i = at[h]
        while i < most:
            chunk = own[own_first[u] + i] if i < held else log[start[u] + i - held]
            i += 1
            if _lacks(row, chunk):
                _mark(row, chunk)
                log[place + sent] = chunk
                port[place + sent] = p
                sent += 1
                break
        at[h] = i
    return sent


@njit(cache=True, nogil=True)
def _match_block(
    b, sent, turn, source, first_hop, own_first, own, has, visible, start, log, port, at
):
    """Match all hops into the GPUs of one block for one round."""
    for v in range(b * _BLOCK, min(sent.size, (b + 1) * _BLOCK)):
        sent[v] = _match_target(
            v, turn, source, first_hop, own_first, own, has, visible, start, log, port, at
        )


@njit(cache=True, nogil=True, parallel=True)
def play_rounds(
    rounds, turn, source, first_hop, own_first, own, has, visible, start, log, port, at, sent
):
    """Play up to `rounds` rounds; return (transfers, rounds played).

    Fewer rounds are played where nobody finds anything to send.

    Parameters
    ----------
    rounds, turn : int
        How many rounds, and the number of the first.
    source : int32 (H,)
        Sender of each hop; hops of target v are ``first_hop[v]`` to ``first_hop[v + 1]``.
    own_first, own : int64 (N + 1,), int32
        What each GPU holds at first.
    has : uint64 (N, words)
        Who holds or is being sent what; updated, as are the following.
    visible : int64 (N,)
        Chunks received by each GPU.
    start : int64 (N + 1,)
        Where each GPU's log of received chunks begins.
    log : uint16 or uint32 (M,)
    port : uint8 or uint16 (M,)
        Which of the target's hops brought each chunk of the log.
    at : int32 (H,)
        Cursors.
    sent : int32 (N, rounds)
        Chunks that each GPU received in each of these rounds; the result.
    """
    gpus = first_hop.size - 1
    blocks = (gpus + _BLOCK - 1) // _BLOCK
    total = 0
    for r in range(rounds):
        who = turn + r, source, first_hop, own_first, own, has, visible, start, log, port, at
        if blocks < _SHARED:
            for b in range(blocks):
                _match_block(b, sent[:, r], *who)
        else:
            for b in prange(blocks):
                _match_block(b, sent[:, r], *who)
        moved = 0
        for v in range(gpus):
            visible[v] += sent[v, r]
            moved += sent[v, r]
        if moved == 0:
            return total, r
        total += moved
    return total, rounds
