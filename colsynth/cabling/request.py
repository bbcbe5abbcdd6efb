"""From a request to a ranking: what `colsynth topology search` does."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from colsynth.cabling.boxes import gpus_of, ports_of
from colsynth.cabling.cayley import MOST_PORTS as MOST_SEARCHED
from colsynth.cabling.figures import Figures
from colsynth.cabling.finder import Finder, Progress
from colsynth.cabling.ranking import Job, Ranking, rank
from colsynth.errors import Diagnostic, InputError, did_you_mean, require_least
from colsynth.units import plural

COLLECTIVES = ("allgather", "reduce-scatter", "allreduce")
MOST_GPUS, MOST_PORTS = 4096, 64
DEFAULT_TRIES = 20_000
"""Cayley digraphs that are evaluated: 1024 GPUs with 4 ports take 4 s of one processor."""


@dataclass(frozen=True)
class Request:
    """A search for a cabling.

    Parameters
    ----------
    gpus : int
    ports : int or None
        Of every GPU, or of every box; None takes the NICs of the box.
    job : Job
    duplex : bool
        Whether every cable carries both directions.
    reserved : int
        Ports that are kept for something else.
    box : str or None
        Preset whose boxes are cabled, by their NICs.
    tries, seed : int
    """

    gpus: int
    ports: int | None
    job: Job
    duplex: bool = False
    reserved: int = 0
    box: str | None = None
    tries: int = DEFAULT_TRIES
    seed: int = 0

    def __post_init__(self) -> None:
        for option, value, least in (
            ("gpus", self.gpus, 2),
            ("tries", self.tries, 0),
            ("reserve", self.reserved, 0),
            ("ports", self.ports or 1, 1),
            ("seed", self.seed, 0),
        ):
            require_least(f"--{option}", value, least)
        if self.job.collective not in COLLECTIVES:
            hint = did_you_mean(self.job.collective, COLLECTIVES)
            phrase = f"no cabling is chosen for {self.job.collective}"
            raise InputError(Diagnostic("CS141", phrase, help=hint))
        if self.ports is None and self.box is None:
            raise _wrong("--ports is missing", "give the ports of a GPU, or a --box with NICs")

    @property
    def nodes(self) -> int:
        """What is cabled: GPUs, or boxes."""
        if self.box is None:
            return self.gpus
        each = gpus_of(self.box)
        if self.gpus % each or self.gpus < 2 * each:
            phrase = f"{self.gpus} GPUs are no whole number of {self.box} boxes, two or more"
            raise _wrong(phrase, f"a box has {each} GPUs: give a multiple")
        return self.gpus // each

    @property
    def degree(self) -> int:
        """Ports of each node that the fabric has."""
        most = MOST_PORTS if self.box is None else ports_of(self.box)[0]
        given = most if self.ports is None else self.ports
        ports = given - self.reserved
        if not 1 <= ports <= most:
            phrase = f"{given} ports less {self.reserved} reserved leave {ports}"
            raise _wrong(phrase, f"a fabric needs 1 to {most} ports")
        return ports


def find_cablings(request: Request, progress: Progress) -> Ranking:
    """Return the Pareto front of fabrics, with the winner of every message size.

    Raises
    ------
    InputError
        CS141: the request makes no sense, or no fabric was found.
    """
    nodes, ports = request.nodes, request.degree
    if nodes > MOST_GPUS:
        raise _wrong(f"{nodes} nodes are too many", f"at most {MOST_GPUS} are searched")
    if ports >= nodes:
        phrase = f"{ports} ports of {nodes} nodes: more than there are neighbours"
        raise _wrong(phrase, f"reserve ports, or give at most {nodes - 1}")
    if request.duplex and ports == 1 and nodes > 2:
        phrase = f"{nodes} nodes of one port: duplex cables join them in separate pairs"
        raise _wrong(phrase, _more_ports(request))
    if request.duplex and nodes * ports % 2:
        phrase = f"{nodes} nodes of {ports} ports have an odd number of cable ends"
        raise _wrong(phrase, "give an even number of nodes or ports, or leave out --duplex")
    finder = Finder(request.job.collective, request.tries, request.seed, progress)
    found: list[Figures] = finder.front(nodes, ports, duplex=request.duplex)
    if not found:
        kind = "duplex" if request.duplex else "simplex"
        phrase = f"no {kind} fabric of {nodes} nodes with {ports} ports was found"
        raise _wrong(phrase, _other_search(request))
    return rank(request.job, found)


def _more_ports(request: Request) -> str:
    """Return what helps nodes that need a second port for duplex cables."""
    least = 2 + request.reserved
    if request.box is not None and ports_of(request.box)[0] < least:
        return "leave out --duplex: the boxes have no NIC to add"
    return f"give --ports {least} or more, or leave out --duplex"


def _other_search(request: Request) -> str:
    """Return what helps where no fabric was found: more tries help up to a number of ports."""
    if request.degree <= MOST_SEARCHED:
        return "allow more --tries, or another number of ports"
    most = MOST_SEARCHED + request.reserved
    return f"give --ports {most} or fewer: --tries searches none with more"


def make_job(
    collective: str,
    sizes: tuple[int, ...],
    weights: tuple[Fraction, ...],
    bandwidth: Fraction,
    latency: Fraction,
) -> Job:
    """Return a job; without weights, all sizes count the same.

    Raises
    ------
    InputError
        CS141: there are not as many weights as sizes, or one is not above zero.
    """
    full = weights or (Fraction(1),) * len(sizes)
    advice = "give one weight above zero for each size, in ascending order"
    if len(full) != len(sizes):
        phrase = f"{plural(len(weights), 'weight')} for {plural(len(sizes), 'size')}"
        raise _wrong(phrase, advice)
    if min(full) <= 0:
        raise _wrong(f"a weight is {min(full)}", advice)
    return Job(collective, sizes, full, bandwidth, latency)


def _wrong(phrase: str, advice: str) -> InputError:
    return InputError(Diagnostic("CS141", phrase, help=advice))
