"""Symbolic execution of steps: memory holds numbers, and equal numbers are equal sums.

Number 0 is memory nobody wrote. Numbers 1 to L - 1 are contributions, of one rank each, to a chunk.
A sum of two numbers gets the next number, and the same one whenever these two are added again. It
is at fault where the chunks differ (`MIXED`) or a rank contributes twice (`DOUBLED`). Whatever is
added to a number at fault, or to 0, gives that number.

Step s does ``kind[s]`` with ``count[s]`` chunks, from location ``source[s]`` on, to ``target[s]``,
-1 where there is none, and takes the message of step ``match[s]``, -1 for none. Messages that are
too short end with 0. Arrays are int64, sets of ranks W words of uint64. O(chunks moved * W). Twin:
tests/reference/contents.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from colsynth.kernels.compiled import njit

RECEIVES, READS, READS_TARGET, SENDS, WRITES = 1, 2, 4, 8, 16
"""What a step does, bits of its kind. Two things that it receives or reads, it adds up."""
SOUND, UNWRITTEN, MIXED, DOUBLED = range(4)
_WORD = 64


class Numbers(NamedTuple):
    """What numbers stand for, N of them, the first L of which are no sums.

    Parameters
    ----------
    chunk : int64 (N,)
        -1 where it is at fault.
    rank : int64 (L,)
        Who contributes; that of 0 means nothing.
    ranks : uint64 (N - L, W)
        The set of those who contribute to a sum, empty where it is at fault.
    left, right : int64 (N - L,)
        The numbers that were added, the smaller one first.
    fault, step : int64 (N,)
        `SOUND` or what is wrong, and the step that added up, -1 for none.
    """

    chunk: Any
    rank: Any
    ranks: Any
    left: Any
    right: Any
    fault: Any
    step: Any


@njit(cache=True, nogil=True)
def execute(order, kind, count, source, target, match, chunk, rank, words, memory):
    """Execute steps in `order` on `memory` (one number per location), which changes.

    `chunk` and `rank` are those of numbers 0 to L - 1. Return `Numbers`; the steps that read memory
    nobody wrote; (steps, 2) begins and ends of what each step sent, and all numbers sent.
    """
    found, many = _empty(chunk, rank, words), rank.size
    table = np.zeros(1024, np.int64)
    undefined, lacking = np.empty(order.size, np.int64), 0
    span, sent, used = np.zeros((kind.size, 2), np.int64), np.empty(1024, np.int64), 0
    data = np.zeros(count.max() if count.size else 0, np.int64)
    for s in order:
        does, size, length = kind[s], count[s], 0
        reads, replaces = does & READS > 0, does & READS_TARGET > 0
        gone = reads and (source[s] < 0 or (replaces and target[s] < 0))
        if does & RECEIVES and not gone and match[s] >= 0:
            begin, end = span[match[s]]
            length = min(size, end - begin)
            data[:length] = sent[begin : begin + length]
        data[length:size] = 0
        if reads and not gone:
            length, lacks = size, False
            for k in range(size):
                value = memory[source[s] + k]
                lacks = lacks or value == 0
                if replaces:
                    data[k] = memory[target[s] + k]
                    lacks = lacks or data[k] == 0
                if replaces or does & RECEIVES:
                    found, table, many, value = _sum(found, table, many, data[k], value, s)
                data[k] = value
            if lacks:
                undefined[lacking] = s
                lacking += 1
        if does & SENDS:
            while used + length > sent.size:
                sent = np.concatenate((sent, sent))
            sent[used : used + length] = data[:length]
            span[s, 0], span[s, 1] = used, used + length
            used += length
        if does & WRITES and target[s] >= 0:
            memory[target[s] : target[s] + size] = data[:size]
    return _resized(found, many), undefined[:lacking].copy(), span, sent[:used].copy()


@njit(cache=True, nogil=True, allocates=True)
def _empty(chunk, rank, words):
    """Return numbers without a sum."""
    fault = np.zeros(rank.size, np.int64)
    fault[0] = UNWRITTEN
    nothing = np.empty(0, np.int64)
    ranks = np.zeros((0, words), np.uint64)
    step = np.full(rank.size, -1, np.int64)
    return Numbers(chunk.copy(), rank, ranks, nothing, nothing.copy(), fault, step)


@njit(cache=True, nogil=True, allocates=True)
def _sum(found, table, many, one, other, step):
    """Return numbers, the table that finds sums, how many numbers there are, and a sum."""
    one, other = min(one, other), max(one, other)
    if found.fault[one]:
        return found, table, many, one
    if found.fault[other]:
        return found, table, many, other
    leaves = found.rank.size
    place = _find(table, found, one, other)
    if table[place]:
        return found, table, many, table[place]
    if many == found.chunk.size:
        found = _resized(found, 2 * many)
    table[place] = many
    row = many - leaves
    found.left[row], found.right[row], found.step[many] = one, other, step
    fault = _unite(found, row, one, other)
    found.fault[many] = fault
    found.chunk[many] = -1 if fault else found.chunk[one]
    many += 1
    if 2 * (many - leaves) > table.size:
        table = np.zeros(4 * table.size, np.int64)
        for number in range(leaves, many):
            left, right = found.left[number - leaves], found.right[number - leaves]
            table[_find(table, found, left, right)] = number
    return found, table, many, many - 1


@njit(cache=True, nogil=True)
def _find(table, found, one, other):
    """Return where the table has the sum of two numbers, or has room for it."""
    place = one * 0x9E3779B1 + other
    place = (place ^ (place >> 29)) & (table.size - 1)
    while table[place]:
        row = table[place] - found.rank.size
        if found.left[row] == one and found.right[row] == other:
            break
        place = (place + 1) & (table.size - 1)
    return place


@njit(cache=True, nogil=True)
def _unite(found, row, one, other):
    """Set the ranks of a sum; return what is wrong with it."""
    if found.chunk[one] != found.chunk[other]:
        return MIXED
    _join(found, row, one)
    if _join(found, row, other):
        found.ranks[row] = 0
        return DOUBLED
    return SOUND


@njit(cache=True, nogil=True)
def _join(found, row, number):
    """Add the ranks of a number to those of a sum; return whether it had one of them."""
    leaves, mine, twice = found.rank.size, found.ranks[row], False
    if number < leaves:
        word = found.rank[number] // _WORD
        bit = np.uint64(1) << np.uint64(found.rank[number] % _WORD)
        twice = mine[word] & bit != 0
        mine[word] |= bit
        return twice
    for word in range(mine.size):
        theirs = found.ranks[number - leaves, word]
        twice = twice or mine[word] & theirs != 0
        mine[word] |= theirs
    return twice


@njit(cache=True, nogil=True, allocates=True)
def _resized(found, many):
    """Return the same numbers, with room for some, or without room for more."""
    leaves, kept = found.rank.size, min(many, found.chunk.size)
    chunk, fault = np.zeros(many, np.int64), np.zeros(many, np.int64)
    step = np.full(many, -1, np.int64)
    left, right = np.zeros(many - leaves, np.int64), np.zeros(many - leaves, np.int64)
    ranks = np.zeros((many - leaves, found.ranks.shape[1]), np.uint64)
    chunk[:kept] = found.chunk[:kept]
    fault[:kept] = found.fault[:kept]
    step[:kept] = found.step[:kept]
    left[: kept - leaves] = found.left[: kept - leaves]
    right[: kept - leaves] = found.right[: kept - leaves]
    ranks[: kept - leaves] = found.ranks[: kept - leaves]
    return Numbers(chunk, found.rank, ranks, left, right, fault, step)
