"""How far a program uses up each limit of a runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from colsynth.model import Gpu, Program, RoundProgram, ThreadblockProgram
from colsynth.runtimes.profile import Profile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from colsynth.runtimes.plans.form import Plan, PlanGpu
    from colsynth.runtimes.reader import Reading


@dataclass(frozen=True, slots=True)
class Usage:
    """One limit of a runtime and what a program takes of it.

    Parameters
    ----------
    name : str
        Identifier, such as ``"steps"``.
    title : str
        What is counted, such as ``"XML nodes"``.
    used, limit : int
        The most on any rank, and the most there can be.
    advisory : bool
        Whether a file above the limit is accepted and runs on some hardware only.
    """

    name: str
    title: str
    used: int
    limit: int
    advisory: bool = False

    @property
    def exceeded(self) -> bool:
        """Whether the runtime refuses the program for it."""
        return self.used > self.limit and not self.advisory


def usage(program: Program, profile: Profile) -> tuple[Usage, ...]:
    """Return every limit of a runtime that depends on the program, scarcest kinds first.

    Limits are those of `Profile`, whose data names the source of each; dependencies must be
    spelt, since every nop counts as a step.
    """
    if isinstance(program, RoundProgram):
        return _round_usage(program, profile)
    if profile.plans:
        from colsynth.runtimes.plans.writer import plan_of

        return plan_usage(plan_of(program, profile), profile)
    gpus = program.gpus
    threadblocks = max(len(gpu.threadblocks) for gpu in gpus)
    channels = program.header.channels
    chunks = profile.max_offset + 1
    resident = profile.usable_threadblocks
    return (
        Usage("threadblocks", "threadblocks", threadblocks, profile.max_threadblocks),
        Usage("resident_threadblocks", "resident threadblocks", threadblocks, resident, True),
        Usage("channels", "channels", channels, profile.most_channels),
        Usage("usual_channels", "channels of most GPUs", channels, profile.max_channels, True),
        Usage(
            "threadblocks_per_channel",
            "threadblocks of a channel",
            max(map(_on_a_channel, gpus)),
            profile.max_threadblocks_per_channel,
        ),
        Usage("steps", "steps", program.max_steps, profile.max_steps),
        Usage(
            "xml_nodes",
            "XML nodes",
            len(gpus) + _elements(program),
            profile.max_xml_nodes,
        ),
        Usage("input_chunks", "input chunks", max(g.input_chunks for g in gpus), chunks),
        Usage("output_chunks", "output chunks", max(g.output_chunks for g in gpus), chunks),
        Usage("scratch_chunks", "scratch chunks", max(g.scratch_chunks for g in gpus), chunks),
        Usage("chunks_per_step", "chunks of a step", _most(program.steps.count), profile.max_count),
        Usage(
            "awaited_threadblock",
            "awaited threadblock id",
            _most(program.steps.wait_block),
            profile.max_wait_target,
        ),
    )


def usage_read(reading: Reading, program: Program, profile: Profile) -> tuple[Usage, ...]:
    """Return every limit of a runtime that depends on a program, of which the file was read.

    A plan is the one in the file; `usage` would write it anew.
    """
    return usage(program, profile) if reading.plan is None else plan_usage(reading.plan, profile)


def first_exceeded(program: Program, profile: Profile) -> Usage | None:
    """Return the first limit that refuses a program, if one does.

    Of a plan, only threadblocks are written whose quick upper bound of operations is too high.
    """
    found: tuple[Usage, ...]
    if profile.plans and isinstance(program, ThreadblockProgram):
        found = _quick_plan_usage(program, profile)
    else:
        found = usage(program, profile)
    return next((item for item in found if item.exceeded), None)


def _quick_plan_usage(program: ThreadblockProgram, profile: Profile) -> tuple[Usage, ...]:
    """Return the limits of a plan; operations may be an upper bound that fits.

    Where it does not, they are those of the first rank that has too many, if one has.
    """
    from colsynth.runtimes.plans.estimate import most_operations
    from colsynth.runtimes.plans.shape import PlanShape, fitted
    from colsynth.runtimes.plans.writer import longest_written

    shape, limit = PlanShape(fitted(program)), profile.plans["operations"]
    most = most_operations(shape, profile.longest_sum)
    if most is None:
        return usage(program, profile)
    longest = int(most[most <= limit].max(initial=0))
    for found in longest_written(shape, profile, most > limit) if (most > limit).any() else ():
        longest = max(longest, found)
        if longest > limit:
            break
    used, chunks = program.max_threadblocks, shape.scratch_chunks
    return _of_plans(profile, used, longest, shape.most_ports, chunks)


def plan_usage(plan: Plan, profile: Profile) -> tuple[Usage, ...]:
    """Return every limit of a runtime that depends on what a plan says."""
    gpus = plan.gpus
    ports = (
        sum(len(c.connected_to) for c in gpu.channels if c.channel_type == "port") for gpu in gpus
    )
    used = max(len(gpu.threadblocks) for gpu in gpus)
    chunks = max(gpu.scratch_chunks for gpu in gpus)
    return _of_plans(profile, used, _most_operations(gpus), max(ports), chunks)


def _most_operations(gpus: Iterable[PlanGpu]) -> int:
    """Return the operations of the longest threadblock of some ranks of a plan."""
    from colsynth.runtimes.plans.form import operations

    lengths = (len(operations(block)) for gpu in gpus for block in gpu.threadblocks)
    return max(lengths, default=0)


def _of_plans(
    profile: Profile, used: int, longest: int, ports: int, chunks: int
) -> tuple[Usage, ...]:
    limits, resident = profile.plans, profile.usable_threadblocks
    return (
        Usage("threadblocks", "threadblocks", used, profile.max_threadblocks),
        Usage("resident_threadblocks", "resident threadblocks", used, resident, True),
        Usage("operations", "operations", longest, limits["operations"]),
        Usage("port_channels", "port channels", ports, limits["port_channels"]),
        Usage("scratch_chunks", "scratch chunks", chunks, profile.max_offset + 1),
    )


def _round_usage(program: RoundProgram, profile: Profile) -> tuple[Usage, ...]:
    """Return the limits of rounds."""
    longest = max((len(found.messages) for found in program.rounds), default=0)
    return (
        Usage("rounds", "rounds", len(program.rounds), profile.max_steps),
        Usage("round_messages", "messages of a round", longest, profile.max_xml_nodes),
        Usage("chunks", "chunks", program.header.chunks, profile.max_offset + 1),
        Usage("scratch_chunks", "scratch chunks", max(program.scratch), profile.max_offset + 1),
    )


def most_used(several: Sequence[tuple[Usage, ...]]) -> tuple[Usage, ...]:
    """Return the larger use of every limit among programs for one runtime."""
    return tuple(max(same, key=lambda item: item.used) for same in zip(*several, strict=True))


def _most(numbers: NDArray[np.int64]) -> int:
    return int(numbers.max()) if numbers.size else 0


def _on_a_channel(gpu: Gpu) -> int:
    return max(Counter(block.channel for block in gpu.threadblocks).values(), default=0)


def _elements(program: ThreadblockProgram) -> int:
    """Return the most elements of a rank: its threadblocks and their steps."""
    left: Iterator[int] = iter(program.lengths.tolist())
    many = [len(gpu.threadblocks) for gpu in program.gpus]
    return max(number + sum(islice(left, number)) for number in many)
