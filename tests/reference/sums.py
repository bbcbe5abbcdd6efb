"""Programs executed on the expressions of sums: who was added to whom, in which order.

Addition of floats commutes but is not associative. So a sum is an unordered pair of what was
added, and equal expressions mean equal bits.
"""

from __future__ import annotations

from collections import defaultdict, deque

from colsynth.model import RoundProgram, Slot

SENDS = ("s", "rcs", "rrs", "rrcs")
RECEIVES = ("r", "rcs", "rrs", "rrc", "rrcs")
READS = ("s", "rrs", "rrc", "rrcs", "cpy", "re")
WRITES = ("r", "rcs", "rrc", "rrcs", "cpy", "re")


class Hang(Exception):
    """No threadblock can go on."""


class Sums:
    """An allreduce of one chunk of memory per cell; equal expressions have equal numbers."""

    def __init__(self, program, in_place):
        self.program, self.in_place = program, in_place
        self.known, self.memory = {}, {}
        header = program.header
        self.cells = [
            (rank, chunk) for rank in range(header.ranks) for chunk in range(header.chunks)
        ]
        for rank, chunk in self.cells:
            self.write(rank, Slot("i", 0), chunk, self.number(rank, chunk, "input"))

    def number(self, *expression):
        return self.known.setdefault(expression, len(self.known))

    def add(self, one, other):
        return self.number(min(one, other), max(one, other))

    def cell(self, rank, slot, k):
        user = self.in_place and slot.buffer != "s"
        return rank, "u" if user else slot.buffer, slot.offset + k

    def read(self, rank, slot, count):
        return [self.memory[self.cell(rank, slot, k)] for k in range(count)]

    def write(self, rank, slot, k, value):
        self.memory[self.cell(rank, slot, k)] = value

    def outputs(self, rng):
        """Return the expressions in every rank's output, by chunk."""
        run = self._rounds if isinstance(self.program, RoundProgram) else self._threadblocks
        run(rng)
        found = defaultdict(list)
        for rank, chunk in self.cells:
            found[chunk] += self.read(rank, Slot("o", chunk), 1)
        return list(found.values())

    def _rounds(self, _rng):
        for part in self.program.rounds:
            sent = [self.read(m.source, m.read, m.count) for m in part.messages]
            for m, values in zip(part.messages, sent, strict=True):
                self._store(m.target, m.write, values)
            for s in part.local:
                values = self.read(s.rank, s.read, s.count)
                if s.operand is not None:
                    more = self.read(s.rank, s.operand, s.count)
                    values = list(map(self.add, values, more))
                self._store(s.rank, s.write, values)

    def _store(self, rank, slot, values):
        for k, value in enumerate(values):
            self.write(rank, slot, k, value)

    def _threadblocks(self, rng):
        """Let threadblocks that can go on do a step each, in random order; FIFOs have no end."""
        blocks = [(gpu.rank, block) for gpu in self.program.gpus for block in gpu.threadblocks]
        at = {(rank, block.id): 0 for rank, block in blocks}
        sent = defaultdict(deque)
        while left := [(r, b) for r, b in blocks if at[r, b.id] < len(b.steps)]:
            moved = False
            for rank, block in rng.sample(left, len(left)):
                step = block.steps[at[rank, block.id]]
                into = [(block.recv, rank, block.channel)] if step.op in RECEIVES else []
                into += [(peer, rank, channel) for peer, channel in step.folds]
                late = any(at[rank, w.threadblock] <= w.step for w in step.waits)
                if late or not all(sent[link] for link in into):
                    continue
                out = sent[rank, block.send, block.channel]
                self._step(rank, step, [sent[link].popleft() for link in into], out)
                at[rank, block.id] += 1
                moved = True
            if not moved:
                raise Hang

    def _step(self, rank, step, arrived, out):
        operands = list(arrived)
        if step.op in READS:
            operands.insert(0, self.read(rank, step.source, step.count))
        if step.op == "re":
            operands.append(self.read(rank, step.target, step.count))
        values = operands[0] if operands else []
        for more in operands[1:]:
            values = list(map(self.add, values, more))
        if step.op in WRITES:
            self._store(rank, step.target, values)
        if step.op in SENDS:
            out.append(values)
