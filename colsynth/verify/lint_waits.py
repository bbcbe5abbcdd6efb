"""Rules about dependencies: D01 to D06 (contract 6); D08 is found by execution."""

from __future__ import annotations

import numpy as np

from colsynth.runtimes.profile import Profile
from colsynth.runtimes.rules import Findings
from colsynth.verify.lint_steps import chains
from colsynth.verify.table import MISSING, NOP, Bools, Ints, Table


def lint_waits(table: Table, profile: Profile, findings: Findings) -> None:
    """Check what every step waits for, and every nop."""
    needed = np.zeros(table.steps, dtype=np.bool_)
    waiting = np.flatnonzero(table.wait_id >= 0)
    right, awaited = _right(table, profile, waiting)
    needed[awaited] = True
    for step in waiting[~right].tolist():
        _wait(table, profile, findings, step, needed)
    useless = table.signals & ~needed & (table.op != NOP)
    for step in np.flatnonzero(useless).tolist():
        findings.add(
            "D06", "harmless but wasteful: hasdep is 1, and nobody waits", *table.place(step)
        )
    for step in np.flatnonzero(_odd_nops(table)).tolist():
        _nop(table, findings, step)
    for chain in chains(table):
        for step in chain[1:]:
            if table.op[step - 1] == NOP:
                text = "the nop before this reduction hands its dependency to a later step"
                findings.add("D05", text, *table.place(step))


def _right(table: Table, profile: Profile, waiting: Ints) -> tuple[Bools, Ints]:
    """Return which steps wait as they may, almost all of them, and what these wait for."""
    block, ordinal = table.wait[waiting], table.wait_step[waiting]
    right = (block != MISSING) & (block != table.threadblock[waiting]) & (ordinal >= 0)
    right &= table.wait_id[waiting] <= profile.max_wait_target
    there = np.where(right, block, 0)
    awaited = table.start[there] + ordinal
    right &= awaited < table.start[there + 1]
    step = np.where(right, awaited, 0)
    right &= (table.op[step] != NOP) & table.signals[step]
    return right, awaited[right]


def _wait(table: Table, profile: Profile, findings: Findings, step: int, needed: Bools) -> None:
    place = table.place(step)
    target, ordinal = int(table.wait_id[step]), int(table.wait_step[step])
    block = int(table.wait[step])
    if block == MISSING:
        findings.add("D01", f"depid is {target}; rank {place[0]} has no such threadblock", *place)
        return
    if block == table.threadblock[step]:
        findings.add("D01", "a threadblock waits for itself", *place)
    if target > profile.max_wait_target:
        text = f"depid is {target}; ids above {profile.max_wait_target} do not fit"
        findings.add("D01", text, *place)
    if ordinal < 0:
        findings.add("D03", f"depid is {target} without deps", *place)
        return
    awaited = int(table.start[block]) + ordinal
    if awaited >= table.start[block + 1]:
        text = f"threadblock {target} has no step {ordinal}"
        findings.add("D02", text, *place)
        return
    needed[awaited] = True
    if table.op[awaited] == NOP:
        text = f"waits for step {ordinal} of threadblock {target}, a nop"
        findings.add("D02", text, *place)
    elif not table.signals[awaited]:
        text = f"waits for step {ordinal} of threadblock {target}, whose hasdep is 0"
        findings.add("D02", text, *place)


def _odd_nops(table: Table) -> Bools:
    """Return which steps are nops that `_nop` finds something wrong with."""
    followed = np.zeros(table.steps, dtype=np.bool_)
    followed[:-1] = (table.threadblock[1:] == table.threadblock[:-1]) & (table.wait_id[1:] >= 0)
    right = (table.wait_id >= 0) & ~table.signals & followed
    found: Bools = (table.op == NOP) & ~right
    return found


def _nop(table: Table, findings: Findings, step: int) -> None:
    place = table.place(step)
    if table.wait_id[step] < 0:
        findings.add("D04", "a nop without a dependency shifts later step numbers", *place)
    if table.signals[step]:
        findings.add("D04", "hasdep of a nop is ignored", *place)
    following = step + 1
    if following >= table.start[table.threadblock[step] + 1]:
        findings.add("D04", "a nop at the end never waits", *place)
    elif table.wait_id[following] < 0:
        text = "the step behind a nop must have a dependency of its own"
        findings.add("D04", text, *table.place(following))
