"""Fabrics of N GPUs with d ports: known graphs, expansions of smaller fronts, and Cayley digraphs.

Each is judged exactly on the built graph. Fronts of smaller fabrics are found first and kept, since
line graphs, products and copies of good fabrics are good fabrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import comb

from colsynth.cabling.cayley import search
from colsynth.cabling.figures import Figures, figures
from colsynth.topology.graphs.moore import moore_steps

Progress = Callable[[str, int, int], None]
Key = tuple[int, Fraction]

_SINGLE = {
    (6, 4): ("octahedron",),
    (10, 4): ("crown-5",),
    (10, 3): ("petersen",),
    (14, 4): ("heawood-distance-3",),
    (14, 3): ("heawood",),
    (15, 4): ("line-petersen",),
    (21, 4): ("line-heawood",),
    (26, 4): ("pg-2-3",),
    (30, 3): ("tutte-8",),
    (32, 4): ("ag-2-4",),
    (45, 4): ("line-tutte-8",),
    (70, 4): ("doubled-odd-4",),
    (80, 4): ("gq-3-3",),
    (126, 3): ("tutte-12",),
    (189, 4): ("line-tutte-12",),
}
"""Named graphs (``distance-regular:``) by GPUs and ports."""

_MOST_LINKS = 2**15
"""Links of a graph that is built and judged."""
_SMALLER = 4
"""The tries of a smaller fabric are those of the whole over this."""


class Finder:
    """Finds fronts, each once.

    Parameters
    ----------
    collective : str
        ``"allgather"``, ``"reduce-scatter"`` or ``"allreduce"``.
    tries : int
        Cayley digraphs that are evaluated for the whole; 0 leaves only known constructions.
    seed : int
    progress : callable
    """

    def __init__(self, collective: str, tries: int, seed: int, progress: Progress) -> None:
        self.collective, self.tries, self.seed, self.progress = collective, tries, seed, progress
        self._known: dict[tuple[int, int, bool, bool], list[Figures]] = {}
        self._judged: dict[tuple[str, int], Figures | None] = {}

    def key(self, found: Figures) -> Key:
        """Return (steps, time) for the collective."""
        times = {
            "allgather": found.gather,
            "reduce-scatter": found.scatter,
            "allreduce": found.gather + found.scatter,
        }
        return found.steps, times[self.collective]

    def front(self, size: int, ports: int, *, duplex: bool, whole: bool = True) -> list[Figures]:
        """Return the fabrics that no other one beats in both steps and time, by steps."""
        place = (size, ports, duplex, whole)
        if place not in self._known:
            self._known[place] = []  # a front does not build on itself
            self._known[place] = self._found(size, ports, duplex=duplex, whole=whole)
        return self._known[place]

    def _found(self, size: int, ports: int, *, duplex: bool, whole: bool) -> list[Figures]:
        if size <= ports:
            return []
        kind = "duplex" if duplex else "simplex"
        self.progress(f"{kind} fabrics of {size} GPUs, {ports} ports", len(self._known), 0)
        tries = self.tries if whole else self.tries // _SMALLER
        found = [*search(size, ports, tries, self.seed, self.key, duplex=duplex)]
        moore = moore_steps(size, ports, duplex=duplex)
        texts = {text: max(least, moore) for least, text in self._texts(size, ports, duplex=duplex)}
        for text in sorted(texts, key=lambda x: (texts[x], len(x), x)):
            simpler = [x for x in found if len(x.text) <= len(text) or x.steps < texts[text]]
            if size * ports > _MOST_LINKS or self._is_hopeless(simpler, size, texts[text]):
                continue
            judged = self._judge(text, ports)
            if judged is not None:
                found.append(judged)
        return self._pareto(found)

    def _judge(self, text: str, ports: int) -> Figures | None:
        if (text, ports) not in self._judged:
            both = self.collective != "allgather"
            self._judged[text, ports] = figures(text, ports, both=both)
        return self._judged[text, ports]

    def _is_hopeless(self, found: list[Figures], size: int, least: int) -> bool:
        """Whether some fabric with no more steps already has the least time of all."""
        phases = 2 if self.collective == "allreduce" else 1
        best = phases * Fraction(size - 1, size)
        return any(x.steps <= least and self.key(x)[1] == best for x in found)

    def _pareto(self, found: list[Figures]) -> list[Figures]:
        kept: list[Figures] = []
        for x in sorted(found, key=lambda f: (*self.key(f), f.distance, len(f.text), f.text)):
            if not kept or self.key(x)[1] < self.key(kept[-1])[1]:
                kept.append(x)
        return kept

    def _texts(self, size: int, ports: int, *, duplex: bool) -> Iterator[tuple[int, str]]:
        """Yield (least number of steps, expression) of known constructions and expansions."""
        for text in (*_undirected(size, ports), *(() if duplex else _directed(size, ports))):
            yield 1, text
        if duplex:
            if ports % 2 == 0:
                for x in self.front(size, ports // 2, duplex=False, whole=False):
                    yield 1, f"duplex({x.text})"
        elif size % ports == 0 and ports > 1:
            for x in self.front(size // ports, ports, duplex=False):
                yield x.steps + 1, _line(x.text)
        yield from self._copies(size, ports, duplex=duplex)
        yield from self._products(size, ports, duplex=duplex)

    def _copies(self, size: int, ports: int, *, duplex: bool) -> Iterator[tuple[int, str]]:
        for k in range(2, ports + 1):
            if size % k == 0 and ports % k == 0:
                for x in self.front(size // k, ports // k, duplex=duplex, whole=False):
                    yield x.steps, f"degree:{k}({x.text})"
            root = round(size ** (1 / k))
            if root**k == size and ports % k == 0:
                for x in self.front(root, ports // k, duplex=duplex, whole=False):
                    yield k * x.steps, f"power:{k}({x.text})"

    def _products(self, size: int, ports: int, *, duplex: bool) -> Iterator[tuple[int, str]]:
        for a in (n for n in range(2, size) if size % n == 0):
            for d in range(1, ports):
                if d >= a or ports - d >= size // a or (a, d) > (size // a, ports - d):
                    continue
                one = self._best_time(a, d, duplex=duplex)
                other = self._best_time(size // a, ports - d, duplex=duplex) if one else None
                if one and other:
                    yield one.steps + other.steps, f"product({one.text},{other.text})"

    def _best_time(self, size: int, ports: int, *, duplex: bool) -> Figures | None:
        """Return the fabric with the fewest steps among those with the least time of all."""
        front = self.front(size, ports, duplex=duplex, whole=False)
        return next((x for x in front if self._is_hopeless([x], size, x.steps)), None)


def _line(text: str) -> str:
    """Return the line graph of an expression, merging powers."""
    if text.startswith("line("):
        return f"line^2({text[5:]}"
    if text.startswith("line^"):
        power, _, rest = text[5:].partition("(")
        return f"line^{int(power) + 1}({rest}"
    return f"line({text})"


def _directed(size: int, ports: int) -> Iterator[str]:
    if ports == 1:
        yield f"uniring:{size}"
        return
    yield f"genkautz:{ports},{size}"
    for jumps in (range(1, ports + 1), range(1, 2 * ports, 2)):
        if max(jumps) < size:
            yield f"dicirculant:{size},{','.join(map(str, jumps))}"
    power = _power_of(size, ports)
    if power:
        yield f"joined(debruijn:{ports},{power})"


def _undirected(size: int, ports: int) -> Iterator[str]:
    known = {
        f"clique:{size}": ports == size - 1,
        f"ring:{size}": ports == 2,
        f"bipartite:{ports}": size == 2 * ports,
        f"odd:{ports}": ports > 2 and size == comb(2 * ports - 1, ports - 1),
    }
    yield from (text for text, fits in known.items() if fits)
    yield from (f"distance-regular:{name}" for name in _SINGLE.get((size, ports), ()))
    if ports == 4:
        jump = -(-int((2 * size - 1) ** 0.5 - 1) // 2)  # the least diameter of two jumps
        jumps = dict.fromkeys((jump, jump + 1, 2))
        yield from (f"circulant:{size},{k},{k + 1}" for k in jumps if 0 < 2 * k + 2 < size)
    if ports % 2 == 0 and ports > 2:
        for shape in _shapes(size, ports // 2, 3):
            yield f"torus:{'x'.join(map(str, shape))}"
    for words in range(2, 13):
        letters = round(size ** (1 / words))
        if letters**words == size and ports == words * (letters - 1):
            yield f"hamming:{words},{letters}"


def _shapes(size: int, dimensions: int, least: int) -> Iterator[tuple[int, ...]]:
    """Yield ascending factors, each at least `least`."""
    if dimensions == 1:
        if size >= least:
            yield (size,)
        return
    for first in range(least, int(size ** (1 / dimensions)) + 2):
        if size % first == 0:
            for rest in _shapes(size // first, dimensions - 1, first):
                yield (first, *rest)


def _power_of(size: int, base: int) -> int:
    power = 0
    while size % base == 0:
        size, power = size // base, power + 1
    return power if size == 1 and power > 1 else 0
