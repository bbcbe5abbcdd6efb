"""Pass assign-threadblocks: ChunkProgram -> ThreadblockProgram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.errors import Diagnostic, InputError, LimitError
from colsynth.lowering.emit import emit
from colsynth.lowering.hazards import operations, waits
from colsynth.lowering.lanes import Limits
from colsynth.lowering.layout import Layout
from colsynth.lowering.staffing import Staffing
from colsynth.model import ChunkProgram, ThreadblockProgram
from colsynth.runtimes.target import Target


@dataclass(frozen=True, slots=True)
class AssignThreadblocks:
    """Staff every transfer with a threadblock at each end, and fuse relays.

    Chains of the global order are placed one after the other, each on the channel where
    it needs the fewest new threadblocks; a chain that fits nowhere whole is cut into its
    transfers. Where that still exceeds a limit, relays are not fused and everything is
    packed more tightly. Fewest threadblocks win: parallel copies are asked for by name
    (``lower-forest{instances=...}``) and get channels of their own.

    Parameters
    ----------
    max_channels, max_threadblocks, max_steps : int
        Tighter limits than the runtime's; 0 takes the runtime's.
    fuse : bool
        Whether receive-and-send steps may be used where the runtime has them.
    """

    max_channels: int = 0
    max_threadblocks: int = 0
    max_steps: int = 0
    fuse: bool = True

    name: ClassVar[str] = "assign-threadblocks"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = ThreadblockProgram

    def run(self, value: ChunkProgram, target: Target) -> ThreadblockProgram:
        """Return the program with threadblocks; its steps may have several waits.

        Raises
        ------
        LimitError
            CS401: the runtime's threadblocks, steps or channels do not suffice.
        InputError
            CS403: slots are not placed yet.
        """
        if not value.scratch:
            raise InputError(
                Diagnostic(
                    "CS403",
                    "assign-threadblocks must come after place-slots",
                    help="give the passes in the order that `colsynth passes` lists",
                )
            )
        ops = operations(value.transfers)
        layout = Layout(value.problem, value.chunks)
        needed = waits(value.transfers, ops, layout, target.in_place)
        limits = self._limits(target)
        for fuse in (True, False) if self.fuse and target.profile.fuses else (False,):
            staffing = Staffing(value, ops, needed, limits, fuse)
            if staffing.fill():
                return emit(value, staffing, layout, target)
        raise _too_many(limits, target)

    def _limits(self, target: Target) -> Limits:
        profile = target.profile
        most = min(profile.max_threadblocks, profile.resident_threadblocks)
        return Limits(
            threadblocks=self.max_threadblocks or most,
            steps=self.max_steps or profile.max_steps,
            channels=self.max_channels or profile.max_channels,
            per_channel=profile.max_threadblocks_per_channel,
        )


def _too_many(limits: Limits, target: Target) -> LimitError:
    return LimitError(
        Diagnostic(
            "CS401",
            f"the schedule does not fit the threadblocks of {target.profile.name}",
            notes=(
                f"{limits.threadblocks} threadblocks per GPU of {limits.steps} steps each",
                f"{limits.channels} channels",
            ),
            help="use fewer trees (--trees) or fewer --instances",
        )
    )
