"""What a pass is.

A pass is a frozen dataclass whose fields are its options. It keeps no memory and
never changes its input. Its name in kebab-case equals its file in snake_case and
its class in CamelCase, so one of the three is enough to find the others.

::

    @dataclass(frozen=True)
    class AssignThreadblocks:
        '''Give every transfer a threadblock and a channel.'''

        name: ClassVar[str] = "assign-threadblocks"
        takes: ClassVar[type] = ChunkProgram
        gives: ClassVar[type] = ThreadblockProgram

        max_channels: int | None = None

        def run(self, value: ChunkProgram, target: Target) -> ThreadblockProgram: ...

A pass that gives the same for any message, whatever its protocol and size, may say so with
``any_message: ClassVar[bool] = True``. A search runs it once for all of them.

Passes satisfy this interface by shape, so the rooms that hold them need not
import the pipeline.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol


class Pass(Protocol):
    """One step from a value of one type to a value of another."""

    name: ClassVar[str]
    takes: ClassVar[type]
    gives: ClassVar[type]

    def run(self, value: Any, target: Any) -> Any:
        """Return the new value; `value` is an instance of `takes` and stays as it is.

        A pass that makes schedules is handed a `Context`, which may be a `Target`; one that
        makes programs is handed a `Target` (both in `colsynth.runtimes.target`).

        Raises
        ------
        ColsynthError
            When `target` or the value allows no result.
        """
        ...


def summary(pass_type: type) -> str:
    """Return the first line of a pass's page."""
    return (pass_type.__doc__ or "").strip().partition("\n")[0]
