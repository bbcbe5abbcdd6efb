"""Pass assign-threadblocks: ChunkProgram -> ThreadblockProgram."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from colsynth.errors import Diagnostic, InputError, LimitError, require_least
from colsynth.lowering.allocate_threadblocks import Allocator
from colsynth.lowering.allocation import MANY, Limits, PlacedThreadblock
from colsynth.lowering.emit import emit
from colsynth.lowering.hazards import operations, waits
from colsynth.lowering.layout import Layout
from colsynth.lowering.nic_window import with_nic_window
from colsynth.lowering.threadblock_load import RankLoads
from colsynth.model import ChunkProgram, ThreadblockProgram
from colsynth.runtimes.choice import Choice
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
        (`ChunkProgram.ordered`) have none unless `lockstep`.
    share : bool
        Whether a threadblock that fuses relays may from the start serve one connection in
        each direction, as it does on a ring; else only where the limits ask for it. With
        `even`, threadblocks that fuse nothing do so in pairs, as many as there may be
        (`colsynth.lowering.paired`).
    lockstep : bool
        Whether programs with an order of their own have fused steps all the same, where the
        order of each connection allows (`colsynth.lowering.lockstep`).
    apart : bool
        Whether each phase has threadblocks of its own where they suffice and do not `share`.
        A threadblock ends a tile before it begins the next (contract 4.3): one that serves
        both phases of an allreduce adds nothing of a tile while it waits for sums of the last.
    spread : bool
        Whether to take as many threadblocks as may be resident, each for as few chunks,
        instead of as few as suffice; of those that `share`, as few as suffice.
    even : bool
        Whether every connection gets as many threadblocks as its load needs, which share it
        evenly (`colsynth.lowering.balanced`), instead of what `spread` says.
    nic_window : int
        Sends in flight on each link that leaves a box, in multiples of as many as fill it;
        the others wait (`colsynth.lowering.nic_window`). 0: no limit.
    """

    max_channels: int = 0
    max_threadblocks: int = 0
    max_steps: int = 0
    fuse: bool = True
    share: bool = False
    lockstep: bool = False
    apart: bool = True
    spread: bool = False
    even: bool = False
    nic_window: int = 0

    name: ClassVar[str] = "assign-threadblocks"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = ThreadblockProgram
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("spread", (True, False)),
        Choice("even", (False, True)),
    )

    def __post_init__(self) -> None:
        require_least("max-channels", self.max_channels, 0)
        require_least("max-threadblocks", self.max_threadblocks, 0)
        require_least("max-steps", self.max_steps, 0)
        require_least("nic-window", self.nic_window, 0)

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
        if self.nic_window:
            needed = with_nic_window(value, ops, needed, self.nic_window, target)
        even = target if self.even else None
        allowed = self.lockstep or not value.ordered
        fuses = self.fuse and target.profile.fuses and allowed
        allocator = Allocator(value, ops, needed, self.lockstep, even)
        blocks = self._allocate(allocator, target, fuses)
        return emit(value, allocator, blocks, layout, target)

    def _allocate(
        self, allocator: Allocator, target: Target, fuses: bool
    ) -> list[PlacedThreadblock]:
        """Return the preferred allocation among those that fit."""
        program, limits = allocator.program, self._limits(target.profile)
        if self.even and self.share and not fuses:
            found = allocator.allocate(replace(limits, share=True, paired=True), False, False)
            if found is None:
                raise _too_many(program, limits, target)
            return found
        for apart in (True, False) if self.apart and not self.share else (False,):
            work = RankLoads.of(program.transfers, apart)
            found = self._lightest(work, limits, fuses, apart, allocator)
            if found is not None:
                return found
        most = target.profile.max_threadblocks
        hard = min(self.max_threadblocks or most, most)
        for threadblocks in (limits.threadblocks, hard):
            limits = replace(limits, share=True, threadblocks=threadblocks)
            found = allocator.allocate(limits, False, False)
            if found is not None:
                return found
        raise _too_many(program, limits, target)

    def _limits(self, profile: Profile) -> Limits:
        """Return limits within what is resident on any GPU."""
        aim = min(profile.max_threadblocks, profile.resident_threadblocks)
        return Limits(
            threadblocks=min(self.max_threadblocks or aim, profile.max_threadblocks),
            steps=min(self.max_steps or profile.max_steps, profile.max_steps),
            channels=min(self.max_channels or profile.max_channels, profile.most_channels),
            per_channel=profile.max_threadblocks_per_channel,
        )

    def _lightest(
        self, work: RankLoads, limits: Limits, fuses: bool, apart: bool, allocator: Allocator
    ) -> list[PlacedThreadblock] | None:
        """Return the allocation with the fewest chunks per threadblock, fused where as few.

        Which loads fit without fusing is nearly known beforehand (`RankLoads.least`), so they are
        tried one by one; with fusing it is not, and they are bisected.
        """
        loads = [MANY]
        if self.spread and not self.share and not self.even:
            loads[:0] = work.loads(limits.threadblocks)
        plain = None
        for number, most in enumerate(loads):
            if work.least(most, limits.steps, fused=False) <= limits.threadblocks:
                plain = allocator.allocate(replace(limits, chunks=most), False, apart)
                if plain is not None:
                    loads = loads[: number + 1]
                    break
        fused = [
            replace(limits, share=self.share, chunks=most)
            for most in loads
            if fuses and work.least(most, limits.steps, fused=True) <= limits.threadblocks
        ]
        return _first(fused, lambda most: allocator.allocate(most, True, apart)) or plain


def _first(
    ladder: Sequence[Limits], allocate: Callable[[Limits], list[PlacedThreadblock] | None]
) -> list[PlacedThreadblock] | None:
    """Return the first allocation of a ladder of ever wider limits that fits, by bisection."""
    best = allocate(ladder[-1]) if ladder else None
    if best is None:
        return None
    low, high = -1, len(ladder) - 1
    while high - low > 1:
        middle = (low + high) // 2
        found = allocate(ladder[middle])
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return best


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
        )
    )
