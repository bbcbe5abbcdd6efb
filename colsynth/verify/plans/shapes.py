"""The operations of plans (contract 4): operands, channels, and since when they exist."""

from __future__ import annotations

Shape = tuple[tuple[int, int], tuple[int, int | None]]

_MANY = 1 << 30

SHAPES: dict[str, Shape] = {
    "nop": ((0, 0), (0, 0)),
    "barrier": ((0, 0), (0, 0)),
    "copy": ((1, 1), (1, 1)),
    "put": ((1, 1), (_MANY, None)),
    "pws": ((1, 1), (_MANY, None)),
    "pwsf": ((1, 1), (_MANY, None)),
    "signal": ((0, 0), (0, 0)),
    "wait": ((0, 0), (0, 0)),
    "rlxsignal": ((0, 0), (0, 0)),
    "rlxwait": ((0, 0), (0, 0)),
    "flush": ((0, 0), (0, None)),
    "re": ((1, 1), (_MANY, None)),
    "res": ((1, 1), (_MANY, None)),
    "rre": ((2, 1), (_MANY, 1)),
    "rres": ((2, 2), (_MANY, None)),
    "ppkt": ((1, 1), (_MANY, None)),
    "rppkt": ((1, 1), (1, None)),
    "cpkt": ((1, 1), (1, 1)),
    "upkt": ((1, 1), (1, 1)),
    "repkt": ((2, 1), (_MANY, 1)),
    "respkt": ((2, 2), (_MANY, None)),
    "recpkt": ((2, 2), (_MANY, 2)),
    "recspkt": ((2, 3), (_MANY, None)),
    "sem_acquire": ((0, 0), (0, 0)),
    "sem_release": ((0, 0), (0, 0)),
    "glres": ((1, 1), (1, 1)),
    "gstore": ((1, 1), (1, 1)),
    "gstorepkt": ((1, 1), (1, 1)),
}
"""Least and most sources and destinations; None is no limit of the operation's own.

``get`` (it exchanges its offsets) and ``glre`` (no parser knows it) are missing: they are never
right. ``re`` may name further local destinations, which are not written (contract T1).
"""

REMOTE_FROM: dict[str, tuple[int | None, int | None]] = {
    "put": (None, 0),
    "pws": (None, 0),
    "pwsf": (None, 0),
    "res": (None, 1),
    "rre": (1, None),
    "rres": (1, 1),
    "ppkt": (None, 0),
    "rppkt": (None, 0),
    "respkt": (None, 1),
    "recspkt": (None, 2),
}
"""From which source and destination on operands lie at peers."""

PAIRED = frozenset({"put", "pws", "pwsf", "ppkt"})
"""Operations that move each source to the destination in its place."""

MEMORY_ONLY = frozenset({"res", "rre", "rres", "respkt", "recspkt"})

PACKETS: dict[str, tuple[tuple[str, int], ...]] = {
    "ppkt": (("dst", 0),),
    "rppkt": (("src", 0), ("dst", 0)),
    "cpkt": (("dst", 0),),
    "upkt": (("src", 0),),
    "repkt": (("src", 1),),
    "respkt": (("src", 1),),
    "recpkt": (("src", 1), ("dst", 1)),
    "recspkt": (("src", 1), ("dst", 1)),
}
"""Which operands are packets: a side, and the place from which on."""

BARRIERS = 16
"""Barriers of a GPU."""

SWITCH = frozenset({"glres", "gstore"})

UNTRIED = frozenset({"gstorepkt"})
"""Operations that the verifier does not execute."""

NEWER = {"recpkt": (0, 9), "recspkt": (0, 9), "gstore": (0, 10), "gstorepkt": (0, 10)}
"""Versions since which an operation exists, where that is not 0.8."""
