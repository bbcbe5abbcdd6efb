"""What assign-threadblocks may do, by name: how many threadblocks, and what each may serve."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

Name = Literal[
    "fewest",
    "spread",
    "shared",
    "balanced",
    "pooled",
    "paired",
    "paired-all",
    "duplex",
    "scheduled",
]


class Quota(Enum):
    """How many threadblocks a connection gets at each end.

    ``ANY``: as few as the limits allow. ``LOAD``: in proportion to its chunks
    (`colsynth.lowering.balanced`). ``PAIRS``: as ``LOAD``, and within a box each threadblock also
    serves the opposite connection (`colsynth.lowering.paired`).
    """

    ANY = "any"
    LOAD = "load"
    PAIRS = "pairs"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy of threadblock allocation.

    Parameters
    ----------
    quota : Quota
    spreads : bool
        Whether to take as many threadblocks as may be resident, each for as few chunks.
    duplex : bool
        Whether a threadblock may serve one connection in each direction from the start; other
        strategies allow that only where threadblocks run out.
    separates : bool
        Whether each phase gets threadblocks of its own where they suffice. A threadblock ends a
        tile before it begins the next (contract 4.3). One that serves both phases of an
        allreduce reduces nothing of a tile while it waits for sums of the tile before.
    between : bool
        Of a quota of ``PAIRS``: whether connections between boxes are paired too. Otherwise they
        are so only where threadblocks do not suffice.
    helps : bool
        Whether threadblocks with peers take local steps too. They are idle while sums of small
        messages are added; of large ones, they send the next tile meanwhile.
    """

    quota: Quota = Quota.ANY
    spreads: bool = False
    duplex: bool = False
    separates: bool = True
    between: bool = False
    helps: bool = False

    @property
    def shares_local(self) -> bool:
        """Whether local steps are shared by all threadblocks that may be resident.

        Those without peers, beside the others. A ring with one threadblock for each channel waits
        for a GPU's copy of its own data otherwise: an allgather of 768 MiB by msccl-executor among
        24 GPUs on a switch reaches 675 instead of 388 GB/s.
        """
        return self.spreads or self.helps or self.duplex or self.quota is not Quota.ANY


STRATEGIES: dict[str, Strategy] = {
    "fewest": Strategy(),
    "spread": Strategy(spreads=True),
    "shared": Strategy(separates=False, helps=True),
    "balanced": Strategy(Quota.LOAD),
    "pooled": Strategy(Quota.LOAD, separates=False),
    "paired": Strategy(Quota.PAIRS, duplex=True, separates=False, helps=True),
    "paired-all": Strategy(Quota.PAIRS, duplex=True, separates=False, between=True, helps=True),
    "duplex": Strategy(duplex=True, separates=False),
    "scheduled": Strategy(Quota.TIME, separates=False),
}
"""Every strategy by its name, `Name`."""
