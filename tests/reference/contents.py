"""Symbolic execution of steps with lists and dictionaries: the slow twin of kernels/sums.py."""

from __future__ import annotations

from colsynth.verify.contents import UNDEFINED, Values

COPIES, RECEIVED, KEPT = ("s", "cpy"), ("r", "rcs"), ("s", "rrs")
SENT = ("s", "rcs", "rrs", "rrcs")


def execute(steps, inputs, memory):
    """Execute (op, count, source, target, match) in order; match is the place of a step.

    `inputs` are (chunk, rank) of values 1, 2, ... that memory may hold. Return the values, the
    places of steps that read memory nobody wrote, and what each step sent.
    """
    values = Values()
    for chunk, rank in inputs:
        values.leaves([chunk], rank)
    undefined, sent = [], [[] for _ in steps]
    for place, (op, count, source, target, match) in enumerate(steps):
        nothing = [UNDEFINED] * count
        local = memory[source : source + count] if source >= 0 else nothing
        if op in COPIES:
            data, read = local, local if source >= 0 else []
        elif op == "re":
            there = source >= 0 and target >= 0
            mine = memory[target : target + count] if there else nothing
            data = [values.add(a, b) for a, b in zip(mine, local, strict=True)]
            read = mine + local if there else []
        else:
            data, read = ((sent[match] if match >= 0 else []) + nothing)[:count], []
            if op not in RECEIVED:
                data = [values.add(a, b) for a, b in zip(data, local, strict=True)]
                read = local if source >= 0 else []
        if UNDEFINED in read:
            undefined.append(place)
        if op in SENT:
            sent[place] = data
        if op not in KEPT and target >= 0:
            memory[target : target + count] = data
    return values, undefined, sent
