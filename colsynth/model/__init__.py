"""The values that travel between stages: frozen, slotted, with dense integer ids.

Lookups only, no algorithms. Every stage takes one of these and returns another;
nothing else passes between rooms.
"""

from colsynth.model.allreduce import AllreduceBound, Limit, PricedCut, RootedBound
from colsynth.model.bound import Bound, Cut, FlowBound
from colsynth.model.chunks import ChunkProgram, Ordering, Origin, Slot, Transfer
from colsynth.model.forest import Forest, Phase, Tree, TreeEdge, chunks_on_links, unit_bandwidth
from colsynth.model.problem import Collective, Demand, Direction, Problem
from colsynth.model.program import Gpu, Header, Threadblock, ThreadblockProgram
from colsynth.model.report import Finding, Report, Severity
from colsynth.model.rounds import LocalStep, Message, Program, Round, RoundProgram
from colsynth.model.sketch import Connections, Sketch
from colsynth.model.step import MULTICASTS, RECEIVES, SENDS, Step, Wait
from colsynth.model.step_table import Rows, StepTable
from colsynth.model.timed import Hops, TimeBound, TimedPhase, TimedSchedule
from colsynth.model.topology import Kind, Link, Node, Topology

__all__ = [
    "MULTICASTS",
    "RECEIVES",
    "SENDS",
    "AllreduceBound",
    "Bound",
    "ChunkProgram",
    "Collective",
    "Connections",
    "Cut",
    "Demand",
    "Direction",
    "Finding",
    "FlowBound",
    "Forest",
    "Gpu",
    "Header",
    "Hops",
    "Kind",
    "Limit",
    "Link",
    "LocalStep",
    "Message",
    "Node",
    "Ordering",
    "Origin",
    "Phase",
    "PricedCut",
    "Problem",
    "Program",
    "Report",
    "RootedBound",
    "Round",
    "RoundProgram",
    "Rows",
    "Severity",
    "Sketch",
    "Slot",
    "Step",
    "StepTable",
    "Threadblock",
    "ThreadblockProgram",
    "TimeBound",
    "TimedPhase",
    "TimedSchedule",
    "Topology",
    "Transfer",
    "Tree",
    "TreeEdge",
    "Wait",
    "chunks_on_links",
    "unit_bandwidth",
]
