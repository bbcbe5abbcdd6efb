"""``python -m tests.bench.bench_measured``: predictions beside public measurements.

Measurements and their sources are in ``measurements.yaml``; each is compared with the program that
the library is known or assumed to run, on the preset that stands for the machine. With ``--write``
the table in the guide is replaced.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from colsynth import api
from colsynth.calibrate import library_program
from colsynth.calibrate.places import machine_of
from colsynth.cost import default_model
from colsynth.model import Collective
from colsynth.runtimes import profile
from colsynth.simulate import bus_factor, simulate
from colsynth.topology.groups import read_groups
from colsynth.units import format_size

DATA = Path(__file__).parent / "measurements.yaml"
PAGE = Path(__file__).parents[2] / "colsynth" / "guide" / "calibrate.md"
HEAD = (
    "| machine | test | size | measured | predicted | error | source |",
    "|---|---|---:|---:|---:|---:|---|",
)


class Compared(NamedTuple):
    """A measurement and its prediction, both in microseconds, or in GB/s of bus bandwidth."""

    entry: dict[str, Any]
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """How much faster the prediction is, as a share: below zero it is too slow."""
        if "us" in self.entry:
            return self.measured / self.predicted - 1
        return self.predicted / self.measured - 1


def compared(entry: dict[str, Any]) -> Compared:
    """Return an entry with what the simulator predicts by default."""
    whole = api.load_topology(
        entry["preset"], nodes=entry.get("nodes"), settings=entry.get("settings")
    )
    ranks = entry.get("ranks")
    members = range(whole.size) if ranks is None else read_groups(ranks, "ranks", whole)[0]
    topology = machine_of(whole, tuple(members))
    runtime = profile(entry.get("runtime", "msccl"))
    test, protocol = entry["test"], entry.get("protocol", "Simple")
    algorithm, model = entry.get("algorithm", "ring"), default_model(runtime)
    program = library_program(topology, test, algorithm, protocol, model, entry.get("channels"))
    (point,) = simulate(program, topology, runtime, [entry["size"]])
    if "us" in entry:
        return Compared(entry, float(entry["us"]), point.seconds * 1e6)
    kind = Collective.CUSTOM if test == "sendrecv" else Collective(test)
    busbw = point.algbw * bus_factor(kind, topology.size) / 1e9
    return Compared(entry, float(entry["busbw_gb_s"]), busbw)


def entries() -> list[dict[str, Any]]:
    """Return all measurements."""
    return list(yaml.safe_load(DATA.read_text()))


def row(found: Compared) -> str:
    """Return a line of the table, as Markdown."""
    entry = found.entry
    unit = "us" if "us" in entry else "GB/s"
    pinned = "" if entry["pinned"] else " (not pinned)"
    protocol = entry.get("protocol", "Simple")
    algorithm = "" if entry["test"] == "sendrecv" else f" {entry.get('algorithm', 'ring')}"
    limits = f"; {entry['limits']}" if "limits" in entry else ""
    cells = (
        entry["machine"],
        f"{entry['test']}{algorithm} {protocol}{pinned}",
        format_size(entry["size"]),
        f"{found.measured:.4g} {unit}",
        f"{found.predicted:.4g} {unit}",
        f"{found.error:+.0%}",
        f"{entry['source']}{limits}",
    )
    return f"| {' | '.join(cells)} |"


def table() -> str:
    """Return the whole table."""
    return "\n".join((*HEAD, *(row(compared(entry)) for entry in entries())))


def replaced(page: str, text: str) -> str:
    """Return a page with another table."""
    before, _, rest = page.partition(HEAD[0])
    _, _, after = rest.partition("\n\n")
    return f"{before}{text}\n\n{after}"


if __name__ == "__main__":
    made = table()
    if "--write" in sys.argv:
        PAGE.write_text(replaced(PAGE.read_text(), made))
    print(made)
