"""Plants one fault of a given kind into a schedule file."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from collections.abc import Callable

from tests.reference.interpreter import READS_SRC, WRITES


def plant(data: bytes, kind: str, rng: random.Random) -> bytes | None:
    """Return the file with a fault, or None where it has no place for one."""
    root = ET.fromstring(data)
    sites = list(_SITES[kind](root))
    if not sites:
        return None
    _FAULTS[kind](root, rng.choice(sites), rng)
    return ET.tostring(root)


def _steps(root):
    return [step for gpu in root for tb in gpu for step in tb if step.get("type") != "nop"]


def _blocks(root):
    return [tb for gpu in root for tb in gpu]


def _dropped_dependency(_root, step, _rng):
    step.set("depid", "-1")
    step.set("deps", "-1")


def _missing_hasdep(_root, step, _rng):
    step.set("hasdep", "0")


def _wrong_offset(_root, step, rng):
    used = [("srcoff", READS_SRC), ("dstoff", WRITES)]
    key = rng.choice([name for name, ops in used if step.get("type") in ops])
    step.set(key, str(int(step.get(key)) + rng.choice([-1, 1])))


def _wrong_count(_root, step, rng):
    step.set("cnt", str(int(step.get("cnt")) + rng.choice([-1, 1])))


def _dropped_step(root, step, _rng):
    """Remove a step; later steps move up, and dependencies follow them."""
    for gpu in root:
        for tb in gpu:
            if step in list(tb):
                _remove(gpu, tb, step)
                return


def _remove(gpu, tb, step):
    position = list(tb).index(step)
    tb.remove(step)
    for number, other in enumerate(tb):
        other.set("s", str(number))
    for waiting in gpu.iter("step"):
        if waiting.get("depid") == tb.get("id") and int(waiting.get("deps")) > position:
            waiting.set("deps", str(int(waiting.get("deps")) - 1))


def _swapped_peers(root, tb, rng):
    """Exchange a peer with another threadblock of the GPU, or its own two peers."""
    gpu = next(gpu for gpu in root if tb in list(gpu))
    other = rng.choice(list(gpu))
    for key in ("send", "recv") if other is not tb else ():
        mine, theirs = tb.get(key), other.get(key)
        tb.set(key, theirs)
        other.set(key, mine)
    if other is tb:
        send, recv = tb.get("send"), tb.get("recv")
        tb.set("send", recv)
        tb.set("recv", send)


def _shifted_channel(root, tb, rng):
    chan = int(tb.get("chan"))
    tb.set("chan", str(chan + 1 if chan == 0 else chan + rng.choice([-1, 1])))
    root.set("nchannels", str(max(int(root.get("nchannels")), int(tb.get("chan")) + 1)))


_FAULTS: dict[str, Callable] = {
    "dropped dependency": _dropped_dependency,
    "missing hasdep": _missing_hasdep,
    "wrong offset": _wrong_offset,
    "wrong cnt": _wrong_count,
    "dropped step": _dropped_step,
    "swapped peers": _swapped_peers,
    "off-by-one channel": _shifted_channel,
}
_SITES: dict[str, Callable] = {
    "dropped dependency": lambda root: [s for s in root.iter("step") if s.get("depid") != "-1"],
    "missing hasdep": lambda root: [s for s in root.iter("step") if s.get("hasdep") == "1"],
    "wrong offset": _steps,
    "wrong cnt": _steps,
    "dropped step": _steps,
    "swapped peers": _blocks,
    "off-by-one channel": _blocks,
}
KINDS = tuple(_FAULTS)
