"""What no graph with so many nodes and ports beats (the Moore bound)."""

from __future__ import annotations


def moore_steps(size: int, ports: int, *, duplex: bool) -> int:
    """Return the least diameter of graphs with so many nodes and ports (the Moore bound)."""
    reached, level, steps = 1, ports, 0
    while reached < size:
        steps += 1
        reached += level
        level *= ports - 1 if duplex else ports
        if not level:
            return size - 1
    return steps


def moore_distances(size: int, ports: int, *, duplex: bool) -> int:
    """Return the least sum of the distances from a node to all others."""
    left, level, distance, total = size - 1, ports, 1, 0
    while left > 0:
        total += distance * min(level, left)
        left -= level
        level = max(1, level * (ports - 1 if duplex else ports))
        distance += 1
    return total
