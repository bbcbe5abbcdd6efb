"""What ranks are told to execute, and what they answer: plain values, as JSON."""

from __future__ import annotations

from typing import Any

import msgspec


class FileJob(msgspec.Struct, frozen=True):
    """A file, and the calls that are made of it.

    Parameters
    ----------
    name : str
        What answers call it.
    path : str
        Where its bytes lie.
    runtime : str
        Whose reader and limits apply.
    ranks : int
    sizes : tuple of int
        Bytes of messages.
    in_place : tuple of bool
        Call modes.
    """

    name: str
    path: str
    runtime: str
    ranks: int
    sizes: tuple[int, ...]
    in_place: tuple[bool, ...]


class Job(msgspec.Struct, frozen=True):
    """Files, and how to execute them.

    Parameters
    ----------
    files : tuple of FileJob
    dtype : str
        A type of numpy.
    launches : int
        Calls whose results are checked.
    held : int
        Strands of every rank that are held back in each checked call.
    repeat : int
        Calls that are timed, 0 for none.
    tile : int or None
        Bytes of a chunk that a pass moves, None for those of the runtime.
    timeout : float
        Seconds for the calls of one size.
    seed : int
    starter : int or None
        Process that started the ranks; they end when it does.
    """

    files: tuple[FileJob, ...]
    dtype: str
    launches: int = 4
    held: int = 2
    repeat: int = 5
    tile: int | None = None
    timeout: float = 60.0
    seed: int = 1
    starter: int | None = None


class Outcome(msgspec.Struct):
    """What became of one file at one size, in one mode.

    Parameters
    ----------
    file : int
        Index in the job.
    size : int
        Bytes.
    count : int
        Elements, as nccl-tests counts them.
    in_place : bool
    wrong : int or None
        Elements of all checked calls and ranks; None where nothing was compared.
    custom : bool
        Whether the collective has no agreed result, so that nothing was compared.
    root : int or None
    seconds, library_seconds : float or None
        Of a call.
    library_wrong : int or None
        Elements in which the library's own collective differs from the definition; None as above.
    late : bool
        Whether the time was over before it was known whether anything can go on.
    stuck : list of dict
        What each threadblock waits for, where the program does not end.
    left : list of str
        What was sent and never received.
    """

    file: int
    size: int
    count: int
    in_place: bool
    wrong: int | None = None
    custom: bool = False
    root: int | None = None
    seconds: float | None = None
    library_seconds: float | None = None
    library_wrong: int | None = None
    late: bool = False
    stuck: list[dict[str, Any]] = []
    left: list[str] = []

    @property
    def right(self) -> bool:
        """Whether the file did what its collective promises."""
        return not (self.wrong or self.library_wrong or self.stuck or self.left or self.late)


class Report(msgspec.Struct):
    """What one rank saw of one session."""

    over: bool
    late: bool
    wrong: list[int]
    seconds: float | None = None
    stuck: list[dict[str, Any]] = []
    left: list[str] = []
    library: tuple[float, int | None] | None = None
