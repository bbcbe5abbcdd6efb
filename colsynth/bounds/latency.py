"""The least time of a message, however small: hops, the steps at their ends, and sums.

All proofs are in the simulator's model. A message begins with a step of its sender, travels one hop
(`Model.hop` and the latency of links), and ends with a step of its receiver.

- **The way.** Data must get from a GPU to each one that needs it. Connections pass a few other GPUs
  at most (`Profile.passes_on`); data for GPUs farther away stops on the way, is received and sent
  on (`farthest`).
- **A sum of two.** Of the contributions of two GPUs, either the second passes the first on its way
  and stops there, or they come together in a GPU, from two peers. Peers have threadblocks of their
  own, so one of them waits for the other there (`Model.wait`). So a sum of all takes that long
  beyond the second farthest GPU. Plans fold sums, and do not wait. Where steps are not fused, a sum
  is a step of its own.
- **Two hops.** In an allgather, reduce-scatter or allreduce, suppose that a file is faster than two
  hops with the steps at the GPU between. Then no GPU passes on what it received, nor a sum, so each
  sends to each other one directly: a shard, or in an allreduce the message. These bytes must enter
  every GPU, and pass several links where GPUs are not joined. The lesser of the two is a bound.
  The same holds for GPUs of different boxes, where one of two hops is over the network, and all
  pairs must enter the box.
- **Three hops.** In an allreduce that is faster than a hop over the network and one before and one
  behind it, what enters a box is either not passed on there, so it serves one GPU there, or comes
  from one GPU outside and holds no sum. To serve all pairs of m GPUs there and n outside takes
  min(m, n) of these for each byte.
- **Sums in time.** A message holds one contribution if it leaves before another one can have come
  in, two until a sum can leave that had to wait, and all then (`usage`). A GPU receives each byte
  of an allreduce with all other contributions; so does a box, with those of all GPUs outside.
- **Boxes in time.** What enters a box serves one GPU if a hop takes longer than what is left. Where
  steps are fused, one more GPU gets it as it comes in. All others get it from a step that begins
  when the step that received is done: a wait, a step at either end, and the hop.
- **The last calls.** A receiver is busy with the first slice of a call for a step beyond moving it.
  So what arrives in the last such time is behind a first slice, which is `Model.least_slice` bytes
  at least, and at most what a threadblock moves in that time. In a reduce-scatter, all messages but
  one of each sum are followed by a step that waits for them, or by a hop.
- **Calls.** A threadblock that receives takes a step for each call, and the largest call's first
  slice is sent before it is received (`Latency.connection`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, sqrt

from colsynth.bounds.farthest import Costs, farthest
from colsynth.bounds.usage import ALWAYS, Levels, least_use
from colsynth.bounds.ways import Ways
from colsynth.cost import Model
from colsynth.model import Collective
from colsynth.runtimes.profile import Profile

_SUMS = (Collective.REDUCE_SCATTER, Collective.REDUCE, Collective.ALLREDUCE)
_SPREAD = (Collective.ALLGATHER, Collective.REDUCE_SCATTER, Collective.ALLREDUCE)


@dataclass(frozen=True)
class Latency:
    """The least times of a protocol, in seconds.

    Parameters
    ----------
    ways : Ways
    profile : Profile
    model : Model
    protocol : str
    """

    ways: Ways
    profile: Profile
    model: Model
    protocol: str

    @property
    def step(self) -> float:
        """A call of a threadblock."""
        return self.model.step[self.protocol] / 1e6

    @property
    def begin(self) -> float:
        """The launch, what the host posts of a first round, and the step of the first sender."""
        posted = self.model.round + self.model.post if self.profile.rounds else 0.0
        return (self.model.launch[self.protocol] + posted) / 1e6 + self.step

    @property
    def hop(self) -> float:
        """The shortest hop between two GPUs."""
        return self._hop(network=False) + self.ways.near

    def _hop(self, *, network: bool) -> float:
        near, far = (hop[self.protocol] / 1e6 for hop in (self.model.hop, self.model.network_hop))
        return far if network else min(near, far)  # NICs may lie on the way within a box, too

    def tail(self, links: Iterable[int]) -> float:
        """Return the time from when the last byte has left for one of some links to its arrival."""
        used = tuple(links)
        network = bool(used) and self.ways.problem.topology.network.issuperset(used)
        return self._hop(network=network) + self.ways.through(used)

    @property
    def _adds(self) -> bool:
        return self.ways.problem.collective in _SUMS

    @property
    def add(self) -> float:
        """A sum behind the step that receives, where that one does not add."""
        return 0.0 if not self._adds or self.profile.fuses else self.step

    @property
    def _merge(self) -> float:
        """What a sum of messages of two peers takes beyond a sum with one."""
        if not self.profile.xml:
            return 0.0
        merge = self.model.wait / 1e6 + self.step * self.profile.fuses
        return min(merge, self.hop + self._relay - self.add)

    @property
    def merged(self) -> float:
        """From the end of a message until its sum with a message of another peer, or with it on."""
        return min(self.hop, self._merge + self.add)

    @property
    def _relay(self) -> float:
        """At a GPU between two hops, from the arrival to when data leaves again."""
        fused = self.profile.fuses and not self.profile.rounds
        return self.step if fused else 2 * self.step + self.add

    @cached_property
    def once(self) -> float:
        """The message that takes longest, and sums behind it."""
        near, fused = self._hop(network=False), self.profile.fuses
        costs = Costs(
            hop=near,
            network=self._hop(network=True) - near,
            stop=self.step * (1 if fused and not self.profile.rounds else 2),
            passes=self.profile.passes_on,
        )
        last, second = farthest(self.ways.problem, costs)
        if self._adds and second:
            last = max(last, second + self._merge)
        return self.begin + last + self.step + self.add

    def least(self, size: int) -> float:
        """Return the least time of a message of `size` bytes without sums in switches."""
        problem, ways = self.ways.problem, self.ways
        if problem.collective not in _SPREAD or problem.groups or problem.shards:
            return self.once
        ranks, whole = problem.topology.size, problem.collective is Collective.ALLREDUCE
        sent = (size if whole else size / ranks) / self.model.payload[self.protocol]
        twice = self.hop + self._relay + self.step
        if problem.collective is Collective.REDUCE_SCATTER:
            twice += self.add
        near = self.begin + self.hop
        limits = [self.once, near + min(twice, sent * ways.crowd)]
        if len(ways.home) < ranks:
            across = self.begin + self.tail(ways.border)
            limits.append(across + min(twice, sent * ways.crowd_across))
            if whole:
                thrice = twice + self.hop + self._relay
                limits.append(across + min(thrice, sent * ways.lines_across))
        return max(limits)

    def links(self, size: int) -> float:
        """Return the least time of the bytes that links carry while hops leave them useful."""
        problem, ways = self.ways.problem, self.ways
        if problem.collective not in _SPREAD or problem.groups or problem.shards:
            return 0.0
        ranks, limits = problem.topology.size, [0.0]
        if len(ways.home) < ranks:
            limits.append(self.begin + self.tail(ways.border) + self._entering(size))
        if problem.collective is Collective.ALLREDUCE and ranks > 2:
            once = size / ways.entry / self.model.payload[self.protocol]
            moved = size / self.profile.usable_threadblocks
            limits.append(self.begin + self.hop + self.used(once, self._sums(ranks - 1), moved))
        if problem.collective is Collective.REDUCE_SCATTER and ranks > 2:
            once = size * (ranks - 2) / sum(ways.entries) / self.model.payload[self.protocol]
            limits.append(self.begin + self.hop + self.used(once) + self.merged)
        return max(limits)

    def used(self, once: float, first: Levels = ALWAYS, moved: float = 0.0) -> float:
        """Return how long links are used, with what threadblocks do at the end, in seconds.

        Parameters
        ----------
        once : float
            Seconds that the bytes take, if all are worth 1.
        first : Levels
            What they are worth by when they leave.
        moved : float
            Bytes for each threadblock that receives, if all are worth 1.
        """
        used = least_use(once, first)
        if not self.profile.xml:
            return used
        rate = self.model.rate[self.protocol] * 1e9
        most = 1 + self.step * rate / self.model.least_slice[self.protocol]
        return max(used, self.step + least_use(max(once / most, moved / rate), first))

    def _entering(self, size: int) -> float:
        """Return how long the links into the first box are used, at least, and a sum behind."""
        problem = self.ways.problem
        inside = len(self.ways.home)
        outside = problem.topology.size - inside
        enters = {Collective.ALLGATHER: outside, Collective.REDUCE_SCATTER: inside}
        share = enters.get(problem.collective, problem.topology.size) / problem.topology.size
        once = size * share * self.ways.entrance / self.model.payload[self.protocol]
        if problem.collective is Collective.REDUCE_SCATTER:
            return self.used(once, self._sums(outside)) + self.add
        first = self._sums(outside) if self._adds else ALWAYS
        return least_use(once, first, self._served(inside))

    def _sums(self, gpus: int) -> Levels:
        """Return which part of the contributions of some GPUs a message holds that leaves one."""
        paired = self.hop + self._relay
        return (
            (0.0, 1 / gpus),
            (paired, min(1.0, 2 / gpus)),
            (paired + self._merge, 1.0),
        )

    def _served(self, gpus: int) -> Levels:
        """Return which part of a box gets what enters it, by the time left."""
        alone, second = (0.0, 1 / gpus), min(1.0, 2 / gpus)
        if not self.profile.xml:
            whole = self.profile.rounds or self.model.slices[self.protocol] == 1
            return alone, (self.hop + self._relay * whole, 1.0)
        wait, twice = self.model.wait / 1e6, 2 * self.step
        if self.profile.fuses:
            return alone, (self.hop, second), (self.hop + min(self.hop, wait + twice), 1.0)
        sent = self.hop + twice
        return alone, (sent, second), (sent + min(sent, wait), 1.0)

    def connection(self, moved: float) -> float:
        """Return the least time of a threadblock that receives some bytes, from the first arrival.

        Both ends take a step for each call. The largest call's first slice is sent before it is
        received. So few calls cost the time of a large slice, and many cost steps.
        """
        rate, least = self.model.rate[self.protocol] * 1e9, self.model.least_slice[self.protocol]
        slices = self.model.slices[self.protocol]
        if not self.step:
            return moved / rate
        fewest = max(1.0, ceil(moved / self.profile.tile_bytes[self.protocol]))
        even = moved / rate / self.step  # where calls of one slice take as long as they cost
        best = sqrt(even), sqrt(even / slices), moved / least, moved / least / slices

        def time(calls: float) -> float:
            call = moved / calls
            return calls * self.step + (moved + min(call, max(call / slices, least))) / rate

        tried = {max(fewest, nearest(calls)) for calls in best for nearest in (floor, ceil)}
        return min(map(time, sorted(tried)))
