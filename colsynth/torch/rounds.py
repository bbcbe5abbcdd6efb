"""One rank's part of a program in rounds, executed on tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from colsynth.model import LocalStep, RoundProgram, Slot

if TYPE_CHECKING:
    from colsynth.torch.transport import Transport

Combine = Callable[..., torch.Tensor]
"""``torch.add`` or another sum of two tensors, with ``out``."""


@dataclass(frozen=True, slots=True)
class Post:
    """A message to post: to or from `peer`, chunks from `slot` on."""

    sends: bool
    peer: int
    slot: Slot
    count: int


@dataclass(frozen=True)
class Part:
    """What one rank does in a round."""

    posts: tuple[Post, ...]
    local: tuple[LocalStep, ...]


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
        posts = []
        for m in found.messages:
            if m.source == rank:
                posts.append(Post(True, m.target, m.read, m.count))
            if m.target == rank:
                posts.append(Post(False, m.source, m.write, m.count))
        local = tuple(step for step in found.local if step.rank == rank)
        if posts or local:
            parts.append(Part(tuple(posts), local))
    return RankProgram(name, program.header.chunks, program.scratch[rank], tuple(parts))


@torch.no_grad()
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

    def run(slot: Slot, count: int) -> torch.Tensor:
        return buffers[slot.buffer].narrow(0, slot.offset * chunk, count * chunk)

    for part in program.parts:
        if part.posts:
            rows = ((post, run(post.slot, post.count)) for post in part.posts)
            # As bytes, since NCCL does not know all types that tensors have.
            transport.exchange([(post.sends, post.peer, x.view(torch.uint8)) for post, x in rows])
        for step in part.local:
            read, write = run(step.read, step.count), run(step.write, step.count)
            if step.operand is not None:
                combine(run(step.operand, step.count), read, out=write)
            elif read.data_ptr() != write.data_ptr():
                write.copy_(read)
