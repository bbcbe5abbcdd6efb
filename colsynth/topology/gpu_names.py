"""GPUs of a file: by rank, by a range of ranks, or by their name in the topology."""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.model import Topology
from colsynth.topology.document import Document
from colsynth.topology.groups import read_range


class GpuNames:
    """Reads the GPUs that lists in a file name.

    Parameters
    ----------
    document : Document
    topology : Topology
    """

    def __init__(self, document: Document, topology: Topology) -> None:
        self.document = document
        self.topology = topology.name
        self.names = {topology.nodes[node].name: rank for rank, node in enumerate(topology.ranks)}

    def read(self, words: Sequence[int | str], path: tuple[str | int, ...]) -> tuple[int, ...]:
        """Return the ranks of a list that stands at `path`, ascending.

        Raises
        ------
        InputError
            CS130: a word names no GPU, or one a second time.
        """
        found: set[int] = set()
        for i, word in enumerate(words):
            span = self.document.at(*path, i)
            for rank in self._ranks(word, span):
                if rank in found:
                    raise InputError(Diagnostic("CS130", f"rank {rank} is named twice", span))
                found.add(rank)
        return tuple(sorted(found))

    def _ranks(self, word: int | str, span: Span) -> range:
        if word in self.names:
            return range(self.names[str(word)], self.names[str(word)] + 1)
        ranks = read_range(str(word))
        if ranks is None:
            phrase = f"{word!r} is no rank, no range such as 0-7, and no GPU of {self.topology}"
            hint = did_you_mean(str(word), self.names)
            raise InputError(Diagnostic("CS130", phrase, span, help=hint))
        if ranks.stop > len(self.names):
            phrase = f"there is no rank {max(ranks.start, len(self.names))}"
            note = f"ranks of {self.topology} are 0 to {len(self.names) - 1}"
            raise InputError(Diagnostic("CS130", phrase, span, (note,)))
        return ranks
