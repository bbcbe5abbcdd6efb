"""Pass order-transfers: one global order that every threadblock will follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from colsynth.errors import DefectError, Diagnostic, InputError, did_you_mean, require_least
from colsynth.lowering.columns import rows
from colsynth.lowering.list_schedule import list_schedule
from colsynth.lowering.orders import CHAINS, COPY_CHAINS, LIST_SCHEDULE, ORDERS, ROUND_ROBIN
from colsynth.lowering.proposals import orders
from colsynth.lowering.renumbered import reordered
from colsynth.lowering.round_robin import round_robin
from colsynth.lowering.sorting import sort_after
from colsynth.model import ChunkProgram, Ordering, Transfer
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target

_KEPT = LIST_SCHEDULE, ROUND_ROBIN
"""Orders that later passes keep."""


@dataclass(frozen=True, slots=True)
class OrderTransfers:
    """Choose the global order of transfers, relays right behind their arrivals.

    Threadblocks that follow one order of transfers cannot deadlock, whatever the FIFO
    depth: the first unfinished transfer always finds both of its ends waiting for it. A
    fused receive-and-send stands at two places of the order, which is harmless as long as
    nothing comes between them. So relays are threaded into chains (outwards to the child
    with most below it, inwards behind the last arrival), and the order is one of whole
    chains, each after everything it needs: a chain moves like one transfer.

    Where the runtime launches no fused steps, every transfer is a chain of its own. So it
    is where the order is part of the schedule (`ChunkProgram.ordered`): a chain moves as
    one, so its later transfers would overtake others on their connections.

    Parameters
    ----------
    order : str
        ``"chains"``: relays of copies and of sums right behind their arrivals. A sum that
        leaves in the step of its last contribution saves a wait, but its threadblock
        receives nothing meanwhile. ``"copy-chains"``: relays of copies only.
        ``"list-schedule"``: the order in which links could carry the transfers
        (`colsynth.lowering.list_schedule`); later passes keep it. No step precedes one that
        could begin much sooner. ``"round-robin"``: in every beat, each box sends to a
        different box (`colsynth.lowering.round_robin`); later passes keep it too.

        Simulated on msccl at 1 GB, chains, copy-chains and list-schedule in GB/s: an allreduce
        with one tree per GPU on four MI250 boxes reaches 19, 83 and 54, on torus:8x8 9, 9 and
        69; a reduce-scatter on two MI250 boxes 155, 148 and 152. Where each threadblock has
        one step, chains are best.
    lag : int
        Of round-robin: beats by which the second phase of an allreduce is delayed.
    spacing : int
        Of round-robin: beats by which data waits at every GPU that passes it on.
    rotation : int
        Of round-robin: beats after which a sum goes on with the next peer, so that not all sums
        begin with the same one; 0: all do (`colsynth.lowering.rotation`).
    """

    order: str = CHAINS
    lag: int = 0
    spacing: int = 0
    rotation: int = 0

    name: ClassVar[str] = "order-transfers"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = ChunkProgram
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (Choice("order", propose=orders),)

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            phrase = f"there is no order {self.order!r}"
            raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(self.order, ORDERS)))
        require_least("lag", self.lag, 0)
        require_least("spacing", self.spacing, 0)
        require_least("rotation", self.rotation, 0)

    def run(self, value: ChunkProgram, target: Target) -> ChunkProgram:
        """Return the program in its final order.

        Raises
        ------
        InputError
            CS403: slots are placed already, which fixes the order.
        """
        transfers = value.transfers
        if value.scratch:
            raise InputError(
                Diagnostic(
                    "CS403",
                    "order-transfers must come before place-slots",
                    notes=("the first arrival at a rank is placed differently from later ones",),
                    help="give the passes in the order that `colsynth passes` lists",
                )
            )
        if self.order == ROUND_ROBIN:
            options = self.lag, self.spacing, self.rotation
            order = round_robin(transfers, value.problem.topology, *options)
        elif self.order == LIST_SCHEDULE:
            order = list_schedule(transfers, value.problem.topology)
        else:
            order = self._chained(transfers, target.profile.fuses and not value.ordered)
        moved = reordered(transfers, order)
        ordering = Ordering.FIXED if self.order in _KEPT else value.ordering
        return replace(value, transfers=moved, ordering=ordering)

    def _chained(self, transfers: tuple[Transfer, ...], threads: bool) -> list[int]:
        """Return the order of whole chains."""
        follower = _followers(transfers) if threads else {}
        if self.order == COPY_CHAINS:
            follower = {t: f for t, f in follower.items() if not transfers[t].reduces}
        chains = _chains(len(transfers), follower)
        return [t for chain in _sorted_chains(transfers, chains) for t in chain]


def is_relay(arrival: Transfer, departure: Transfer) -> bool:
    """Whether `departure` sends on exactly what `arrival` brings, in the same phase."""
    return (
        arrival.target == departure.source
        and not arrival.is_local
        and not departure.is_local
        and arrival.chunk == departure.chunk
        and arrival.count == departure.count
        and arrival.origin.phase == departure.origin.phase
        and arrival.reduces == departure.reduces
    )


def _followers(transfers: tuple[Transfer, ...]) -> dict[int, int]:
    """Map each arrival to the relay threaded behind it: the longest way first."""
    level: list[int] = []
    for transfer in transfers:
        level.append(1 + max([level[t] for t in transfer.after]) if transfer.after else 0)
    below = [0] * len(transfers)
    for number in range(len(transfers) - 1, -1, -1):
        height = below[number] + 1
        for earlier in transfers[number].after:
            below[earlier] = max(below[earlier], height)
    follower: dict[int, int] = {}
    for number in sorted(range(len(transfers)), key=[-height for height in below].__getitem__):
        arrivals = transfers[number].after
        if not arrivals:
            continue
        last = arrivals[0] if len(arrivals) == 1 else max((level[t], t) for t in arrivals)[1]
        if last not in follower and is_relay(transfers[last], transfers[number]):
            follower[last] = number
    return follower


def _chains(count: int, follower: dict[int, int]) -> list[list[int]]:
    """Return maximal chains of transfers, by their first transfer."""
    followed = set(follower.values())
    chains = []
    for first in range(count):
        if first not in followed:
            chain = [first]
            while chain[-1] in follower:
                chain.append(follower[chain[-1]])
            chains.append(chain)
    return chains


def _sorted_chains(transfers: tuple[Transfer, ...], chains: list[list[int]]) -> list[list[int]]:
    """Order chains after what they need; among ready ones the earliest last transfer.

    A sum is thus begun with what arrives soonest: with what GPUs send of their own before
    what they pass on, so that no threadblock waits for others while it could receive.
    """
    first, flat = rows(chains)
    home = np.empty(len(transfers), dtype=np.int64)
    home[flat] = np.repeat(np.arange(len(chains)), np.diff(first))
    begins, earlier = rows([transfer.after for transfer in transfers])
    waiters, others = np.repeat(home, np.diff(begins)), home[earlier]
    apart = waiters != others
    order = sort_after(waiters[apart], others[apart], flat[first[1:] - 1])
    if order is None:
        raise DefectError(
            Diagnostic("CS902", "chains of transfers wait for each other in a circle")
        )
    return [chains[number] for number in order.tolist()]
