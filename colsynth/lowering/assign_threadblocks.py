"""Pass assign-threadblocks: ChunkProgram -> ThreadblockProgram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from colsynth.errors import Diagnostic, InputError, LimitError, require_least
from colsynth.lowering.emit import emit
from colsynth.lowering.hazards import operations, waits
from colsynth.lowering.lanes import MANY, Limits
from colsynth.lowering.layout import Layout
from colsynth.lowering.refusals import ADVICE
from colsynth.lowering.spread import Work
from colsynth.lowering.staffing import Staffing
from colsynth.model import ChunkProgram, ThreadblockProgram
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.target import Target


@dataclass(frozen=True, slots=True)
class AssignThreadblocks:
    """Staff every transfer with a threadblock at each end, and fuse relays.

    Chains of the global order are placed one after the other, each on the channel where
    it needs the fewest new threadblocks; a chain that fits nowhere whole is cut into its
    transfers. Where that exceeds a limit, relays are not fused, then threadblocks serve a
    connection in each direction. Fewest threadblocks win: parallel copies are asked for by
    name (``lower-forest{instances=...}``) and get channels of their own.

    Parameters
    ----------
    max_channels, max_threadblocks, max_steps : int
        Limits of its own, within the runtime's; 0 takes what colsynth aims at.
    fuse : bool
        Whether receive-and-send steps may be used where the runtime has them. They tie
        two connections to one threadblock, so programs with an order of their own
        (`ChunkProgram.ordered`) have none unless `abreast`.
    share : bool
        Whether a threadblock that fuses relays may from the start serve one connection in
        each direction, as it does on a ring; else only where the limits ask for it.
    abreast : bool
        Whether programs with an order of their own have fused steps all the same, where the
        order of each connection allows (`colsynth.lowering.abreast`).
    apart : bool
        Whether each phase has threadblocks of its own where they suffice and do not `share`.
        A threadblock ends a tile before it begins the next (contract 4.3): one that serves
        both phases of an allreduce adds nothing of a tile while it waits for sums of the last.
    spread : bool
        Whether to take as many threadblocks as may be resident, each for as few chunks,
        instead of as few as suffice; of those that `share`, as few as suffice.
    """

    max_channels: int = 0
    max_threadblocks: int = 0
    max_steps: int = 0
    fuse: bool = True
    share: bool = False
    abreast: bool = False
    apart: bool = True
    spread: bool = False

    name: ClassVar[str] = "assign-threadblocks"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = ThreadblockProgram

    def __post_init__(self) -> None:
        require_least("max-channels", self.max_channels, 0)
        require_least("max-threadblocks", self.max_threadblocks, 0)
        require_least("max-steps", self.max_steps, 0)

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
        allowed = self.abreast or not value.ordered
        fuses = self.fuse and target.profile.fuses and allowed
        for limits, fuse, apart in self._attempts(value, target.profile, fuses):
            staffing = Staffing(value, ops, needed, limits, fuse, apart, self.abreast)
            if staffing.fill():
                return emit(value, staffing, layout, target)
        raise _too_many(value, limits, target)

    def _attempts(
        self, program: ChunkProgram, profile: Profile, fuses: bool
    ) -> Iterator[tuple[Limits, bool, bool]]:
        """Yield (limits, whether to fuse, whether phases are apart), best staffing first.

        First within what is resident on any GPU, at last with all that the runtime allows.
        """
        aim = min(profile.max_threadblocks, profile.resident_threadblocks)
        limits = Limits(
            threadblocks=min(self.max_threadblocks or aim, profile.max_threadblocks),
            steps=min(self.max_steps or profile.max_steps, profile.max_steps),
            channels=min(self.max_channels or profile.max_channels, profile.most_channels),
            per_channel=profile.max_threadblocks_per_channel,
        )
        hard = min(self.max_threadblocks or profile.max_threadblocks, profile.max_threadblocks)
        for apart in (True, False) if self.apart and not self.share else (False,):
            work = Work.of(program.transfers, apart)
            spreads = self.spread and not self.share
            for most in (*(work.loads(limits.threadblocks) if spreads else ()), MANY):
                for fuse in (True, False) if fuses else (False,):
                    shared = self.share and fuse
                    least = work.least(most, limits.steps, fused=fuse or shared)
                    if least <= limits.threadblocks:
                        yield replace(limits, share=shared, chunks=most), fuse, apart
        yield replace(limits, share=True), False, False
        yield replace(limits, share=True, threadblocks=hard), False, False


def _too_many(program: ChunkProgram, limits: Limits, target: Target) -> LimitError:
    peers: dict[int, set[int]] = {}
    for transfer in program.transfers:
        peers.setdefault(transfer.source, set()).add(transfer.target)
    most = max(len(others - {rank}) for rank, others in peers.items())
    return LimitError(
        Diagnostic(
            "CS401",
            f"the schedule does not fit the threadblocks of {target.profile.name}",
            notes=(
                f"{limits.threadblocks} threadblocks per GPU of {limits.steps} steps each",
                f"{limits.channels} channels",
                f"the busiest GPU sends to {most} others",
            ),
            help=ADVICE,
        )
    )
