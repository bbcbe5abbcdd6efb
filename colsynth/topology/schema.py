"""The YAML schema, version 1: what a topology file may say.

Two forms share a header. The compact form describes one box, how many there
are, and the fabric between them; the flat form lists every node and link.
Types carry the descriptions that ``colsynth topology schema`` prints.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

VERSION = 1

_WIRE_RATE = (
    "Wire rate of one link in one direction, as data sheets have it, not a measured bus "
    'bandwidth: "25 GB/s", "200 Gb/s" or "50 GiB/s"'
)
BandwidthText = Annotated[str, Meta(description=f"{_WIRE_RATE}.")]
BandwidthRule = Annotated[
    str, Meta(description=f'{_WIRE_RATE}; or an expression, such as "nic * nics / planes".')
]
LatencyText = Annotated[str, Meta(description='"0.7 us", "700 ns"; zero when left out.')]
LatencyRule = Annotated[
    str, Meta(description='"0.7 us", "700 ns", or an expression; zero when left out.')
]
Name = Annotated[str, Meta(min_length=1, description="Printable text without outer blanks.")]
_MOST = 10**9
"""Of every count and box; far from where sums and products leave 64 bits."""

Number = Annotated[int, Meta(ge=1, le=_MOST)]
Expression = Annotated[
    str,
    Meta(
        description="Numbers, quantities and parameters, joined with + - * / ( ): "
        '"$planes", "nics / planes".'
    ),
]
Capabilities = Annotated[
    list[Literal["multicast", "reduce", "store-and-forward"]],
    Meta(
        description="Of a switch: multicast, reduce. Of a switch or NIC: store-and-forward, "
        "which sends a chunk on only when all of it has arrived; cut-through without it."
    ),
]
KindName = Literal["gpu", "switch", "nic"]
JoinName = Literal["all", "blocks", "round-robin"]
OneWay = Annotated[
    bool, Meta(description="Only from `from` to `to`; otherwise links go both ways.")
]
Selection = Annotated[
    str | Annotated[list[str], Meta(min_length=1)],
    Meta(description="A group (all its nodes, in order), one node of it (gpu3), or a list."),
]


Wires = Annotated[
    Literal["fastest", "all"],
    Meta(
        description="Between two GPUs with two kinds of wire (NVLink and PCIe), runtimes take the "
        "fastest, and parallel switches count as one; all keeps the other wires in bounds and "
        "schedules too, and the switches apart."
    ),
]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A mapping whose keys are all known."""


class Group(_Strict, frozen=True):
    """Like nodes of a box or of the fabric."""

    name: Annotated[Name, Meta(description="Letters first and last; nodes are NAME0, NAME1, ...")]
    kind: KindName
    count: Annotated[
        Number | Expression | None,
        Meta(description="How many; left out, there is one, and it carries no number."),
    ] = None
    capabilities: Capabilities = []


class LinkRule(_Strict, frozen=True):
    """Links between two selections of nodes."""

    source: Selection = msgspec.field(name="from")
    target: Selection = msgspec.field(name="to")
    bandwidth: BandwidthRule
    latency: LatencyRule = "0 s"
    join: Annotated[
        JoinName | None,
        Meta(
            description="Which pairs: all (default), blocks (8 GPUs on 4 NICs: 0 and 1 share "
            "NIC 0), or round-robin (8 NICs on 2 switches: even and odd)."
        ),
    ] = None
    count: Annotated[
        Number | Expression, Meta(description="Parallel links per pair; their bandwidths add up.")
    ] = 1
    counts: Annotated[
        list[list[Annotated[int, Meta(ge=0, le=_MOST)]]] | None,
        Meta(description="Parallel links of every pair: a row per `from`, a column per `to`."),
    ] = None
    one_way: OneWay = False


class Part(_Strict, frozen=True):
    """A box, or the fabric between boxes."""

    nodes: Annotated[list[Group], Meta(description="Groups of nodes, in the order of the ranks.")]
    links: list[LinkRule] = []


class Compact(_Strict, frozen=True):
    """Equal boxes and the fabric between them."""

    version: Literal[1]
    name: Name
    box: Annotated[Part, Meta(description="One box; every box is equal.")]
    title: str = ""
    wires: Wires = "fastest"
    aliases: Annotated[list[str], Meta(description="Other names of a preset.")] = []
    parameters: Annotated[
        dict[str, int | float | str],
        Meta(
            description="Defaults of what --set overrides: numbers, bandwidths, latencies, and "
            "expressions of the parameters above. Each must be used."
        ),
    ] = {}
    boxes: Annotated[Number, Meta(description="How many boxes unless --nodes says otherwise.")] = 1
    fabric: Annotated[
        Part | None,
        Meta(description="Between boxes; with one box it is left out, and so are all NICs."),
    ] = None


class FlatNode(_Strict, frozen=True):
    """One node."""

    name: Name
    kind: KindName
    box: Annotated[
        Annotated[int, Meta(ge=0, le=_MOST)] | None,
        Meta(
            description="Its chassis; none for the fabric. GPUs without one share a box where ways "
            "without a NIC join them."
        ),
    ] = None
    capabilities: Capabilities = []


class FlatLink(_Strict, frozen=True):
    """One link, or one in each direction."""

    source: Name = msgspec.field(name="from")
    target: Name = msgspec.field(name="to")
    bandwidth: BandwidthText
    latency: LatencyText = "0 s"
    count: Annotated[
        Number, Meta(description="Parallel links of one kind; their bandwidths add up.")
    ] = 1
    one_way: OneWay = False


class Flat(_Strict, frozen=True):
    """Every node and every link."""

    version: Literal[1]
    name: Name
    nodes: list[FlatNode]
    links: list[FlatLink]
    title: str = ""
    wires: Wires = "fastest"
    ranks: Annotated[
        list[str] | None,
        Meta(description="GPU names, rank 0 first; the order of the nodes when left out."),
    ] = None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a topology file, either form."""
    forms, parts = msgspec.json.schema_components([Compact, Flat])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "colsynth topology, version 1",
        "anyOf": list(forms),
        "$defs": parts,
    }
