"""What operations of plans do to data: copies, sums, packets, and multicast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from colsynth.execute.addresses import BUFFERS, Turn
from colsynth.execute.loop import GO, Code, Fault, Need

if TYPE_CHECKING:
    from colsynth.execute.addresses import Addresses
    from colsynth.execute.definition import Call
    from colsynth.execute.team import Team
    from colsynth.execute.transport import Bytes
    from colsynth.runtimes.plans.form import Op, Operand, Plan, PlanGpu

FIRST_PACKET = {"rppkt": 0, "upkt": 0, "repkt": 1, "respkt": 1, "recpkt": 1, "recspkt": 1}
"""The first source that is packets."""
FIRST_SENT = {"ppkt": 0, "rppkt": 0, "cpkt": 0, "respkt": 1, "recpkt": 1, "recspkt": 1}
"""The first destination that gets packets."""
_TEMPLATE_BUFFER = 2
"""The number that the handlers of `re` and `res` take for scratch, also where it is a remote
buffer (contract T1)."""


class Owner(Protocol):
    """A rank: its buffers, and the way to others."""

    plan: Plan
    gpu: PlanGpu
    call: Call
    where: Addresses
    shift: list[int]
    number: int
    got: dict[int, Bytes]

    def region(self, buffer: int, first: int, size: int) -> Bytes:
        """Return bytes of an allocation."""

    def meet(self, team: Team) -> Need:
        """Return the need of both strands of a threadblock to come to the same place."""

    def put(self, peer: int, buffer: int, first: int, data: Bytes) -> None:
        """Write into a buffer of a peer."""

    def put_packets(self, peer: int, first: int, data: Bytes) -> None:
        """Write packets into the scratch of a peer."""

    def get(self, peer: int, buffer: int, first: int, length: int) -> int:
        """Ask for bytes of a peer; return the key under which they arrive in `got`."""


class Moves:
    """Moves the data of one rank.

    Parameters
    ----------
    program : Owner
    """

    def __init__(self, program: Owner) -> None:
        self.program = program

    # Operands

    def local(
        self,
        op: Op,
        operand: Operand,
        turn: Turn | None,
        *,
        packets: bool = False,
        wraps: bool | None = None,
    ) -> Bytes:
        """Return the bytes of a local operand; of packets, flags included."""
        program = self.program
        buffer = BUFFERS.index(operand.type or "s")
        start, length = program.where.place(op, operand, buffer == 2, turn, wraps=wraps)
        if packets:
            start, length = 2 * start, 2 * length
        if buffer == 2:
            start += self._half()
        return program.region(buffer, start + program.shift[buffer], length)

    def remote(
        self, team: Team, op: Op, operand: Operand, turn: Turn | None, *, packets: bool = False
    ) -> tuple[int, int, int]:
        """Return the owner, buffer and first byte of a remote operand."""
        program = self.program
        ids = team.remotes[op.channel_type or "memory"]
        if operand.buffer_id is None or operand.buffer_id >= len(ids):
            raise Fault(f"{op.name} names a remote buffer that its threadblock does not list")
        remote = program.gpu.remote_buffers[ids[operand.buffer_id]]
        buffer = BUFFERS.index(remote.type)
        start, _ = program.where.place(op, operand, buffer == 2, turn)
        start = start * (2 if packets else 1) + program.shift[buffer]
        return remote.rank, buffer, start + (self._half() if packets else 0)

    def _half(self) -> int:
        """Return where the half of scratch begins that this call uses."""
        program = self.program
        odd = program.plan.use_double_scratch_buffer and program.number % 2
        return program.where.half if odd else 0

    def _wraps(self, op: Op, k: int) -> bool | None:
        """Return how the handler wraps source k of a sum, None where as usual (contract T1)."""
        if op.name not in ("re", "res") or k == 0:
            return None
        other = op.dst_buff[k] if k < len(op.dst_buff) else None
        scratch = other is not None and (other.type == "s" or other.buffer_id == _TEMPLATE_BUFFER)
        return scratch and self.program.plan.reuse_resources

    # Operations

    def copy(self, team: Team, op: Op, turn: Turn | None) -> Code:
        """Copy or sum plain data."""
        program, kind = self.program, self.program.call.dtype
        if op.name == "put":
            for source, target in zip(op.src_buff, op.dst_buff, strict=True):
                data = self.local(op, source, turn).copy()
                yield GO
                program.put(*self.remote(team, op, target, turn), data)
            return
        if op.name == "get":  # it exchanges the offsets of its operands (contract T5)
            far, near = op.src_buff[0], op.dst_buff[0]
            place = self.remote(team, op, _at(far, near.index), turn)
            yield from self._fetch(place, self.local(op, _at(near, far.index), turn))
            return
        total: Bytes | None = None
        for k, operand in enumerate(op.src_buff):
            if operand.buffer_id is None:
                data = self.local(op, operand, turn, wraps=self._wraps(op, k)).copy()
            else:
                length = program.where.place(op, operand, False, turn)[1]
                data = np.empty(length, np.uint8)
                yield from self._fetch(self.remote(team, op, operand, turn), data)
            total = data if total is None else _sum(total, data, kind)
        yield GO
        if total is None:
            return
        targets = op.dst_buff[:1] if op.name == "re" else op.dst_buff
        for operand in targets:
            if operand.buffer_id is None:
                self.local(op, operand, turn)[:] = total
            else:
                program.put(*self.remote(team, op, operand, turn), total)

    def _fetch(self, place: tuple[int, int, int], target: Bytes) -> Code:
        program = self.program
        key = program.get(*place, target.size)
        yield Need(lambda: key in program.got, lambda: f"data of rank {place[0]}")
        target[:] = program.got.pop(key)

    def packets(self, team: Team, op: Op, turn: Turn | None) -> Code:
        """Move data of which sources or targets are packets."""
        program, kind = self.program, self.program.call.dtype
        first, sent = FIRST_PACKET.get(op.name, 99), FIRST_SENT.get(op.name, 99)
        port = op.channel_type == "port"
        if port and op.name == "ppkt":
            return  # the port reads packets that lie in scratch already
        flag = program.number + 1
        values = []
        for k, operand in enumerate(op.src_buff):
            data = self.local(op, operand, turn, packets=k >= first)
            if k >= first:
                yield _flagged(data, flag)
                data = unpack(data)
            values.append(data)
        if port:
            yield program.meet(team)
            return
        if op.name == "ppkt":
            pairs = list(zip(values, op.dst_buff, strict=True))
        else:
            total = values[0]
            for data in values[1:]:
                total = _sum(total.copy(), data, kind)
            pairs = [(total, operand) for operand in op.dst_buff]
        yield GO
        for k, (data, operand) in enumerate(pairs):
            if operand.buffer_id is not None:
                peer, _, start = self.remote(team, op, operand, turn, packets=True)
                program.put_packets(peer, start, data)
            elif k >= sent:
                pack(self.local(op, operand, turn, packets=True), data, flag)
            else:
                self.local(op, operand, turn)[:] = data

    def multicast(self, team: Team, op: Op, turn: Turn | None) -> Code:
        """Load the sum of a buffer of all ranks behind a switch, and store to all of them."""
        program, target = self.program, op.dst_buff[0]
        if op.name == "glres":
            source, total = op.src_buff[0], None
            for place, length in self._behind(team, op, source, turn):
                data = np.empty(length, np.uint8)
                yield from self._fetch(place, data)
                total = data if total is None else _sum(total, data, program.call.dtype)
        else:
            total = self.local(op, op.src_buff[0], turn).copy()
        yield GO
        for place, _ in self._behind(team, op, target, turn):
            if total is not None:
                program.put(*place, total)

    def _behind(
        self, team: Team, op: Op, operand: Operand, turn: Turn | None
    ) -> list[tuple[tuple[int, int, int], int]]:
        """Return owner, buffer and first byte at every rank behind a switch, and the length."""
        program = self.program
        groups = [
            (BUFFERS.index(channels.buffer_type or "s"), group.ranks)
            for channels in program.gpu.channels
            if channels.channel_type == "switch"
            for group in channels.rank_groups
        ]
        ids = team.channels["switch"]
        number = operand.switch_channel_id
        if number is None or number >= len(ids) or ids[number] >= len(groups):
            raise Fault(f"{op.name} names a switch channel that is not there")
        buffer, ranks = groups[ids[number]]
        start, length = program.where.place(op, operand, buffer == 2, turn)
        start += program.shift[buffer]
        return [((rank, buffer, start), length) for rank in ranks]


def _at(operand: Operand, index: int) -> Operand:
    import msgspec

    return msgspec.structs.replace(operand, index=index)


def _sum(total: Bytes, data: Bytes, kind: np.dtype[Any]) -> Bytes:
    """Add data to a total of its own memory."""
    values = total.view(kind)
    np.add(values, data.view(kind), out=values)
    return total


def _flagged(packets: Bytes, flag: int) -> Need:
    words = packets.view(np.uint32)
    return Need(
        lambda: bool((words[1::2] == flag).all()),
        lambda: (
            f"packets: {int((words[1::2] != flag).sum()) // 2} of {words.size // 4} are missing"
        ),
    )


def pack(place: Bytes, data: Bytes, flag: int) -> None:
    """Write packets: words of data and flags in turn."""
    words = place.view(np.uint32)
    words[0::2] = data.view(np.uint32)
    words[1::2] = flag


def unpack(packets: Bytes) -> Bytes:
    """Return a copy of the data in packets."""
    return np.ascontiguousarray(packets.view(np.uint32)[0::2]).view(np.uint8)
