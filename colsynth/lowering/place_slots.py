"""Pass place-slots: where every chunk is read, written and added up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from colsynth.errors import Diagnostic, InputError, did_you_mean
from colsynth.lowering.columns import Columns
from colsynth.lowering.layout import Layout
from colsynth.lowering.placer import Placer
from colsynth.lowering.proposals import sums_in_one_go
from colsynth.lowering.refusals import require_room
from colsynth.model import ChunkProgram
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target

_SUMS = "running", "joined", "by-chunk"


@dataclass(frozen=True, slots=True)
class PlaceSlots:
    """Give every transfer its slots, so that the input is never written.

    Copies arrive in the output. Partial sums live in the output where it has room for
    them (allreduce, and at the owner of a chunk), else in scratch. A rank's first arrival
    of a chunk is added to its own input, later ones to the partial sum. All of this is
    right in place and out of place; only the sender's own data differs: out of place it
    must be copied to the output. A program for both modes sends it from the input, which
    is the output in place, so nobody waits for that copy.

    Where a rank sends its own contribution by itself and also adds up those of others, a
    running sum is kept in scratch and copied to the output when all contributions have left.
    Its own is added after those of lower ranks, so that where these come in order, all ranks
    add in the same order and get the same bits. Sums in one go are added in the output
    (`colsynth.lowering.joined_sums`). What such a rank sends behind an arrival is the
    contribution that arrived, not a sum; all contributions are then added in one go.

    Chunks of an alltoall pass through scratch. In place, what a rank gets from another
    overwrites what it sends there, so input that leaves later is copied to scratch first.

    Where the runtime cannot add while receiving (RCCL), arrivals land in scratch and a
    local step adds them to a partial sum, also in scratch: the first arrival itself, to
    which the rank's own input is added (contract 4.1, 4.5, 6.2). The owner's last arrival
    lands in the output, and the sum is added to it.

    Parameters
    ----------
    sums : str
        ``"running"``: every arrival is added at once. ``"joined"``: all arrivals of a chunk land
        in scratch and are added in one go, which runtimes do for reductions in a row
        (`colsynth.lowering.joined_sums`). ``"by-chunk"``: likewise, each chunk by itself, so that
        threadblocks can share the chunks of a transfer.
    """

    sums: str = "running"

    name: ClassVar[str] = "place-slots"
    takes: ClassVar[type] = ChunkProgram
    gives: ClassVar[type] = ChunkProgram
    choices: ClassVar[tuple[Choice, ...]] = (Choice("sums", propose=sums_in_one_go),)

    def __post_init__(self) -> None:
        if self.sums not in _SUMS:
            phrase = f"there are no sums {self.sums!r}"
            raise InputError(Diagnostic("CS213", phrase, help=did_you_mean(self.sums, _SUMS)))

    def run(self, value: ChunkProgram, target: Target) -> ChunkProgram:
        """Return the program with slots, local copies and local reductions.

        Raises
        ------
        LimitError
            CS402: more steps than a file has lines for.
        """
        require_room(value, Columns.of(value.transfers), target.profile)
        layout = Layout(value.problem, value.chunks)
        placer = Placer(layout, target, value.transfers, target.profile.max_count, self.sums)
        placer.place_all()
        scratch = tuple(placer.scratch)
        return replace(value, transfers=tuple(placer.placed), scratch=scratch)
