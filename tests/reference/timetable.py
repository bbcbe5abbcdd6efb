"""List scheduling with sorted lists, one event at a time."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Task:
    """A task of `colsynth.kernels.timetable`, with what it needs."""

    group: int
    chain: int
    duration: int
    late: int
    steps: int
    needs: tuple[int, ...]
    due: int


@dataclass
class Timetable:
    """Tasks, the threadblocks of each group, and the steps that each of them has."""

    tasks: list[Task]
    groups: list[range]
    room: int
    block: dict[int, int] = field(default_factory=dict)
    begin: dict[int, int] = field(default_factory=dict)

    def run(self) -> bool:
        """Carry out what can be; return whether that is everything."""
        tasks = self.tasks
        self.waiting = [n for n, task in enumerate(tasks) if not task.needs]
        self.free = {block for group in self.groups for block in group}
        self.left = dict.fromkeys(self.free, self.room)
        events: list[tuple[int, int]] = []
        done: set[int] = set()
        for group in self.groups:
            events += self._start(group, 0)
        while events:
            now, what = min(events)
            events.remove((now, what))
            if what < len(tasks):
                self.free.add(self.block[what])
                events += self._start(self.groups[tasks[what].group], now)
                continue
            done.add(what - len(tasks))
            for n, task in enumerate(tasks):
                if what - len(tasks) in task.needs and done.issuperset(task.needs):
                    self.waiting.append(n)
            for group in self.groups:
                events += self._start(group, now)
        return len(done) == len(tasks)

    def _start(self, group: range, now: int) -> list[tuple[int, int]]:
        """Begin tasks of a group, those due first; return when they end and when others know."""
        events = []
        while (found := self._next(group)) is not None:
            n, block = found
            task = self.tasks[n]
            self.waiting.remove(n)
            self.free.remove(block)
            self.block[n], self.begin[n] = block, now
            if task.chain == n:
                self.left[block] -= task.steps
            ends = now + task.duration
            events += [(ends, n), (ends + task.late, len(self.tasks) + n)]
        return events

    def _next(self, group: range) -> tuple[int, int] | None:
        """Return a task that may begin, and where: those that go on with a chain before others."""
        own = [n for n in self.waiting if self.tasks[n].chain != n]
        heads = [n for n in self.waiting if self.tasks[n].chain == n and self._in(n, group)]
        first = min(heads, key=lambda n: (self.tasks[n].due, n), default=None)
        later = None
        for block in group:
            mine = [n for n in own if self.block[self.tasks[n].chain] == block]
            if block in self.free and mine:
                n = min(mine, key=lambda n: (self.tasks[n].due, n))
                if first is None or self.tasks[n].due <= self.tasks[first].due:
                    return n, block
                later = later or (n, block)
        if first is not None:
            fit = [b for b in group if b in self.free and self.left[b] >= self.tasks[first].steps]
            if fit:
                return first, max(fit, key=lambda b: (self.left[b], -b))
        return later

    def _in(self, n: int, group: range) -> bool:
        return self.groups[self.tasks[n].group] == group
