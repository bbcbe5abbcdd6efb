"""When does each step of a program run on this topology: time by message size.

`simulate` gives the time of a program at several sizes, `trace` what happens at one of
them slice by slice; `break_down` and `timeline` say more about a trace.
"""

from colsynth.simulate.points import Point, Simulation, bus_factor
from colsynth.simulate.simulate import Prepared, prepare, simulate
from colsynth.simulate.source import Source, find_runtime, find_runtimes, read_source

__all__ = [
    "Point",
    "Prepared",
    "Simulation",
    "Source",
    "bus_factor",
    "find_runtime",
    "find_runtimes",
    "prepare",
    "read_source",
    "simulate",
]
