"""Rules P07 and P08: signals, semaphores and barriers of one launch come out even."""

from __future__ import annotations

from collections import Counter, defaultdict

from colsynth.runtimes.rules import Findings
from colsynth.verify.plans.resolved import (
    ACQUIRE,
    BARRIER,
    PORT,
    RELEASE,
    SIGNAL,
    WAIT,
    Resolved,
)

_GIVES = {SIGNAL: "channel", PORT: "channel", RELEASE: "semaphore"}
_TAKES = {WAIT: "channel", ACQUIRE: "semaphore"}


def check_counters(program: Resolved, findings: Findings) -> None:
    """Report counters that do not balance, or that several threadblocks share."""
    counts: dict[str, Counter[tuple[str, int]]] = {"give": Counter(), "take": Counter()}
    users: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for number, halves in enumerate(program.actions):
        for action in halves[0]:
            for side, table in (("give", _GIVES), ("take", _TAKES)):
                for end in action.ends if action.kind in table else ():
                    counts[side][table[action.kind], end] += 1
                    users[side, table[action.kind], end].add(number)
    given, taken = counts["give"], counts["take"]
    for kind, end in sorted({*given, *taken}):
        if given[kind, end] != taken[kind, end]:
            words = ("releases", "acquires") if kind == "semaphore" else ("signals", "waits")
            text = f"{given[kind, end]} {words[0]} meet {taken[kind, end]} {words[1]}"
            found = users.get(("take", kind, end)) or users["give", kind, end]
            place = program.blocks[min(found)]
            findings.add("P08", f"{text} on a {kind} in one launch", *place)
    for (side, kind, _), blocks in sorted(users.items()):
        if len(blocks) > 1:
            verb = "signal on" if side == "give" else "wait on"
            text = f"threadblocks {sorted(program.blocks[n][1] for n in blocks)} {verb} one {kind}"
            findings.add("P07", text, *program.blocks[min(blocks)])
    _check_barriers(program, findings)


def _check_barriers(program: Resolved, findings: Findings) -> None:
    """Report barriers to which others come than they are for."""
    barriers: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    sizes: dict[tuple[int, int], set[int]] = defaultdict(set)
    for number, halves in enumerate(program.actions):
        for action in halves[0]:
            if action.kind == BARRIER:
                key = (program.blocks[number][0], action.op.barrier_id or 0)
                barriers[key][number] += 1
                sizes[key].add(action.op.num_threadblocks or 0)
    for (rank, barrier), counts in sorted(barriers.items()):
        if sizes[rank, barrier] != {len(counts)} or len(set(counts.values())) > 1:
            text = f"barrier {barrier} is for {sorted(sizes[rank, barrier])} threadblocks"
            findings.add("P08", f"{text}; {len(counts)} come to it", rank)
