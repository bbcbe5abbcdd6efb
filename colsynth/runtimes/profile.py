"""A runtime as data: what it accepts, how it spells things, what it executes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from colsynth.model import Collective


@dataclass(frozen=True)
class Profile:
    """One runtime's limits and spellings; values and sources are in ``profiles.yaml``.

    Parameters
    ----------
    name, title, version : str
        ``"msccl"`` or another key of ``profiles.yaml``, with ``@version`` where pinned; a
        phrase; the version read.
    ops : tuple of str
        Step types the runtime launches.
    collectives : dict
        The runtime's spelling of each collective it can serve.
    both_modes : bool
        Whether one file may serve in-place and out-of-place calls.
    exclusive_max : bool
        Whether ``maxBytes`` is exclusive and must be finite (else inclusive, 0 = no limit).
    least_min_bytes : int
        Smallest ``minBytes`` that is safe.
    default_max_bytes : int or None
        Largest message that the runtime can count; None where nothing but `max_tiles` limits it.
    max_threadblocks : int
        Hard limit per GPU.
    resident_threadblocks : int
        How many can be counted on to be resident together; lowering aims below it.
    max_steps : int
        Per threadblock, nops included.
    max_channels, max_threadblocks_per_channel : int
        What lowering may use.
    max_xml_nodes : int
        Ranks + threadblocks + steps of one rank.
    max_count, max_offset, max_wait_target : int
        Largest ``cnt``, chunk offset, and threadblock id that others may wait for.
    fifo_calls : dict
        Primitive calls a connection holds, by protocol (contract 4.6).
    tile_bytes : dict
        Bytes of a chunk that one pass of the outer loop moves, by protocol (contract 4.3).
    longest_sum : int or None
        Local sums in a row that the runtime does in one go (contract 4.5, rule S13): it keeps
        their sources in an array; None where any number.
    max_tiles : int
        Passes of the outer loop that flags count (contract 4.3); with more, the job hangs.
    warnings : tuple of str
        What everyone who gets a file for this runtime must be told.
    notes : tuple of str
        What a user of this runtime should know.
    hard_channels : int
        What the best hardware lets a file ask for; the linter refuses above it and
        warns above `max_channels`.
    attributes, required : tuple of str
        Attributes of ``algo`` in the order the writer spells them, and those without
        which the file is not loaded.
    missing_max_bytes : int or None
        What the runtime assumes, in its own meaning, where ``maxBytes`` is absent; None where
        it does not load the file then.
    connection_bytes : int
        Buffer memory of one connection end, all protocols together.
    directory : bool
        Whether files are found in a directory (else they are listed by path).
    max_files : int or None
        Most files per job; None is no limit worth naming.
    exports : tuple of (str, str)
        Environment variables a job needs beside the one that names the files.
    out_of_place_only : tuple of Collective
        Collectives whose in-place calls the runtime refuses.
    config : str or None
        Root element of the file that lists schedules with ranges, where the runtime reads one.
    built_in : dict
        Algorithms of the library that colsynth models, by collective: what runs where no
        file serves a call.
    counts_bytes : tuple of Collective
        Collectives of which the runtime counts bytes, not elements, when it asks whether the
        chunks of a file divide a call (`colsynth.runtimes.selection`).
    plans : dict
        Of a runtime that reads plans in JSON, their limits and what its version does; empty where
        schedules are XML.
    rounds : bool
        Whether the runtime reads rounds of point-to-point messages (`RoundProgram`).
    library : str or None
        The runtime whose algorithms, `built_in` there, serve calls that no file serves; None: this
        one.
    passes_on : dict
        GPUs that data of one connection passes at most where no way joins two GPUs by themselves:
        within a ``"box"``, and over the ``"network"``. Empty: none.
    sources : dict
        Where each number comes from, by field name.
    """

    name: str
    title: str
    version: str
    ops: tuple[str, ...]
    collectives: dict[Collective, str]
    both_modes: bool
    exclusive_max: bool
    least_min_bytes: int
    default_max_bytes: int | None
    max_threadblocks: int
    resident_threadblocks: int
    max_steps: int
    max_channels: int
    max_threadblocks_per_channel: int
    max_xml_nodes: int
    max_count: int
    max_offset: int
    max_wait_target: int
    fifo_calls: dict[str, int]
    tile_bytes: dict[str, int]
    longest_sum: int | None
    max_tiles: int
    warnings: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    hard_channels: int = 0
    attributes: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    missing_max_bytes: int | None = None
    connection_bytes: int = 0
    directory: bool = False
    max_files: int | None = None
    exports: tuple[tuple[str, str], ...] = ()
    out_of_place_only: tuple[Collective, ...] = ()
    config: str | None = None
    built_in: dict[Collective, tuple[str, ...]] = field(default_factory=dict)
    counts_bytes: tuple[Collective, ...] = ()
    plans: dict[str, Any] = field(default_factory=dict)
    rounds: bool = False
    library: str | None = None
    passes_on: dict[str, int] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def relay_steps(self) -> int:
        """Steps of a threadblock that passes data of others on through scratch.

        In a plan, each of them may take a semaphore and give one, which makes six operations
        (`colsynth.runtimes.plans.blocks`), beside ten for credits, the loop and its end.
        """
        return (self.plans["operations"] - 10) // 6 if self.plans else self.max_steps

    @property
    def family(self) -> str:
        """The name without the version that a user may pin, as in ``mscclpp@0.8``."""
        return self.name.partition("@")[0]

    @property
    def format(self) -> str:
        """What its files are, as in `kinds.written_for`: xml, plan or rounds."""
        return "plan" if self.plans else "rounds" if self.rounds else "xml"

    @property
    def xml(self) -> bool:
        """Whether files are XML with steps of threadblocks."""
        return self.format == "xml"

    @property
    def suffix(self) -> str:
        """How names of schedule files end."""
        return ".xml" if self.xml else ".json"

    @property
    def longest_chain(self) -> int | None:
        """Sums in a row that a file may have; any number in plans, whose writer cuts them."""
        return self.longest_sum if self.xml else None

    @property
    def usable_threadblocks(self) -> int:
        """Threadblocks of a GPU that a file may have and that are resident on any GPU."""
        return min(self.max_threadblocks, self.resident_threadblocks)

    @property
    def most_channels(self) -> int:
        """Channels a file may ask for where the hardware is known to have them."""
        return max(self.max_channels, self.hard_channels)

    def largest_message(self, protocol: str, chunks: int) -> int:
        """Return the bytes of the largest message that a file of so many chunks can serve."""
        counted = self.max_tiles * self.tile_bytes[protocol] * chunks
        return min(counted, self.default_max_bytes or counted)

    @property
    def fuses(self) -> bool:
        """Whether receive-and-send and receive-and-reduce steps are launched."""
        return "rrc" in self.ops
