"""Slow, obvious twins of the matching kernels: the same rules on lists and sets.

What the kernels remember so as not to look again (cursors, heaps, who was touched by an
event) is worked out afresh here at every moment.
"""

from __future__ import annotations

from fractions import Fraction


def rounds(source, target, own, turn=0):
    """Return (round, hop, chunk) of matching round by round.

    Parameters
    ----------
    source, target : list of int
        Hops, sorted by target.
    own : list of list of int
        Chunks of each GPU at first.
    turn : int
    """
    logs, has = [list(chunks) for chunks in own], [set(chunks) for chunks in own]
    sent, number = [None], 0
    found = []
    while sent:
        sent = []
        for v in range(len(own)):
            ports = [h for h in range(len(target)) if target[h] == v]
            for k in range(len(ports)):
                h = ports[(k + turn + number) % len(ports)]
                new = [chunk for chunk in logs[source[h]] if chunk not in has[v]]
                if new:
                    has[v].add(new[0])
                    sent.append((number, h, new[0]))
        for _, h, chunk in sent:
            logs[target[h]].append(chunk)
        found += sent
        number += 1
    return found


class Play:
    """Links, moments and turns, shared by matching and by sending along trees.

    Links are looked at as the hops have them; only the moments at which somebody looks,
    which count turns, are those of `fabric`.
    """

    def __init__(self, hops, fabric, busy, born, turn):
        self.hops, self.fabric = hops, fabric
        self.gpus, self.turn = len(fabric.into) - 1, turn
        self.source, self.target = hops.source.tolist(), hops.target.tolist()
        self.duration = hops.duration.tolist()
        self.ports = [
            [h for h, target in enumerate(self.target) if target == v] for v in range(self.gpus)
        ]
        self.pointer = [0] * self.gpus
        self.busy = list(busy)
        self.uses = [
            [
                (int(hops.links[i]), int(hops.begin[i]), int(hops.end[i]))
                for i in range(hops.first[h], hops.first[h + 1])
            ]
            for h in range(len(hops))
        ]
        # Chunks of the beginning are logged after all that arrives at the same time.
        self.coming = [(time, 1, number, *what) for number, (time, *what) in enumerate(born)]
        free = {max(0, time) for link in range(len(busy)) for time in self.looks(link, True)}
        self.moments = {time for time, *_ in born} | (free - {0})
        self.sent = []

    def looks(self, link, first=False):
        """Return when somebody looks whether a link is free."""
        offsets = self.fabric.offset[
            self.fabric.offset_first[link] : self.fabric.offset_first[link + 1]
        ].tolist()
        return [self.busy[link] - x for x in offsets or ([0] if first else [])]

    def wait(self, h, now):
        """Return the ticks until all links of a hop are free."""
        return max([0] + [self.busy[link] - begin - now for link, begin, _ in self.uses[h]])

    def served(self):
        """Return all hops in the order of this moment's turns."""
        turn, self.turn = self.turn, self.turn + 1

        def key(h):
            v = self.target[h]
            ports = self.ports[v]
            return (v - turn) % self.gpus, (h - ports[0] - self.pointer[v]) % len(ports), h

        return sorted(range(len(self.target)), key=key)

    def send(self, h, now, *what):
        """Start a transfer."""
        for link, _, end in self.uses[h]:
            self.busy[link] = now + end
            self.moments |= {max(now, time) for time in self.looks(link)}
        arrival = now + self.duration[h]
        self.moments.add(arrival)
        self.coming.append((arrival, 0, len(self.sent), self.target[h], *what))
        self.sent.append((h, now, *what))
        ports = self.ports[self.target[h]]
        self.pointer[self.target[h]] = (h - ports[0] + 1) % len(ports)

    def next(self):
        """Return the next moment and what arrives then, in order."""
        now = min(self.moments)
        self.moments.remove(now)
        here = sorted(item for item in self.coming if item[0] == now)
        self.coming = [item for item in self.coming if item[0] != now]
        return now, [what for _, _, _, *what in here]


class Matching(Play):
    """Everyone in a group wants everything: who holds what, per GPU and per region."""

    def __init__(self, spread, fabric, start, choice):
        busy, times = start
        holders = spread.wants.holders.items.tolist()
        born = [(time, v, c) for c, (time, v) in enumerate(zip(times, holders, strict=True))]
        super().__init__(spread.hops, fabric, busy, born, choice.turn)
        self.policy, self.strict = choice.policy, choice.strict
        group = {v: g for g, members in enumerate(spread.groups) for v in members}
        self.wanted = [
            {c for c, holder in enumerate(holders) if group.get(v) == group[holder]}
            for v in range(self.gpus)
        ]
        self.log = [[] for _ in range(self.gpus)]
        self.has = {(v,): set() for v in range(self.gpus)}
        self.has |= {region: set() for region in spread.regions}
        self.holders = dict.fromkeys(range(len(holders)), 0)
        for chunk, v in enumerate(holders):
            self.hold(v, chunk)

    def hold(self, v, chunk):
        """Note that a GPU has or will have a chunk, and so have the regions around it."""
        for row, chunks in self.has.items():
            if v in row:
                chunks.add(chunk)
        self.holders[chunk] += 1

    def rows(self, h):
        """Return the sets that a chunk on a hop would enter, widest first."""
        source, target = self.source[h], self.target[h]
        entered = [row for row in self.has if len(row) > 1 and target in row and source not in row]
        return entered if entered and self.strict else [*entered, (target,)]

    def is_late(self, h, now):
        """Whether other hops could bring all that is missing before this one ends."""
        v = self.target[h]
        others = [g for g in self.ports[v] if g != h]
        spare = [(self.duration[h] - 1 - self.wait(g, now), self.duration[g]) for g in others]
        brought = sum(max(0, left // each) for left, each in spare)
        return brought >= len(self.wanted[v] - self.has[v,])

    def offer(self, now, order, widest, policy):
        """Let every hop send that can; return whether somebody would rather wait."""
        asleep = False
        for h in order:
            rows = self.rows(h)
            if (widest and len(rows) == 1) or self.wait(h, now) > 0:
                continue
            offers = [
                [c for c in self.log[self.source[h]] if c not in self.has[row]]
                for row in (rows[:1] if widest else rows)
            ]
            new = next((chunks for chunks in offers if chunks), None)
            if new is None:
                continue
            if policy == "earliest" and self.is_late(h, now):
                asleep = True
                continue
            chunk = min(new, key=self.holders.get) if policy == "rarest" else new[0]
            self.hold(self.target[h], chunk)
            self.send(h, now, chunk)
        return asleep

    def run(self):
        """Return (hop, start, chunk) of all transfers."""
        regions = any(len(row) > 1 for row in self.has)
        while self.moments:
            now, arrived = self.next()
            for v, chunk in arrived:
                self.log[v].append(chunk)
            order = self.served()
            asleep = [self.offer(now, order, True, self.policy)] if regions else []
            asleep.append(self.offer(now, order, False, self.policy))
            if not self.moments:
                order = self.served()
                if any(asleep):
                    self.offer(now, order, False, "oldest")
        return self.sent


class Sending(Play):
    """Every chunk along its tree; tasks are its edges, numbered chunk after chunk."""

    def __init__(self, hops, fabric, trees, start, tactic):
        busy, times = start
        born = [(time, None, ("chunk", c)) for c, time in enumerate(times)]
        super().__init__(hops, fabric, busy, born, tactic.turn)
        self.hop = trees.hop.tolist()
        first = trees.first.tolist()
        self.chunk = [c for c in range(len(times)) for _ in range(first[c], first[c + 1])]
        load = [self.left(h) for h in range(len(hops))]
        self.parent, self.tail, self.lead, self.crux = tree_links(first, self.hop, hops, load)
        self.lead = self.tail if tactic.whole else self.lead
        self.urgency = [a + load[h] for a, h in zip(self.lead, self.crux, strict=True)]
        self.ready = []

    def left(self, h):
        """Return the ticks for which tasks not yet begun will occupy a hop's links, on average."""
        begun = {task for _, _, (_, task) in self.sent}
        ahead = [self.hop[task] for task in range(len(self.hop)) if task not in begun]
        some = self.fabric.links[self.fabric.first[h] : self.fabric.first[h + 1]].tolist()
        total = sum(end - begin for g in ahead for link, begin, end in self.uses[g] if link in some)
        return total // len(some)

    def first_of(self, h):
        """Return the ready task that goes first on a hop, None for none."""
        mine = [task for task in self.ready if self.hop[task] == h]
        return max(mine, key=lambda task: (self.tail[task], self.urgency[task]), default=None)

    def pressure(self, h):
        """Return when the most loaded hop ahead would be done if no more came."""
        task = self.first_of(h)
        return self.lead[task] + self.left(self.crux[task])

    def arrive(self, kind, number):
        """Note the tasks that a task, or a chunk of the beginning, makes ready."""
        for task in range(len(self.hop)):
            root = self.parent[task] < 0 and self.chunk[task] == number
            if root if kind == "chunk" else self.parent[task] == number:
                self.ready.append(task)

    def run(self):
        """Return (hop, start, chunk) of all transfers."""
        while self.moments:
            now, arrived = self.next()
            for _, what in arrived:
                self.arrive(*what)
            order = [h for h in self.served() if self.first_of(h) is not None]
            order = [h for h in order if self.wait(h, now) == 0]
            for h in sorted(order, key=self.pressure, reverse=True):
                if self.wait(h, now) == 0:
                    task = self.first_of(h)
                    self.ready.remove(task)
                    self.send(h, now, ("task", task))
        return [(h, start, self.chunk[task]) for h, start, (_, task) in self.sent]


def tree_links(first, hop, hops, load):
    """Return, for every tree edge, its parent, the longest way below it, and its crux.

    The crux is the hop from here on that would be done last if it carried its load from
    when the chunk reaches it: (when that is, which hop); of equals this edge's own, then
    that of the last child.
    """
    parent = []
    for c in range(len(first) - 1):
        edges = range(first[c], first[c + 1])
        for e in edges:
            before = [d for d in edges if hops.target[hop[d]] == hops.source[hop[e]]]
            parent.append(before[0] if before else -1)

    def children(e):
        return [d for d in range(len(hop)) if parent[d] == e]

    def tail(e):
        return int(hops.duration[hop[e]]) + max(map(tail, children(e)), default=0)

    def crux(e):
        further = [crux(d) for d in reversed(children(e))]
        moved = int(hops.duration[hop[e]])
        found = [(0, hop[e]), *((moved + lead, h) for lead, h in further)]
        return max(found, key=lambda item: item[0] + load[item[1]])

    edges = range(len(hop))
    lead, last = [crux(e)[0] for e in edges], [crux(e)[1] for e in edges]
    return parent, [tail(e) for e in edges], lead, last


def prices(ways, load, reference, steep):
    """Return the price of every hop: its links' times, dearer the fuller they are."""
    found = []
    for h in range(len(ways.target)):
        total = Fraction(0)
        for i in range(ways.first[h], ways.first[h + 1]):
            full = min(Fraction(int(load[ways.links[i]]), reference), 2)
            total += int(ways.weight[i]) * (1 + steep * full**4)
        found.append(total)
    return found
