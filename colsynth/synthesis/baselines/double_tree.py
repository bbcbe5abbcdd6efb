"""Two complementary binary trees: whoever passes data on in one is a leaf of the other.

So each tree can carry half of a message at full bandwidth, in a logarithm of steps.

Source: P. Sanders, J. Speck, J. Träff, "Two-tree algorithms for full bandwidth broadcast,
reduction and scan", Parallel Computing 35 (2009). NCCL builds the same trees for an even
number of places (src/graph/trees.cc); for an odd one its root passes data on in both.
"""

from __future__ import annotations

from collections.abc import Sequence

Parents = tuple[int | None, ...]
"""The parent of every place; None of the root."""


def double_tree(size: int) -> tuple[Parents, Parents]:
    """Return two binary trees over `size` places, logarithmically deep.

    Of an even number, place 0 is above a tree of the others, and the second tree is the
    first one mirrored. Of an odd number, the second is the first one shifted by a place.
    """
    if size % 2:
        first = _renamed(range(size), [_above(place + 1, size + 1) for place in range(size)])
        return first, _shifted(first)
    tree = tuple(None if not place else _above(place, size) or 0 for place in range(size))
    return tree, _mirrored(tree)


def hung(root: int, size: int) -> tuple[Parents, Parents]:
    """Return the two trees of all places but `root`, both hung below it."""
    others = [place for place in range(size) if place != root]
    found = []
    for tree in double_tree(len(others)) if others else ((), ()):
        parents: list[int | None] = [None] * size
        for place, parent in zip(others, tree, strict=True):
            parents[place] = root if parent is None else others[parent]
        found.append(tuple(parents))
    return found[0], found[1]


def _above(number: int, size: int) -> int | None:
    """Return the parent of a number from 1 on, below `size`; None of the topmost.

    In order: odd numbers are leaves, the others halve what their parent leaves them.
    """
    bit = number & -number
    up = (number ^ bit) | (bit << 1)
    return (up if up < size else number ^ bit) or None


def _renamed(places: Sequence[int], above: Sequence[int | None]) -> Parents:
    return tuple(None if number is None else places[number - 1] for number in above)


def _shifted(tree: Parents) -> Parents:
    size = len(tree)
    moved = [tree[(place - 1) % size] for place in range(size)]
    return tuple(None if parent is None else (parent + 1) % size for parent in moved)


def _mirrored(tree: Parents) -> Parents:
    last = len(tree) - 1
    return tuple(None if parent is None else last - parent for parent in reversed(tree))
