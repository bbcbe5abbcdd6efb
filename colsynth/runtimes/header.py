"""Reads the attributes of ``algo``: what the runtime knows before it looks at a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.errors import did_you_mean
from colsynth.model import Collective, Header, Severity
from colsynth.runtimes.fields import Fields
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.scanner import Scanner, Tag

MAX_RANKS = 1024
PROTOCOLS = ("Simple", "LL", "LL128")
NAME_LIMIT = 63
"""Characters of a name that the runtimes keep."""

_SPELLINGS = {
    "allgather": Collective.ALLGATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "reducescatter": Collective.REDUCE_SCATTER,
    "allreduce": Collective.ALLREDUCE,
    "broadcast": Collective.BROADCAST,
    "reduce": Collective.REDUCE,
    "alltoall": Collective.ALLTOALL,
}
_UNREACHABLE = ("alltoallv", "send", "recv", "gather", "scatter")
_BLOCK_SIZES = (0, 64, 128, 256, 512)
_MOST_THREADS = {"Simple": 512, "LL": 512, "LL128": 640}
KNOWN = frozenset(
    [
        "name",
        "proto",
        "nchannels",
        "nchunksperloop",
        "ngpus",
        "coll",
        "inplace",
        "outofplace",
        "minBytes",
        "maxBytes",
        "nthreads",
    ]
)


@dataclass(frozen=True, slots=True)
class AlgoHeader:
    """A header, and what else the file's first tag says.

    Parameters
    ----------
    header : Header
    custom : bool
        Whether the collective has no agreed result.
    threads : int
        ``nthreads`` where the runtime reads it, else 0.
    """

    header: Header
    custom: bool
    threads: int


def read_header(scanner: Scanner, tag: Tag, profile: Profile) -> AlgoHeader | None:
    """Return the header, or None when too much is missing to look any further."""
    fields = Fields(scanner, tag, "A01")
    fields.ignored(KNOWN)
    for key in profile.required:
        if key not in tag.attributes:
            fields.fault("A01", f"the header lacks {key!r}, which {profile.name} requires")
    protocol = _protocol(fields, tag, profile)
    found = _collective(fields, tag, profile)
    counts = [fields.optional(key, 0) for key in ("ngpus", "nchunksperloop", "nchannels")]
    fits = _fits(fields, profile, counts[0], counts[1])
    if protocol is None or found is None or not fits:
        return None
    collective, custom = found
    in_place, out_of_place = _modes(fields, profile)
    least, most = _range(fields, profile, profile.largest_message(protocol, counts[1]))
    threads = _threads(fields, profile, protocol)
    header = Header(
        name=tag.attributes.get("name", ""),
        collective=collective,
        protocol=protocol,
        ranks=counts[0],
        chunks=counts[1],
        channels=counts[2],
        in_place=in_place,
        out_of_place=out_of_place,
        min_bytes=least,
        max_bytes=most,
    )
    return AlgoHeader(header, custom, threads)


def _fits(fields: Fields, profile: Profile, ranks: int, chunks: int) -> bool:
    """Check the two sizes that all others derive from."""
    if not 1 <= chunks <= profile.max_offset + 1 and fields.given("nchunksperloop"):
        text = f"nchunksperloop is {chunks}; offsets reach {profile.max_offset + 1} chunks"
        fields.fault("A04", text)
    if ranks < 1 and fields.given("ngpus"):
        fields.fault("A05", f"ngpus is {ranks}")
    if ranks > MAX_RANKS:
        fields.fault("X11", f"ngpus is {ranks}; the parser holds {MAX_RANKS} gpu elements")
    return 1 <= chunks <= profile.max_offset + 1 and 1 <= ranks <= MAX_RANKS


def _protocol(fields: Fields, tag: Tag, profile: Profile) -> str | None:
    protocol = tag.attributes.get("proto")
    if protocol is None or protocol in PROTOCOLS:
        if protocol == "LL128" and not profile.directory:
            text = "LL128 runs by itself only on NVLink-connected V100 or A100; elsewhere"
            fields.fault("A02", f"{text} NCCL_PROTO must list LL128", Severity.WARNING)
        return protocol
    fields.fault("A02", f"protocol {protocol!r}: {did_you_mean(protocol, PROTOCOLS)}")
    return None


def _collective(fields: Fields, tag: Tag, profile: Profile) -> tuple[Collective, bool] | None:
    word = tag.attributes.get("coll")
    if word is None:
        return None
    spelt = {text: collective for collective, text in profile.collectives.items()}
    if word in spelt:
        return spelt[word], False
    if word == "custom" and not profile.directory:
        return Collective.ALLTOALL, True
    if word in _UNREACHABLE and profile.directory:
        fields.fault("A17", f"no call of {profile.name} ever selects a file for {word!r}")
        return Collective.ALLTOALL, True
    close = _SPELLINGS.get(word)
    help_text = f"it is {profile.collectives[close]!r} here" if close else f"{sorted(spelt)}"
    fields.fault("A03", f"{profile.name} does not know collective {word!r}; {help_text}")
    return (Collective.ALLTOALL, True) if word == "custom" else (close, False) if close else None


def _modes(fields: Fields, profile: Profile) -> tuple[bool, bool]:
    in_place = fields.optional("inplace", 0) != 0
    other = fields.optional("outofplace", 0) != 0
    if profile.both_modes:
        if not fields.given("outofplace"):
            return in_place, not in_place
        if not in_place and not other:
            fields.fault("A06", "neither inplace nor outofplace is set: no call selects the file")
        return in_place, other
    if in_place and other:
        text = "the file claims both call modes; out-of-place calls never use it"
        fields.fault("A06", text)
    return in_place, not in_place


def _range(fields: Fields, profile: Profile, largest: int) -> tuple[int, int | None]:
    """Return the range, both ends inclusive; None is unlimited.

    Where the file is not loaded for want of ``maxBytes``, which A01 reports, it is `largest`,
    which leads to no further finding.
    """
    least = fields.optional("minBytes", 0, bits=64)
    missing = largest if profile.missing_max_bytes is None else profile.missing_max_bytes
    most = fields.optional("maxBytes", missing, bits=64)
    if least < 0:
        fields.fault("A07", f"minBytes is {least}")
    if profile.exclusive_max:
        if most <= max(least, 0):
            fields.fault("A07", f"no size lies in [{least}, {most}); maxBytes is exclusive here")
        return max(least, 0), most - 1 if most > 0 else None
    if most < 0 or 0 < most < least:
        fields.fault("A07", f"no size lies in [{least}, {most}]")
    return max(least, 0), most if most > 0 else None


def _threads(fields: Fields, profile: Profile, protocol: str) -> int:
    """Check and return ``nthreads``, which only the runtime with a list of files reads."""
    threads = fields.optional("nthreads", 0)
    if profile.directory or threads == 0:
        return 0
    fits = threads % 32 == 0 and 0 < threads <= _MOST_THREADS[protocol]
    if not fits or (protocol == "Simple" and threads not in _BLOCK_SIZES):
        fields.fault("A10", f"nthreads is {threads}; {protocol} runs 64, 128, 256 or 512")
    return threads
