"""Work that this process and a copy of it share: each takes over what the other has done."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any, Generic, TypeVar

from colsynth.jobs.process_copy import Records, end_copy, repeat, start_copy

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
Wish = TypeVar("Wish")
_HEAD = 9
"""Bytes before a message: what it is, and how long."""


@dataclass(frozen=True)
class _Done(Generic[Result]):
    """A result of the other process.

    Parameters
    ----------
    result : Result
    records : list of LogRecord
        What it logged meanwhile.
    begins, size : int
        Where a larger value lies that belongs to it; a size of 0 means there is none.
    """

    result: Result
    records: Records
    begins: int = 0
    size: int = 0


class Shared(Generic[Key, Result, Wish]):
    """Results by key, of work that two processes do at a time.

    Use it as a context: a copy of this process begins with some work there, and is killed at the
    end of the block. Each process tells what it begins and what it has done, and reads what the
    other tells when it likes. Results must allow pickling.

    Parameters
    ----------
    work : callable
        What the copy does. It takes this object, with the roles exchanged.
    """

    def __init__(self, work: Callable[[Shared[Key, Result, Wish]], None]) -> None:
        self._work = work
        self._process = 0
        self._records: Records = []
        self._own: _Journal | None = None
        self._other: _Journal | None = None
        self._done: dict[Key, _Done[Result]] = {}
        self._begun: Key | None = None
        self._wishes: list[Wish] = []
        self.is_copy = False

    def __enter__(self) -> Shared[Key, Result, Wish]:
        with suppress(OSError):  # too many files are open: this process then does all the work
            self._start(*_journals())
        return self

    def _start(self, own: _Journal, other: _Journal) -> None:
        self._process = start_copy(lambda records: self._do(other, own, records))
        if self._process:
            self._take(own, other)
        else:
            own.close()
            other.close()

    def _take(self, own: _Journal, other: _Journal) -> None:
        self._own, self._other = own, other
        own.only_write()
        other.only_read()

    def _do(self, own: _Journal, other: _Journal, records: Records) -> None:
        self._take(own, other)
        self._process, self._records, self.is_copy = 0, records, True
        self._work(self)

    def __exit__(self, *_raised: object) -> None:
        if self._process:
            end_copy(self._process)
            self._process = 0
        for journal in (self._own, self._other):
            if journal is not None:
                journal.close()
        self._own = self._other = None

    def wish(self, keys: Sequence[Wish]) -> None:
        """Tell what this process has waiting, the most urgent last: all of it, each time."""
        self._tell(b"w", list(keys))

    def wished(self) -> Wish | None:
        """Return what the other process has waiting, each once; None where there is no more."""
        self._read()
        return self._wishes.pop() if self._wishes else None

    def begin(self, key: Key) -> None:
        """Tell that this process begins the work of a key."""
        self._tell(b"b", key)

    def leave(self) -> None:
        """Tell that this process does not do what it has begun: the other one does."""
        self._tell(b"b", None)

    def give(self, key: Key, result: Result, value: Any = None) -> None:
        """Tell the result of a key; a larger value with it is read only where it is asked for."""
        begins, size = (0, 0) if value is None else self._tell(b"v", value)
        self._tell(b"d", (key, _Done(result, list(self._records), begins, size)))
        self._records.clear()

    def _tell(self, kind: bytes, told: Any) -> tuple[int, int]:
        """Write a message, if there is another process; return where its data begins, and how much.

        The kinds are ``b"b"``: begun, ``b"d"``: done, ``b"v"``: a value, ``b"w"``: wishes.
        """
        if self._own is None:
            return 0, 0
        data = pickle.dumps(told, pickle.HIGHEST_PROTOCOL)
        return self._own.write(kind, data), len(data)

    def result(self, key: Key) -> Result | None:
        """Return what the other process has done for a key; None if it has not."""
        self._read()
        done = self._done.get(key)
        if done is None:
            return None
        repeat(done.records)
        done.records.clear()
        return done.result

    def results(self) -> Iterator[Result]:
        """Yield all that the other process has done so far."""
        self._read()
        yield from (done.result for done in self._done.values())

    def value(self, key: Key) -> Any:
        """Return the larger value that the other process told with a result; None without one."""
        done = self._done.get(key)
        if done is None or not done.size or self._other is None:
            return None
        return pickle.loads(self._other.at(done.begins, done.size))  # noqa: S301 - by this program

    def is_begun(self, key: Key) -> bool:
        """Whether the other process works for a key now."""
        self._read()
        return self._begun == key

    def wait(self) -> bool:
        """Wait until the other process tells something, or ends; return whether it goes on."""
        if self._other is not None and self._other.wait():
            return True
        self._read()
        self._begun = None
        return False

    def _read(self) -> None:
        """Read what the other process has told."""
        while self._other is not None and (message := self._other.read()) is not None:
            kind, data = message
            told = pickle.loads(data)  # noqa: S301 - this program wrote it
            if kind == b"b":
                self._begun = told
            elif kind == b"w":
                self._wishes = told
            else:
                key, self._done[key] = told
                self._begun = None


class _Journal:
    """Messages from one process to another, in memory: neither waits for the other to have room.

    Its writer rings a bell, a pipe, for a reader that waits. The pipe ends with the writer.
    """

    def __init__(self) -> None:
        self._memory = _memory()
        try:
            self._ears, self._bell = os.pipe()
        except OSError:
            os.close(self._memory)
            raise
        os.set_blocking(self._bell, False)
        self._at = 0

    def only_write(self) -> None:
        """Close what only the reader needs."""
        os.close(self._ears)
        self._ears = -1

    def only_read(self) -> None:
        """Close what only the writer needs."""
        os.close(self._bell)
        self._bell = -1

    def close(self) -> None:
        """Free all."""
        for number in (self._memory, self._ears, self._bell):
            if number >= 0:
                os.close(number)

    def write(self, kind: bytes, data: bytes) -> int:
        """Append a message; return where its data begins."""
        whole = memoryview(kind + len(data).to_bytes(_HEAD - 1, "big") + data)
        begins = self._at + _HEAD
        while whole:
            written = os.pwrite(self._memory, whole, self._at)
            self._at, whole = self._at + written, whole[written:]
        with suppress(BlockingIOError, BrokenPipeError):  # it was rung often enough; nobody listens
            os.write(self._bell, b"!")
        return begins

    def read(self) -> tuple[bytes, bytes] | None:
        """Return the next message, without values; None where there is no whole one."""
        while True:
            told = os.fstat(self._memory).st_size - self._at
            head = os.pread(self._memory, _HEAD, self._at) if told >= _HEAD else b""
            size = int.from_bytes(head[1:], "big")
            if told < _HEAD + size or not head:
                return None
            begins, self._at = self._at + _HEAD, self._at + _HEAD + size
            if head[:1] != b"v":
                return head[:1], self.at(begins, size)

    def at(self, begins: int, size: int) -> bytes:
        """Return some bytes of the memory."""
        return os.pread(self._memory, size, begins)

    def wait(self) -> bool:
        """Wait for the bell; return whether the writer is still there."""
        return bool(os.read(self._ears, 4096))


def _journals() -> tuple[_Journal, _Journal]:
    """Return a journal for each process; raise OSError, with no file left open, without both."""
    with ExitStack() as opened:
        own = _Journal()
        opened.callback(own.close)
        other = _Journal()
        opened.pop_all()
    return own, other


def _memory() -> int:
    """Return an empty file in memory; on disk where Python was built for an older C library."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("colsynth")
    with TemporaryFile() as file:
        return os.dup(file.fileno())
