"""The cases of the benchmark of timed schedules, and what others have published of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from colsynth.model import Link, Topology

SEED = 0
"""Of the links that are broken."""


@dataclass(frozen=True)
class Source:
    """Where a published figure comes from.

    Parameters
    ----------
    label : str
        For the legend of the plot.
    text : str
        For the notes below the table.
    """

    label: str
    text: str


RELEASE = Source(
    "TACOS as released",
    "released C++ of TACOS (astra-sim/tacos 1811f1f), -O3, one thread, run on two cores of an "
    "AMD EPYC: links alike, one chunk per GPU, a time and no schedule",
)
TACOS = Source(
    "TACOS, paper",
    "TACOS, arXiv 2304.05301v2, abstract: a machine and a number of chunks we do not know",
)
PCCL = Source(
    "PCCL, paper",
    "PCCL, arXiv 2606.07019v1, abstract: a machine and a fabric we do not know",
)
SOURCES = (RELEASE, TACOS, PCCL)


MESHES, TORI = "2-D meshes", "3-D tori"
"""The lines of the plot."""


@dataclass(frozen=True)
class Published:
    """Seconds that another synthesizer takes.

    Parameters
    ----------
    label : str
        What it was run on, for the plot.
    gpus : int
    seconds : float
    text : str
        As published.
    source : Source
    line : str
        Of the plot that it is to be compared with.
    """

    label: str
    gpus: int
    seconds: float
    text: str
    source: Source
    line: str = ""


PUBLISHED = {
    "mesh:8x8 allgather": Published("mesh 8x8", 64, 0.009, "0.009 s", RELEASE, MESHES),
    "mesh:16x16 allgather": Published("mesh 16x16", 256, 0.70, "0.70 s", RELEASE, MESHES),
    "mesh:23x23 allgather": Published("mesh 23x23", 529, 6.8, "6.8 s", RELEASE, MESHES),
    "mesh:32x32 allgather": Published("mesh 32x32", 1024, 57, "57 s", RELEASE, MESHES),
    "torus:16x16 allgather": Published("torus 16x16", 256, 0.65, "0.65 s", RELEASE),
    "torus:8x8x8 allgather": Published("torus 8x8x8", 512, 3.3, "3.3 s", RELEASE, TORI),
    "torus:8x8x16 allgather": Published("torus 8x8x16", 1024, 37, "37 s", RELEASE, TORI),
    "torus:16x16x8 allgather": Published("torus 16x16x8", 2048, 396, "396 s", RELEASE, TORI),
    "torus:8x8x8 axes 1:2:4 allreduce": Published(
        "heterogeneous, allreduce", 512, 6.09 * 60, "6.09 min", TACOS
    ),
    "mesh:200x200 allgather": Published("40,000 GPUs", 40_000, 2.52 * 3600, "2.52 h", TACOS),
    "torus:8x8x8 alltoall": Published("alltoall", 512, 11.68 * 60, "11.7 min", PCCL),
}
"""By the name of the case; a fabric the papers do not name is taken to be the one named here."""


@dataclass(frozen=True)
class Case:
    """One problem.

    Parameters
    ----------
    part : str
        Of the benchmark.
    spec : str
        Preset or generator.
    collective : str
    nodes : int or None
        Boxes of a preset.
    chunks : int
        Per GPU.
    change : str
        What is done to the topology, a name of `CHANGES`.
    line : str
        Of the plot.
    """

    part: str
    spec: str
    collective: str = "allgather"
    nodes: int | None = None
    chunks: int = 1
    change: str = ""
    line: str = ""

    @property
    def name(self) -> str:
        """What the table calls it."""
        boxes = "" if self.nodes is None else f"x{self.nodes}"
        return " ".join(filter(None, (self.spec, boxes, self.change, self.collective)))

    @property
    def published(self) -> Published | None:
        """What others take for it."""
        return PUBLISHED.get(self.name)

    def topology(self) -> Topology:
        """Return the topology, made anew."""
        from colsynth import api

        found = api.load_topology(self.spec, nodes=self.nodes)
        return CHANGES[self.change](found) if self.change else found

    @property
    def alike(self) -> bool:
        """Whether all links are alike, so that time can be counted in chunks."""
        return ":" in self.spec and not self.change


def unequal_axes(topology: Topology) -> Topology:
    """Return a torus or mesh whose axes have 1, 2, 4, ... times the bandwidth."""
    kind, _, text = topology.name.partition(":")
    shape = tuple(map(int, text.split("x")))

    def place(rank: int) -> list[int]:
        found = []
        for size in reversed(shape):
            rank, here = divmod(rank, size)
            found.append(here)
        return found[::-1]

    def factor(link: Link) -> int:
        pairs = zip(place(link.source), place(link.target), strict=True)
        return 2 ** next(axis for axis, (here, there) in enumerate(pairs) if here != there)

    links = tuple(replace(link, bandwidth=link.bandwidth * factor(link)) for link in topology.links)
    axes = ":".join(str(2**axis) for axis in range(len(shape)))
    return replace(topology, name=f"{kind}:{text} axes {axes}", links=links)


def broken_cables(topology: Topology) -> Topology:
    """Return a topology without 1 % of its cables and with 20 % of them at half bandwidth."""
    cables = sorted({tuple(sorted((link.source, link.target))) for link in topology.links})
    return _broken(topology, cables, lambda link: tuple(sorted((link.source, link.target))))


def broken_links(topology: Topology) -> Topology:
    """Do the same, but to each direction of a cable by itself."""
    links = [(link.source, link.target) for link in topology.links]
    return _broken(topology, links, lambda link: (link.source, link.target))


def _broken(
    topology: Topology,
    things: list[tuple[int, ...]],
    thing_of: Callable[[Link], tuple[int, ...]],
) -> Topology:
    order = Random(SEED).sample(things, len(things))
    missing = max(1, len(order) // 100)
    gone, slow = set(order[:missing]), set(order[missing : missing + len(order) // 5])
    links = tuple(
        replace(link, bandwidth=link.bandwidth / (2 if thing_of(link) in slow else 1))
        for link in topology.links
        if thing_of(link) not in gone
    )
    return replace(topology, name=f"{topology.name} broken", links=links)


CHANGES: dict[str, Callable[[Topology], Topology]] = {
    "axes 1:2:4": unequal_axes,
    "broken cables": broken_cables,
    "broken links": broken_links,
}

_MESHES = ("8x8", "16x16", "23x23", "32x32", "64x64")
_FLAT_TORI = ("8x8", "16x16")
_TORI = ("4x4x4", "8x8x4", "8x8x8", "8x8x16", "16x16x8", "16x16x16")
_BOXES = (
    *(("dgx-a100", boxes) for boxes in (1, 2, 4)),
    *(("mi250", boxes) for boxes in (1, 2)),
    *(("ndv2", boxes) for boxes in (1, 2)),
    ("dgx2", 2),
)

CASES = (
    *(Case("speed", f"mesh:{shape}", line=MESHES) for shape in _MESHES),
    *(Case("speed", f"torus:{shape}") for shape in _FLAT_TORI),
    *(Case("speed", f"torus:{shape}", line=TORI) for shape in _TORI),
    *(Case("speed", f"hypercube:{bits}") for bits in (6, 8, 10)),
    Case("speed", "torus:8x8x8", "allreduce", change="axes 1:2:4"),
    Case("speed", "dgx-h100", "allreduce", nodes=64),
    Case("speed", "torus:8x8x8", "alltoall"),
    *(
        Case("broken", f"mesh:{shape}", change=f"broken {what}")
        for shape in ("8x8", "16x16", "23x23")
        for what in ("cables", "links")
    ),
    *(
        Case("quality", preset, collective, boxes, chunks)
        for preset, boxes in _BOXES
        for collective in ("allgather", "allreduce", "alltoall")
        for chunks in (4, 16)
    ),
    *(Case("quality", "torus:8x8", "alltoall", chunks=chunks) for chunks in (1, 4)),
    Case("huge", "mesh:200x200", line=MESHES),
)

PARTS = ("speed", "broken", "quality", "huge")

WARM = (
    Case("warm", "mesh:3x3"),
    Case("warm", "mesh:3x3", "allreduce", change="broken cables"),
    Case("warm", "ndv2", "allreduce", nodes=2, chunks=2),
    Case("warm", "ndv2", "alltoall", nodes=2),
)
"""Small cases that together use every kernel."""
