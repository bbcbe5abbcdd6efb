"""A slow, exact linear program: the simplex method in fractions, by Bland's rule."""

from __future__ import annotations

from fractions import Fraction


def maximise(costs: list[int], rows: list[list[int]], limits: list[Fraction]) -> Fraction:
    """Return max costs x with rows x <= limits, x >= 0; limits are zero or more."""
    count = len(costs)
    table = [
        [
            *map(Fraction, row),
            *(Fraction(int(i == j)) for j in range(len(rows))),
            Fraction(limit),
        ]
        for i, (row, limit) in enumerate(zip(rows, limits, strict=True))
    ]
    gains = [Fraction(-c) for c in costs] + [Fraction(0)] * (len(rows) + 1)
    basis = list(range(count, count + len(rows)))
    while True:
        entering = next((j for j, gain in enumerate(gains[:-1]) if gain < 0), None)
        if entering is None:
            return gains[-1]
        choices = [
            (row[-1] / row[entering], basis[i], i)
            for i, row in enumerate(table)
            if row[entering] > 0
        ]
        if not choices:
            raise ValueError("unbounded")
        _, _, leaving = min(choices)
        basis[leaving] = entering
        pivot = table[leaving][entering]
        table[leaving] = [value / pivot for value in table[leaving]]
        for row in (*(r for i, r in enumerate(table) if i != leaving), gains):
            factor = row[entering]
            if factor:
                row[:] = [x - factor * y for x, y in zip(row, table[leaving], strict=True)]
