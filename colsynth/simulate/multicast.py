"""The time of a program over a switch that multicasts: three roles that work side by side.

Iterations flow through threadblocks that fill scratch, those of the switch, and those that drain
it. Where there are several, the slowest role sets the pace, or all three in turn where scratch
for `DEPTH` iterations is the limit. Links carry all teams at once, which is slower than if they
took turns. A threadblock issues loads and stores of the switch at `Model.rate`: U, no
measurement was found, and it does as little as for one peer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from colsynth.cost import Model
from colsynth.cost.shared_switch import shared_switch
from colsynth.errors import Diagnostic, InfeasibleError
from colsynth.model import MULTICASTS, Collective, Gpu, Step, ThreadblockProgram, Topology
from colsynth.runtimes.plans.multicast import DEPTH
from colsynth.runtimes.plans.shape import PlanShape
from colsynth.simulate.executable import require_ranks


@dataclass(frozen=True, slots=True)
class Costs:
    """What an iteration costs, by bytes of a chunk.

    Parameters
    ----------
    unit : float
        Bytes of a chunk in an iteration, at most.
    step, meeting : float
        Seconds of an iteration: of every threadblock, and of those that fill or drain besides.
    links, issued, filled, drained : float
        Seconds per byte: of links, of the threadblock of the switch, of copies in and out.
    """

    unit: int
    step: float
    meeting: float
    links: float
    issued: float
    filled: float
    drained: float

    def roles(self, moved: float) -> tuple[float, float, float]:
        """Return the seconds that each role takes for so many bytes of every chunk."""
        fixed = self.step + self.meeting
        fill, drain = (fixed + moved * copies for copies in (self.filled, self.drained))
        return fill, self.step + moved * max(self.links, self.issued), drain

    def seconds(self, chunk: float) -> float:
        """Return the seconds of a chunk of so many bytes."""
        first = min(chunk, self.unit)
        whole, last = divmod(chunk - first, self.unit)
        return (
            sum(self.roles(first))
            + whole * self._pace(self.unit)
            + (self._pace(last) if last else 0.0)
        )

    def _pace(self, moved: float) -> float:
        roles = self.roles(moved)
        return max(*roles, sum(roles) / DEPTH)


def costs(program: ThreadblockProgram, topology: Topology, model: Model) -> Costs:
    """Return what iterations cost.

    Raises
    ------
    InputError
        CS600: the ranks of both differ.
    InfeasibleError
        CS601: no switch of the topology multicasts and reduces for all GPUs.
    """
    header = program.header
    require_ranks(header.ranks, topology)
    switch = shared_switch(topology)
    if switch is None:
        phrase = f"no switch of {topology.name} multicasts and reduces for all GPUs"
        advice = "give the switch capabilities in the topology file"
        raise InfeasibleError(Diagnostic("CS601", phrase, help=advice))
    own = max((_own(gpu) for gpu in program.gpus), key=sum)
    carried = float(switch.bandwidth) * model.link_efficiency * model.payload["Simple"]
    local = model.local_rate["Simple"] * 1e9
    most = {
        letter: max(
            sum(_moves(step, letter) for step in block.steps)
            for gpu in program.gpus
            for block in gpu.threadblocks
        )
        for letter in "io"
    }
    shape = PlanShape(program)
    return Costs(
        unit=shape.slot_bytes // DEPTH,
        step=(model.step["Simple"] + model.wait) / 1e6,
        meeting=model.hop["Simple"] / 1e6 + float(switch.latency),
        links=most_over_switch(program) / carried,
        issued=max(own) / (model.rate["Simple"] * 1e9),
        filled=most["i"] / local,
        drained=most["o"] / local,
    )


def most_over_switch(program: ThreadblockProgram) -> int:
    """Return the chunks on the busiest link of the switch: the message, and a shard of sums."""
    sums = program.header.collective is not Collective.ALLGATHER
    return program.header.chunks + sums * max(sum(_own(gpu)) for gpu in program.gpus)


def _own(gpu: Gpu) -> list[int]:
    """Return the chunks that each threadblock of a rank moves over the switch."""
    return [sum(step.op in MULTICASTS for step in block.steps) for block in gpu.threadblocks]


def _moves(step: Step, letter: str) -> bool:
    slot = step.source if letter == "i" else step.target
    return step.op == "cpy" and slot is not None and slot.buffer == letter


def seconds(
    program: ThreadblockProgram, topology: Topology, sizes: Sequence[int], model: Model
) -> tuple[float, ...]:
    """Return the time of a call at every message size."""
    found, begin = costs(program, topology, model), model.launch["Simple"] / 1e6
    return tuple(begin + found.seconds(size / program.header.chunks) for size in sizes)


def shares(
    program: ThreadblockProgram, topology: Topology, size: int, model: Model
) -> dict[str, float]:
    """Return the share of each limit in the time of a call, 0 to 1.

    Bytes count for what limits the pace of a full iteration; the launch counts as latency.
    """
    found, chunk = costs(program, topology, model), size / program.header.chunks
    (whole,) = seconds(program, topology, (size,), model)
    moved = min(chunk, found.unit)
    fill, switch, drain = found.roles(moved)
    paced = switch >= max(fill, drain, (fill + switch + drain) / DEPTH)
    links = chunk * found.links if paced and found.links >= found.issued else 0.0
    iterations = -(-chunk // found.unit)
    fixed = min(whole - links, iterations * found.step)
    latency = min(whole - links - fixed, model.launch["Simple"] / 1e6 + 2 * found.meeting)
    rest = whole - links - fixed - latency
    parts = {"links": links, "threadblocks": rest, "steps": fixed, "latency": latency}
    return {name: value / whole for name, value in parts.items()}
