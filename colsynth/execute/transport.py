"""What ranks exchange: messages that arrive completely, in order between two ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

FIELDS = 5
"""Integers at the head of every message: session, kind, and three of the kind's own."""

Head = tuple[int, int, int, int, int]


class Message(NamedTuple):
    """A message that arrived.

    Parameters
    ----------
    source : int
        Rank.
    head : tuple of int
        `FIELDS` of them.
    data : uint8 array
        Owned by the receiver.
    """

    source: int
    head: Head
    data: Bytes


class Transport(Protocol):
    """Moves messages between processes.

    Sending never waits for the receiver's program: how much a connection holds is the business
    of the programs, which count what the other side has taken.
    """

    rank: int
    size: int

    def send(self, target: int, head: Head, data: Bytes | None = None) -> None:
        """Send a message; the caller may overwrite `data` afterwards."""

    def receive(self, seconds: float) -> Message | None:
        """Return the next message, None when none arrives within a time."""

    def collective(self, name: str, ranks: int, root: int, given: Any, taken: Any) -> float | None:
        """Run the library's own collective on the first ranks, which must all call this.

        Parameters
        ----------
        name : str
            Of a `Collective`.
        ranks, root : int
        given, taken : arrays
            Input and output.

        Returns
        -------
        float or None
            Seconds; None where the library has none for the type.
        """

    def close(self) -> None:
        """Leave; no messages are under way."""
