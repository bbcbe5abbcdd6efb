"""One rank's part of a program in rounds, executed on tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch

from colsynth.model import LocalStep, RoundProgram
from colsynth.torch.runs import Cut, Runs, cut

Combine = Callable[..., torch.Tensor]
"""``torch.add`` or another sum of two tensors, with ``out``."""


@dataclass(frozen=True, slots=True)
class Post:
    """A message to post: to or from `peer`, the view of number `data`."""

    sends: bool
    peer: int
    data: int


@dataclass(frozen=True, slots=True)
class Local:
    """A local step by numbers of views: `write` becomes `operand` plus `read`, or `read` alone."""

    read: int
    write: int
    operand: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """What one rank does in a round.

    Parameters
    ----------
    posts : tuple of Post
    sent : tuple of Cut
        Give the views of bytes that posts name.
    local : tuple of Local
    added : tuple of Cut
        Give the views of elements that local steps name.
    """

    posts: tuple[Post, ...]
    sent: tuple[Cut, ...]
    local: tuple[Local, ...]
    added: tuple[Cut, ...]


class Transport(Protocol):
    """Moves the messages of rounds."""

    def exchange(self, part: Part, buffers: Mapping[str, torch.Tensor], chunk: int) -> None:
        """Post all messages of a round at once, and wait for them, on CUDA by the stream only.

        Parameters
        ----------
        part : Part
            Its messages are posted; its local steps are left to the caller.
        buffers : dict
            Flat tensors of bytes by the names that slots have.
        chunk : int
            Bytes.
        """


@dataclass(frozen=True)
class RankProgram:
    """What one rank does in a call.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    chunks : int
        Of the whole message.
    scratch : int
        Chunks of scratch.
    parts : tuple of Part
        Rounds in which the rank does nothing are left out.
    """

    name: str
    chunks: int
    scratch: int
    parts: tuple[Part, ...]


def part_of(name: str, program: RoundProgram, rank: int) -> RankProgram:
    """Return one rank's part; both ends of a pair keep the order of its messages."""
    parts = []
    for found in program.rounds:
        runs, posts = Runs(), []
        for m in found.messages:
            if m.source == rank:
                posts.append(Post(True, m.target, runs.number(m.read, m.count)))
            if m.target == rank:
                posts.append(Post(False, m.source, runs.number(m.write, m.count)))
        local, added = _local([step for step in found.local if step.rank == rank])
        if posts or local:
            parts.append(Part(tuple(posts), runs.cuts(), local, added))
    return RankProgram(name, program.header.chunks, program.scratch[rank], tuple(parts))


def _local(steps: list[LocalStep]) -> tuple[tuple[Local, ...], tuple[Cut, ...]]:
    runs, found = Runs(), []
    for step in steps:
        read, write = (runs.number(slot, step.count) for slot in (step.read, step.write))
        operand = None if step.operand is None else runs.number(step.operand, step.count)
        found.append(Local(read, write, operand))
    return tuple(found), runs.cuts()


def execute(
    program: RankProgram,
    source: torch.Tensor,
    target: torch.Tensor,
    elements: int,
    combine: Combine,
    transport: Transport,
) -> None:
    """Execute a call: every round posts its messages as one batch, then does its local steps.

    Parameters
    ----------
    program : RankProgram
    source, target : Tensor
        Input and output, flat; they may share memory as the program's modes allow.
    elements : int
        Of the whole message; `program.chunks` divides it.
    combine : callable
    transport : Transport
        On CUDA, all is put on the current stream and nothing is waited for.
    """
    chunk = elements // program.chunks
    buffers = {"i": source, "o": target, "s": target.new_empty(program.scratch * chunk)}
    # As bytes, since NCCL does not know all types that tensors have.
    raw = {name: buffer.view(torch.uint8) for name, buffer in buffers.items()}
    size = chunk * source.element_size()
    for part in program.parts:
        if part.posts:
            transport.exchange(part, raw, size)
        views = cut(buffers, part.added, chunk)
        for step in part.local:
            read, write = views[step.read], views[step.write]
            if step.operand is not None:
                combine(views[step.operand], read, out=write)
            elif read.data_ptr() != write.data_ptr():
                write.copy_(read)
