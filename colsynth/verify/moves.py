"""Who sends which chunk to whom, and the trees that the chunks of a rank take."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from colsynth.model import Header, ThreadblockProgram
from colsynth.verify.contents import evaluate
from colsynth.verify.contract import IN_PLACE, OUT_OF_PLACE, REDUCING, layout
from colsynth.verify.execute import UNBOUNDED, execute
from colsynth.verify.races import locate
from colsynth.verify.table import tabulate
from colsynth.verify.units import resolve


class Move(NamedTuple):
    """A chunk on its way to another rank.

    Parameters
    ----------
    source, target : int
        Ranks.
    chunk : int
        Number over the whole collective; see `contract.contributions`.
    ranks : int
        Bit mask of the ranks whose contributions have been added.
    """

    source: int
    target: int
    chunk: int
    ranks: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A rank of a tree, with what hangs below it."""

    rank: int
    below: tuple[Branch, ...] = ()


@dataclass(frozen=True, slots=True)
class Phase:
    """A tree of one rank.

    Parameters
    ----------
    inwards : bool
        Whether chunks are reduced towards the root; otherwise they leave it.
    tree : Branch
    """

    inwards: bool
    tree: Branch


Trees = tuple[Phase, ...]
"""What happens to a chunk: it is reduced, or copied, or first one and then the other."""


def moves(program: ThreadblockProgram) -> list[Move]:
    """Return every chunk that is sent, in an order in which the program may run.

    Parameters
    ----------
    program : ThreadblockProgram
        Of one that does not finish, what is sent before it stops.
    """
    header = program.header
    units = resolve(tabulate(program))
    order = execute(units, depth=UNBOUNDED, group=UNBOUNDED, tiles=1).order
    scratch = np.array([gpu.scratch_chunks for gpu in program.gpus], np.int64)
    memory = layout(header, IN_PLACE if header.in_place else OUT_OF_PLACE, scratch)
    outcome = evaluate(units, order, memory, *locate(units.table, memory))
    chunk, sent = outcome.numbers.chunk.tolist(), outcome.sent.tolist()
    found = []
    for unit in order.tolist():
        first, last = outcome.span[unit].tolist()
        if first < last:
            source, target, _ = units.connections[units.send[unit]]
            numbers = sent[first:last]
            found += [Move(source, target, chunk[n], outcome.ranks(n)) for n in numbers]
    return found


def trees_of(found: Iterable[Move], header: Header, root: int) -> dict[Trees, int]:
    """Return the trees that chunks of a rank take, with their number of chunks, most first.

    Chunks of a rank are those that it has at first; where ranks are added up, those that are
    complete there first.

    Parameters
    ----------
    found : iterable of Move
        All moves of a program, in order.
    header : Header
        Of the program.
    root : int
    """
    everyone = (1 << header.ranks) - 1
    reduces = header.collective in REDUCING
    of_chunk: dict[tuple[int, int], list[Move]] = defaultdict(list)
    for move in found:  # in custom collectives, chunks of several ranks share a number
        of_chunk[move.chunk, 0 if reduces else move.ranks].append(move)
    counted: Counter[Trees] = Counter()
    for ways in of_chunk.values():
        whole = [x for x in ways if not reduces or x.ranks == everyone]
        parts = [x for x in ways if reduces and x.ranks != everyone]
        phases = []
        if reduces:
            if any(x.target == root for x in whole) or not _joins(root, parts, everyone):
                continue
            phases.append(Phase(True, _inwards(root, parts, everyone)))
        elif ways[0].ranks != 1 << root:
            continue
        if any(x.source == root for x in whole):
            phases.append(Phase(False, _outwards(root, whole)))
        counted[tuple(phases)] += 1
    return dict(counted.most_common())


def _joins(root: int, parts: list[Move], everyone: int) -> bool:
    """Whether partial sums reach a rank that complete all contributions there."""
    found = 1 << root
    for part in parts:
        found |= part.ranks if part.target == root else 0
    return found == everyone


def _inwards(rank: int, parts: list[Move], ranks: int) -> Branch:
    """Return the tree of partial sums that arrive at a rank and go into a sum of `ranks`."""
    below = []
    for place, part in enumerate(parts):
        if part.target == rank and part.ranks & ~ranks == 0:
            below.append(_inwards(part.source, parts[:place], part.ranks))
    return Branch(rank, tuple(below))


def _outwards(root: int, whole: list[Move]) -> Branch:
    """Return the tree of copies: every rank below the one that it first got the chunk from."""
    below: dict[int, list[int]] = defaultdict(list)
    reached = {root}
    for move in whole:
        if move.source in reached and move.target not in reached:
            reached.add(move.target)
            below[move.source].append(move.target)

    def branch(rank: int) -> Branch:
        return Branch(rank, tuple(map(branch, below[rank])))

    return branch(root)
