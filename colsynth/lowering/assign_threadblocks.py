"""Pass assign-threadblocks: ChunkProgram -> ThreadblockProgram."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import ClassVar

from colsynth.errors import Diagnostic, InputError, LimitError, did_you_mean, require_least
from colsynth.lowering.allocate_threadblocks import Allocator
from colsynth.lowering.allocation import MANY, Limits, PlacedThreadblock
from colsynth.lowering.chunk_ranges import ChunkRanges
from colsynth.lowering.columns import Columns
from colsynth.lowering.emit import Spelling, emit
from colsynth.lowering.exchange import passing
from colsynth.lowering.fold_sums import folded, folds, most_folded
from colsynth.lowering.hazards import operations, waits
from colsynth.lowering.layout import Layout
from colsynth.lowering.local_copies import split_own_copies, without_own_copies
from colsynth.lowering.nic_window import with_nic_window
from colsynth.lowering.proposals import redealt, strategies
from colsynth.lowering.refusals import may_fuse, require_room
from colsynth.lowering.scheduled import Timetable
from colsynth.lowering.strategies import STRATEGIES, Name, Quota
from colsynth.lowering.threadblock_load import RankLoads
from colsynth.lowering.unsaved import without_saves
from colsynth.model import ChunkProgram, ThreadblockProgram
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.target import Target


@dataclass(frozen=True, slots=True)
class AssignThreadblocks:
    """Give every transfer a threadblock at each end, and fuse relays with their arrivals.

    Chains of the global order are placed one after the other, each on the channel where it
    needs the fewest new threadblocks; a chain that fits nowhere whole is divided into its
    transfers. Where that exceeds a limit, relays are not fused, then phases share threadblocks,
    then threadblocks serve a connection in each direction, then all are used that the runtime
    allows (in plans for one direction each, if they suffice).

    Parameters
    ----------
    strategy : str
        ``"fewest"``: as few threadblocks as suffice. ``"spread"``: as many as may be resident, each
        for as few chunks. ``"shared"``: as few as suffice, and all of them share local steps.
        ``"balanced"``: each connection gets threadblocks in proportion to its load. ``"pooled"``:
        balanced, and phases share threadblocks. ``"paired"``: by load as well, and within a box
        each threadblock also serves the opposite connection, in rounds, between boxes too if
        threadblocks run out otherwise; nothing is fused. ``"paired-all"``: as ``"paired"``, and
        between boxes from the start. ``"duplex"``: as few as suffice, each with one connection in
        each direction, as on a ring, and more for copies. ``"scheduled"``: each connection and the
        local steps of each GPU have their own, in proportion to the time that these take, and a
        simulation of a large message orders them (`colsynth.lowering.scheduled`); nothing is fused.
    nic_window : int
        Sends in flight on each link that leaves a box, in multiples of as many as fill it;
        the others wait (`colsynth.lowering.nic_window`). 0: no limit.
    fold : int
        Messages that one step may add up where the runtime can (`colsynth.lowering.fold_sums`).
    fuse : bool
        Whether receive-and-send steps may be used where the runtime has them. They tie two
        connections to one threadblock, so programs whose order is fixed have none, unless
        that order is lockstep (`Ordering`).
    max_channels, max_threadblocks, max_steps : int
        Limits of its own, within the runtime's; 0 takes what colsynth aims at.
    """

    strategy: Name = "fewest"
    nic_window: int = 0
    fold: int = 1
    fuse: bool = True
    max_channels: int = 0
    max_threadblocks: int = 0
    max_steps: int = 0

    name: ClassVar[str] = "assign-threadblocks"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = ThreadblockProgram
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("strategy", propose=strategies),
        Choice("strategy", propose=redealt, label="redealt"),
        Choice("fold", propose=folds),
    )

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            advice = did_you_mean(self.strategy, STRATEGIES)
            phrase = f"there is no strategy {self.strategy!r}"
            raise InputError(Diagnostic("CS213", phrase, help=advice))
        require_least("fold", self.fold, 1)
        for option in ("nic-window", "max-channels", "max-threadblocks", "max-steps"):
            require_least(option, getattr(self, option.replace("-", "_")), 0)

    def run(self, value: ChunkProgram, target: Target) -> ThreadblockProgram:
        """Return the program with threadblocks; its steps may have several waits.

        Raises
        ------
        LimitError
            CS401: the runtime's threadblocks, steps or channels do not suffice. CS402: more steps
            than a file has lines for.
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
        strategy, layout = STRATEGIES[self.strategy], Layout(value.problem, value.chunks)
        if not target.out_of_place:
            value = replace(value, transfers=without_own_copies(value.transfers, layout))
        if strategy.shares_local:
            value = replace(value, transfers=split_own_copies(value.transfers))
        columns = Columns.of(value.transfers)
        fuses = self.fuse and strategy.quota not in (Quota.PAIRS, Quota.TIME)
        require_room(value, columns, target.profile, fuses=fuses)
        ops = operations(columns)
        ranges = ChunkRanges(value.transfers, layout.grain)
        needed = waits(columns, ranges, layout, target.in_place)
        if self.nic_window:
            needed = with_nic_window(value, columns, needed, self.nic_window, target)
        limits = self._limits(value, layout, target.profile)
        if strategy.quota is Quota.TIME:
            found = Timetable(value, columns, needed, target).allocate(limits)
            if found is None:
                raise _too_many(value, limits, target)
            blocks = found
        else:
            allocator = Allocator(value, columns, ops, needed, strategy, target)
            blocks = self._allocate(allocator, target, limits)
        spelling = Spelling(columns, needed, ranges)
        program = emit(value, spelling, blocks, layout, target)
        if layout.exchanges and target.in_place:
            program = without_saves(program, target)
        most = min(self.fold, most_folded(target.profile))
        return folded(program, most) if most > 1 else program

    def _allocate(
        self, allocator: Allocator, target: Target, limits: Limits
    ) -> list[PlacedThreadblock]:
        """Return the preferred allocation among those that fit."""
        strategy = STRATEGIES[self.strategy]
        if strategy.quota is Quota.PAIRS:
            ways = (True,) if strategy.between else (False, True)
            for between, spare in product(ways, (0, 1)):
                found = allocator.allocate(limits, spare=spare, between=between)
                if found is not None:
                    return found
            raise _too_many(allocator.program, limits, target)
        for separate in (True, False) if strategy.separates else (False,):
            found = self._lightest(allocator, limits, target.profile, separate)
            if found is not None:
                return found
        most = target.profile.max_threadblocks
        hard = min(self.max_threadblocks or most, most)
        # In plans, the hard limit is what is resident too, on all but the smallest GPUs.
        wider = [(hard, False)] if target.profile.plans else []
        for threadblocks, duplex in ((limits.threadblocks, True), *wider, (hard, True)):
            limits = replace(limits, duplex=duplex, threadblocks=threadblocks)
            found = allocator.allocate(limits)
            if found is not None:
                return found
        raise _too_many(allocator.program, limits, target)

    def _limits(self, program: ChunkProgram, layout: Layout, profile: Profile) -> Limits:
        """Return limits within what is resident on any GPU."""
        aim = profile.usable_threadblocks
        sent = (t for t in program.transfers if t.source != t.target)
        relays = layout.exchanges and bool(passing(layout, sent))
        steps = profile.relay_steps if relays else profile.max_steps
        return Limits(
            duplex=STRATEGIES[self.strategy].duplex,
            threadblocks=min(self.max_threadblocks or aim, profile.max_threadblocks),
            steps=min(self.max_steps or steps, profile.max_steps),
            channels=min(self.max_channels or profile.max_channels, profile.most_channels),
            per_channel=profile.max_threadblocks_per_channel,
        )

    def _lightest(
        self, allocator: Allocator, limits: Limits, profile: Profile, separate: bool
    ) -> list[PlacedThreadblock] | None:
        """Return the allocation with the fewest chunks per threadblock, fused where as few.

        Which loads fit without fusing is nearly known beforehand (`RankLoads.least`), so they
        are tried one by one; with fusing it is not, and they are bisected.
        """
        program = allocator.program
        work = RankLoads.of(allocator.columns, separate)
        loads = [MANY]
        if STRATEGIES[self.strategy].spreads:
            loads[:0] = work.loads(limits.threadblocks)

        def unfused() -> tuple[int, list[PlacedThreadblock] | None]:
            """Return the place of the first load that fits, else of the last, and what it gives.

            When one does not fit, the last is tried at once: mostly none does then.
            """
            last = len(loads) - 1
            order = [place for place, most in enumerate(loads) if promising(most)]
            for number, place in enumerate(order):
                found = alone(place)
                if found is not None:
                    return place, found
                if number == 0 and alone(last) is None:
                    break
            return last, None

        def promising(most: int) -> bool:
            return work.least(most, limits.steps, fused=False) <= limits.threadblocks

        @cache
        def alone(place: int) -> list[PlacedThreadblock] | None:
            apart = replace(limits, duplex=False, chunks=loads[place])
            return allocator.allocate(apart, separate=separate)

        fuses = self.fuse and may_fuse(program, profile)
        late = fuses and len(loads) == 1  # then it is of use only where nothing fits fused
        last, plain = (0, None) if late else unfused()
        fused = [
            replace(limits, chunks=most)
            for most in loads[: last + 1]
            if fuses and work.least(most, limits.steps, fused=True) <= limits.threadblocks
        ]
        found = _first(fused, partial(allocator.allocate, fuse=True, separate=separate))
        return found or (unfused()[1] if late else plain)


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
    room = f"{limits.steps} steps"
    if target.profile.plans:
        room = f"{target.profile.plans['operations']} operations"
    return LimitError(
        Diagnostic(
            "CS401",
            f"the schedule does not fit the threadblocks of {target.profile.name}",
            notes=(
                f"{limits.threadblocks} threadblocks per GPU of {room} each",
                f"{limits.channels} channels",
                f"the busiest GPU sends to {most} others",
            ),
        )
    )
