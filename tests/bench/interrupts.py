"""Ctrl-C at random moments of long commands: how long each takes to end, and what it leaves.

Every command runs once undisturbed, which says how long it takes and what it writes. Then it is
started in an empty folder again and again, each time with a signal at a random moment of that
time; every other signal goes to the whole process group, as a terminal sends it. A violation is

- an exit code other than 130 (or 0 with the whole result, where the command had just finished);
- more than `MOST` seconds until the last process of the command is gone;
- any file in its folder or its temporary directory but the whole result, or a journal with which
  the same command gives the same bytes as undisturbed;
- a last line that does not begin with "interrupted", or a traceback.

Python itself dies of the signal, or shows a traceback without a line of ours, in the hundredths of
a second before it has read our first line and after it has run the last. Nobody can mend that here,
so it counts as "outside". A shell shows 130 for it too.

A case that is only late is repeated, by itself, up to `REPEATS` times: on a machine that others
keep busy, a second may pass before a process runs at all. Prints the distribution of seconds of
each command and every violation: ``python -m tests.bench.interrupts --count 200 --seed 1``.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

from tests.bench.harness import ROOT

MOST = 1.0
"""Seconds from the signal to the end of the last process."""
REPEATS = 3
PATIENCE = 60.0
"""Seconds after which a command that goes on is killed."""
INTERRUPTED = 130
_JOURNAL = "journal.jsonl"
_OURS = f'File "{ROOT / "colsynth"}'

COMMANDS = {
    "bound": ("bound", "ring:1200", "-c", "allgather"),
    "compile": ("compile", "ring:128", "-c", "allreduce", "-r", "msccl", "-o", "out.xml"),
    "synthesize": ("synthesize", "torus:32x32x4", "-c", "allgather", "--schedule", "out.npz"),
    "tune": (
        *("tune", "dgx-a100", "-c", "allgather", "-r", "msccl", "--sizes", "1KiB,1MiB"),
        *("--budget", "16", "--jobs", "2", "-o", "bundle"),
    ),
}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: the code of its process, seconds since the signal, what it said."""

    code: int
    seconds: float
    words: str

    @property
    def outside(self) -> bool:
        """Whether Python itself got the signal, before our first line or after the last one."""
        return self.code == -signal.SIGINT and _OURS not in self.words


@dataclass(slots=True)
class Tally:
    """What came of the interrupts of one command."""

    seconds: list[float] = field(default_factory=list)
    finished: int = 0
    outside: int = 0
    repeated: int = 0
    wrong: list[str] = field(default_factory=list)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, and every empty folder as no bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
        elif not any(path.iterdir()):
            found[f"{path.relative_to(folder)}/"] = b""
    return found


def start(arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command in a folder, in a session of its own, with temporary files beside it."""
    temporary = folder.with_name("temporary")
    for place in (folder, temporary):
        place.mkdir(exist_ok=True)
    return subprocess.Popen(
        [Path(sys.executable).with_name("colsynth"), *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def interrupt(child: subprocess.Popen[str], whole_group: bool) -> Ended:
    """Send Ctrl-C to a command, or to its whole group; wait until its session is empty."""
    begin = time.perf_counter()
    if whole_group:
        os.killpg(child.pid, signal.SIGINT)
    else:
        child.send_signal(signal.SIGINT)
    try:
        words = child.communicate(timeout=PATIENCE)[1]
        while any(_session(child.pid)) and time.perf_counter() - begin < PATIENCE:
            time.sleep(0.005)
        seconds = time.perf_counter() - begin
    except subprocess.TimeoutExpired:
        words, seconds = "", PATIENCE
    for number in (*_session(child.pid), *([child.pid] if child.poll() is None else [])):
        os.kill(number, signal.SIGKILL)
    return Ended(child.wait(), seconds, words)


def _session(number: int) -> Iterator[int]:
    """Yield the processes of a session that have not ended."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue  # it has ended meanwhile
        if int(session) == number and state not in "ZX":
            yield int(path.parent.name)


def fault(ended: Ended, left: dict[str, bytes], whole: dict[str, bytes]) -> str:
    """Return what is wrong with how a command ended, but for its seconds; empty for nothing."""
    lines = ended.words.strip().splitlines() or [""]
    if ended.code == 0:
        return "" if left == whole else f"exit 0, but these files differ: {sorted(left)}"
    if ended.outside and left in ({}, whole):
        return ""
    if ended.code != INTERRUPTED:
        return f"exit {ended.code}: {ended.words!r}, leaving {sorted(left)}"
    if not lines[-1].startswith("interrupted") or "Traceback" in ended.words:
        return f"exit 130 with the words {ended.words!r}, leaving {sorted(left)}"
    if left in ({}, whole) or all(Path(name).name == _JOURNAL for name in left):
        return ""
    return f"it left {sorted(left)}"


def attempt(
    arguments: Sequence[str], delay: float, whole_group: bool, whole: dict[str, bytes]
) -> tuple[Ended, str]:
    """Interrupt a command after some seconds; return how it ended and what is wrong with that."""
    with TemporaryDirectory() as above:
        folder = Path(above) / "work"
        child = start(arguments, folder)
        time.sleep(delay)
        ended = interrupt(child, whole_group)
        left = contents(folder)
        found = fault(ended, left, whole)
        if rest := contents(folder.with_name("temporary")):
            found = found or f"temporary files are left: {sorted(rest)}"
        if not found and left not in ({}, whole):
            start(arguments, folder).communicate()
            if contents(folder) != whole:
                found = f"resumed, these files differ: {sorted(contents(folder))}"
        return ended, found


def measure(arguments: Sequence[str], count: int, seed: str) -> tuple[float, Tally]:
    """Interrupt a command some times; return its seconds undisturbed, and the tally."""
    rng, tally = random.Random(seed), Tally()
    with TemporaryDirectory() as above:
        folder = Path(above) / "work"
        begin = time.perf_counter()
        child = start(arguments, folder)
        words = child.communicate()[1]
        if child.returncode:
            raise SystemExit(f"{' '.join(arguments)} ends with {child.returncode}: {words}")
        longest = time.perf_counter() - begin
        whole = contents(folder)
        shutil.rmtree(folder)
    for number in range(count):
        delay, group = rng.uniform(0, longest), bool(number % 2)
        ended, found = attempt(arguments, delay, group, whole)
        for _ in range(REPEATS):
            if found or ended.seconds <= MOST:
                break
            tally.repeated += 1
            ended, found = attempt(arguments, delay, group, whole)
        if not found and ended.seconds > MOST:
            found = "late"
        tally.seconds.append(ended.seconds)
        tally.finished += ended.code == 0
        tally.outside += ended.outside
        if found:
            kind = "group" if group else "process"
            place = f"case {number}, {kind}, after {delay:.3f} s"
            tally.wrong.append(f"{place}: {found} ({ended.seconds:.2f} s)")
    return longest, tally


def main() -> None:
    """Interrupt every command, print what came of it; exit 1 where a rule was broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="interrupts in all")
    parser.add_argument("--seed", default="1", help="of the moments")
    parser.add_argument("--only", choices=COMMANDS, action="append", help="these commands alone")
    options = parser.parse_args()
    # A shell starts what runs in the background with Ctrl-C ignored, and so would we.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = options.only or list(COMMANDS)
    wrong = 0
    print(f"seed {options.seed}; seconds from the signal to the end of the last process")
    for name in names:
        share = options.count // len(names)
        longest, tally = measure(COMMANDS[name], share, f"{options.seed} {name}")
        ranks = quantiles(tally.seconds, n=20) if share > 1 else tally.seconds * 19
        print(
            f"{name}: {share} interrupts within {longest:.1f} s; "
            f"median {median(tally.seconds):.2f}, 95 % {ranks[-1]:.2f}, "
            f"most {max(tally.seconds):.2f} s; {tally.finished} had finished, "
            f"{tally.outside} outside, "
            f"{tally.repeated} repeated, {len(tally.wrong)} violations",
            flush=True,
        )
        for line in tally.wrong:
            print(f"  {line}", flush=True)
        wrong += len(tally.wrong)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
