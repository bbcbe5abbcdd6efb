"""The least time of a message, however small: hops, the steps at their ends, and sums.

All proofs are in the simulator's model. A message begins with a step of its sender, travels one hop
(`Model.hop` and the latency of links), and ends with a step of its receiver.

- **The way.** Data must get from a GPU to each one that needs it. Connections pass a few other GPUs
  at most (`Profile.passes_on`); data for GPUs farther away stops on the way, is received and sent
  on (`farthest`). Another box is reached over the network. Where three or more GPUs contribute to
  a sum, something passes two hops, or a GPU receives from two peers. Peers have threadblocks of
  their own, so the later sum waits for the other (`Model.wait`). Plans fold sums, and do not wait.
  Where steps are not fused, a sum is a step of its own.
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
- **Boxes in time.** What enters a box before anything can be added outside comes from one GPU, and
  what enters too late to be passed on serves one. Only the rest serves all.
- **Sums in time.** In an allreduce, a GPU receives each byte with all other contributions. Messages
  hold one contribution until sums leave, two until sums leave that had to wait, and N - 1 then. So
  the links of a GPU carry the message N - 1 times, (N - 1) / 2 times or once, in that order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from colsynth.bounds.farthest import Costs, farthest
from colsynth.bounds.ways import Ways
from colsynth.cost import Model
from colsynth.cost.pair_routes import is_network
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
        """The launch, and the step of the first sender."""
        return self.model.launch[self.protocol] / 1e6 + self.step

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
        network = bool(used) and all(is_network(self.ways.problem.topology, i) for i in used)
        return self._hop(network=network) + self.ways.through(used)

    @property
    def _adds(self) -> bool:
        return self.ways.problem.collective in _SUMS

    @property
    def _add(self) -> float:
        """A sum behind the step that receives, where that one does not add."""
        return 0.0 if not self._adds or self.profile.fuses else self.step

    @property
    def _merge(self) -> float:
        """What a sum of messages of two peers takes beyond a sum with one."""
        if not self.profile.xml:
            return 0.0
        merge = self.model.wait / 1e6 + self.step * self.profile.fuses
        return min(merge, self.hop + self._relay)

    @property
    def _relay(self) -> float:
        """At a GPU between two hops, from the arrival to when data leaves again."""
        fused = self.profile.fuses and not self.profile.rounds
        return self.step if fused else 2 * self.step + self._add

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
        last = farthest(self.ways.problem, costs)
        if self._adds and min(map(len, self.ways.problem.members)) > 2:
            last = max(last, self.hop + self._merge)
        return self.begin + last + self.step + self._add

    def least(self, size: int) -> float:
        """Return the least time of a message of `size` bytes without sums in switches."""
        problem, ways = self.ways.problem, self.ways
        if problem.collective not in _SPREAD or problem.groups or problem.shards:
            return self.once
        ranks, whole = problem.topology.size, problem.collective is Collective.ALLREDUCE
        sent = (size if whole else size / ranks) / self.model.payload[self.protocol]
        twice = self.hop + self._relay + self.step
        if problem.collective is Collective.REDUCE_SCATTER:
            twice += self._add
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
            limits.append(self.begin + self.hop + self.carried(once, ranks))
        return max(limits)

    def _entering(self, size: int) -> float:
        """Return how long the links into the first box are used, at least."""
        problem = self.ways.problem
        inside = len(self.ways.home)
        outside = problem.topology.size - inside
        enters = {Collective.ALLGATHER: outside, Collective.REDUCE_SCATTER: inside}
        share = enters.get(problem.collective, problem.topology.size) / problem.topology.size
        once = size * share * self.ways.entrance / self.model.payload[self.protocol]
        ends = []  # GPUs that one message serves only one of, at either end of that time
        if problem.collective is not Collective.REDUCE_SCATTER:
            ends.append(inside)
        if problem.collective is not Collective.ALLGATHER:
            ends.append(outside)
        late = sum((self.hop + self._relay) * (1 - 1 / gpus) for gpus in ends)
        return min(once * min(ends), once + late)

    def carried(self, once: float, ranks: int) -> float:
        """Return how long the links of a GPU carry an allreduce.

        Parameters
        ----------
        once : float
            Seconds in which they carry the message.
        ranks : int
            Three or more.
        """
        singles = self.hop + self._relay
        pairs = self._merge
        left = once - singles / (ranks - 1)
        if left <= 0:
            return once * (ranks - 1)
        shared = max(1.0, (ranks - 1) / 2)
        if left <= pairs / shared:
            return singles + left * shared
        return singles + pairs + left - pairs / shared
