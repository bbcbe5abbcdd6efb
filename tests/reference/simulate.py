"""What a program takes on a topology, the slow and obvious way.

Threadblocks are coroutines that say what they wait for; the loop finds the next moment at
which one of them can go on, and shares links anew by progressive filling whenever something
changes. All tiles are played. Times are nanoseconds, rates bytes per nanosecond.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from colsynth.cost.pair_routes import pair_routes

SENDS = {"s", "rcs", "rrs", "rrcs"}
RECEIVES = {"r", "rcs", "rrs", "rrc", "rrcs"}
NEVER = math.inf


@dataclass
class Connection:
    """What lies between a sending and a receiving threadblock."""

    route: tuple[int, ...]
    cap: float
    latency: float
    way_back: float
    arrived: list[float] = field(default_factory=list)
    freed: list[float] = field(default_factory=list)


@dataclass
class Flow:
    connection: Connection
    left: float
    rate: float = 0.0


class World:
    """Everything that threadblocks share."""

    def __init__(self, program, topology, profile, model, size):
        self.model, self.protocol = model, program.header.protocol
        p = self.protocol
        self.chunk = size / program.header.chunks
        room = profile.tile_bytes[p]
        self.group = max(1, min(profile.max_count, room // max(1, math.ceil(self.chunk))))
        self.tiles = max(1, math.ceil(self.chunk / room))
        self.room, self.slots = room, profile.fifo_calls[p] * model.slices[p]
        self.capacity = [
            float(link.bandwidth) / 1e9 * model.payload[p] * self.efficiency(topology, index)
            for index, link in enumerate(topology.links)
        ]
        pairs = {(gpu.rank, b.send, b.channel) for gpu in program.gpus for b in gpu.threadblocks}
        pairs |= {(b.recv, gpu.rank, b.channel) for gpu in program.gpus for b in gpu.threadblocks}
        ends = {pair for pair in pairs if None not in pair}
        found = pair_routes(topology, {(source, target) for source, target, _ in ends})
        self.connections = {}
        for source, target, channel in sorted(ends):
            choice = found[source, target]
            route = choice[channel % len(choice)]
            wire = 1e9 * sum(float(topology.links[link].latency) for link in route)
            far = any(link in topology.network for link in route)
            hop = (model.network_hop if far else model.hop)[p]
            self.connections[source, target, channel] = Connection(
                route, model.rate[p], wire + 1e3 * hop, wire
            )
        self.flags = {}

    def efficiency(self, topology, index):
        far = index in topology.network
        return self.model.network_efficiency if far else self.model.link_efficiency


class Block:
    """A threadblock: coroutines of what it wishes, one inside the other.

    Wishes are ("at", function that knows when), ("for", time), ("move", connection, bytes)
    and "now".
    """

    def __init__(self, world, rank, block):
        self.world, self.rank, self.steps = world, rank, block.steps
        self.out = world.connections.get((rank, block.send, block.channel))
        self.into = world.connections.get((block.recv, rank, block.channel))
        self.flags = world.flags.setdefault((rank, block.id), [])
        self.sent = self.taken = 0

    def run(self):
        for tile in range(self.world.tiles):
            waits, before = [], None
            tile_bytes = min(self.world.room, self.world.chunk - tile * self.world.room)
            for ordinal, step in enumerate(self.steps):
                waits += step.waits
                if step.op == "nop":
                    continue
                yield from self.step(step, tile, waits, joins(before, step), tile_bytes)
                if step.signals:
                    now = yield "now"
                    self.flags.append(((tile, ordinal), now))
                waits, before = [], step

    def step(self, step, tile, waits, joined, tile_bytes):
        world = self.world
        for wait in waits:
            theirs = world.flags.setdefault((self.rank, wait.threadblock), [])
            yield "at", lambda theirs=theirs, wait=wait: first_flag(theirs, (tile, wait.step))
        further = joined and not waits
        begin = 0.0 if further else 1e3 * world.model.step[world.protocol]
        share = world.model.operand if further else 1.0
        extra = 1e3 * world.model.wait if waits else 0.0
        left = step.count
        while True:
            chunks = min(world.group, left)
            yield from self.call(step.op, chunks * tile_bytes, begin, extra, share)
            left, extra = left - chunks, 0.0
            if not left:
                break

    def call(self, op, whole, begin, extra, share):
        model, p = self.world.model, self.world.protocol
        parts = model.slices[p] if op in SENDS | RECEIVES else 1
        width = max(math.ceil(whole / parts), model.least_slice[p]) if parts > 1 else whole
        for part in range(parts):
            size = max(0.0, min(width, whole - part * width))
            fixed = (begin if whole else 0.0) + extra if part == 0 else 0.0
            yield from self.part(op, size, fixed, share)

    def part(self, op, size, fixed, share):
        model, p = self.world.model, self.world.protocol
        if op in RECEIVES:
            yield "at", lambda: nth(self.into.arrived, self.taken)
        if op in SENDS:
            yield "at", lambda: nth(self.out.freed, self.sent - self.world.slots)
        yield "for", fixed
        if op not in SENDS:
            rate = (model.rate if op in RECEIVES else model.local_rate)[p]
            yield "for", share * size / rate
        elif size:
            yield "move", self.out, size
        now = yield "now"
        if op in RECEIVES:
            self.into.freed.append(now + self.into.way_back)
            self.taken += 1
        if op in SENDS:
            self.out.arrived.append(now + self.out.latency)
            self.sent += 1


def joins(before, step):
    """Whether the runtime adds this sum in one go with the one before."""
    return (
        before is not None
        and before.op == step.op == "re"
        and not before.signals
        and before.target == step.target
        and before.count == step.count
        and before.source.buffer == step.source.buffer
    )


def nth(times, index):
    if index < 0:
        return 0.0
    return times[index] if index < len(times) else NEVER


def first_flag(flags, needed):
    return next((time for place, time in flags if place >= needed), NEVER)


def share(flows, capacity):
    """Raise all rates together; a flow stops at its cap or where a link of its route is full."""
    rising, room = list(flows), dict(enumerate(capacity))
    for flow in flows:
        flow.rate = 0.0
    while rising:
        count = {link: sum(link in flow.connection.route for flow in rising) for link in room}
        step = min(
            [room[link] / n for link, n in count.items() if n]
            + [flow.connection.cap - flow.rate for flow in rising]
        )
        for flow in rising:
            flow.rate += step
        for link, n in count.items():
            room[link] -= n * step
        full = {link for link, n in count.items() if n and room[link] <= 1e-12 * capacity[link]}
        rising = [
            flow
            for flow in rising
            if full.isdisjoint(flow.connection.route)
            and flow.rate < flow.connection.cap * (1 - 1e-12)
        ]


def simulate(program, topology, profile, model, size):
    """Return seconds, or None where threadblocks wait forever."""
    world = World(program, topology, profile, model, size)
    running = {}
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            running[gpu.rank, block.id] = Block(world, gpu.rank, block).run()
    now, wishes, flows = 0.0, {}, {}
    ready = sorted(running)
    while running:
        while ready:
            key = ready.pop(0)
            wish = advance(running[key], now)
            if wish is None:
                del running[key]
            elif wish[0] == "move":
                flows[key] = Flow(wish[1], wish[2])
            else:
                wishes[key] = wish[1]
        share(list(flows.values()), world.capacity)
        due = {key: wish() for key, wish in wishes.items()}
        due |= {key: now + flow.left / flow.rate for key, flow in flows.items()}
        then = max(now, min(due.values(), default=NEVER))
        if then == NEVER:
            break
        for flow in flows.values():
            flow.left -= flow.rate * (then - now)
        now = then
        ready = sorted(key for key, time in due.items() if time <= now + 1e-9 * (1 + now))
        for key in ready:
            wishes.pop(key, None)
            flows.pop(key, None)
    return None if running else now / 1e9 + model.launch[world.protocol] / 1e6


def advance(block, now):
    """Run a threadblock until it wishes something that is not there yet; None at its end."""
    answer = None
    while True:
        try:
            wish = block.send(answer)
        except StopIteration:
            return None
        answer = None
        if wish == "now":
            answer = now
        elif wish[0] == "move":
            return wish
        elif wish[0] == "for" and wish[1] > 0:
            return "at", lambda end=now + wish[1]: end
        elif wish[0] == "at" and wish[1]() > now:
            return wish
