"""An allreduce in one model: sums on their way in, and copies on their way out, share the steps.

Chunk c of an instance comes twice: as c on its way out, and as C + c on its way in, where every GPU
sends its partial sum on once, after all that it adds to it. The root sends copies once all sums are
in. Links pass both in a step, so the copies of one chunk may overlap with the sums of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colsynth.synthesis.exact.instance import Instance
from colsynth.synthesis.exact.steps import Question, Sent, Steps, distances

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class JointQuestion(Question):
    """A question about a doubled instance (`doubled`)."""


def doubled(asked: Instance) -> Instance:
    """Return the instance of an outward phase with every chunk once more, on its way in."""
    chunks = asked.chunks
    barred = asked.barred | {(chunks + c, h) for c, h in asked.barred}
    same = np.concatenate((asked.same, asked.same + asked.same.size))
    return replace(
        asked,
        holders=asked.holders * 2,
        wanted=asked.wanted * 2,
        barred=frozenset(barred),
        same=same,
    )


def heights(asked: Instance) -> tuple[Ints, Ints]:
    """Return the fewest hops to and from the root of each chunk, both (C, N)."""
    chunks = asked.chunks // 2
    return distances(asked.turned())[chunks:], distances(asked)[:chunks]


def fewest_joint_steps(asked: Instance) -> int:
    """Return the steps that the farthest GPU's data needs to a root and back."""
    inward, away = heights(asked)
    members = [sorted(wanted) for wanted in asked.wanted[: len(away)]]
    return max(
        int(inward[c, some].max()) + int(away[c, some].max()) for c, some in enumerate(members)
    )


class Joint(Steps):
    """The model of a question about a doubled instance."""

    def _choices(self) -> list[Sent]:
        asked, steps = self._asked, self._question.steps
        chunks = asked.chunks // 2
        inward, away = heights(asked)
        ends = list(zip(asked.hops.source.tolist(), asked.hops.target.tolist(), strict=True))
        uses = []
        for c in range(chunks):
            (root,), some = asked.holders[c], sorted(asked.wanted[c])
            rise, fall = int(inward[c, some].max()), int(away[c, some].max())
            for h, (u, v) in enumerate(ends):
                if v != root and (c, h) not in asked.barred:
                    uses += [Sent(s, c, h) for s in range(rise + int(away[c, u]), steps)]
                if u != root and (chunks + c, h) not in asked.barred:
                    last = steps - fall - int(inward[c, v])
                    uses += [Sent(s, chunks + c, h) for s in range(last)]
        return uses

    def _arrivals(self) -> None:
        """Copies arrive once and sums leave once, each after all that it is made of."""
        asked, chunks = self._asked, self._asked.chunks // 2
        source, target = asked.hops.source.tolist(), asked.hops.target.tolist()
        into: dict[tuple[int, int], list[Sent]] = {}
        out: dict[tuple[int, int], list[Sent]] = {}
        for use in self._uses:
            into.setdefault((use.chunk, target[use.hop]), []).append(use)
            out.setdefault((use.chunk, source[use.hop]), []).append(use)
        for c in range(chunks):
            (root,) = asked.holders[c]
            done = self._done(into.get((chunks + c, root), []))
            for use in out.get((c, root), []):
                self._model.add_implication(self._variable(use), done[use.step])
            for v in sorted(asked.wanted[c] - {root}):
                self._once(into.get((c, v), []))
                self._once(out.get((chunks + c, v), []))
                for use in out.get((c, v), []):
                    held = self._held(into.get((c, v), []), c, use.step)
                    self._model.add_implication(self._variable(use), held)
                ready = self._done(into.get((chunks + c, v), []))
                for use in out.get((chunks + c, v), []):
                    self._model.add_implication(self._variable(use), ready[use.step])

    def _once(self, uses: Sequence[Sent]) -> None:
        self._model.add_exactly_one([self._variable(use) for use in uses])

    def _done(self, uses: Sequence[Sent]) -> list[Any]:
        """Return, for every step, a literal that allows none of some uses from that step on."""
        model = self._model
        done = [model.new_bool_var("") for _ in range(self._question.steps)]
        for before, after in pairwise(done):
            model.add_implication(before, after)
        for use in uses:
            model.add_implication(self._variable(use), done[use.step].negated())
        return done
