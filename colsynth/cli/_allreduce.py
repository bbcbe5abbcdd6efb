"""What ``colsynth bound`` prints of an allreduce: free roots, equal roots, and the limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from colsynth.cost.shared_switch import switch_rate
from colsynth.units import exact_gb_per_s, format_bandwidth, gb_per_s, percent, plural

if TYPE_CHECKING:
    from fractions import Fraction

    from colsynth.model import AllreduceBound, Limit, Topology


def allreduce_fields(topology: Topology, found: AllreduceBound, *, reached: bool) -> dict[str, Any]:
    """Return the JSON fields of an allreduce, given whether something reaches its bound."""
    limit, rooted, within = found.limit, found.rooted, found.in_network
    sets, nvls = [_gpus(topology, part) for part in limit.parts], switch_rate(topology)
    return {
        "composition_gb_per_s": gb_per_s(found.composition.algbw),
        "composition": exact_gb_per_s(found.composition.algbw),
        "free_roots_gb_per_s": None if rooted is None else gb_per_s(rooted.algbw),
        "free_roots": None if rooted is None else exact_gb_per_s(rooted.algbw),
        "lp_gb_per_s": None if rooted is None else round(rooted.reached / 10**9, 6),
        "optimum_known": found.proven and reached,
        "better": "free roots" if found.gain > 0 else "reduce-scatter + allgather",
        "gain_percent": percent(found.gain),
        "limit_gb_per_s": gb_per_s(limit.algbw),
        "limit": exact_gb_per_s(limit.algbw),
        "limit_sets": sets,
        "limit_bandwidth_gb_per_s": gb_per_s(limit.bandwidth),
        "gap": float(limit.algbw / found.algbw - 1),
        "in_network_gb_per_s": None if within is None else gb_per_s(within.algbw),
        "in_network": None if within is None else exact_gb_per_s(within.algbw),
        "nvls_gb_per_s": None if nvls is None else gb_per_s(nvls),
        "nvls": None if nvls is None else exact_gb_per_s(nvls),
    }


def allreduce_rows(topology: Topology, found: AllreduceBound) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table: (name, text)."""
    proof = _proof(topology, found.limit)
    if found.proven:
        yield "proof", f"no schedule{_forwarding(found)} is faster: {proof}"
    else:
        yield "any schedule", f"at most {format_bandwidth(found.limit.algbw)}: {proof}"
    if not found.known:
        yield "free roots", "not known: too large for the linear program"
    if found.rooted is not None:
        more = f"{percent(found.gain):.2f} % more than reduce-scatter and allgather"
        gained = more if found.gain > 0 else "no more than reduce-scatter and allgather"
        yield "free roots", f"{format_bandwidth(found.rooted.algbw)}, {gained}"
    equal = min(found.composition.algbw, found.algbw)  # cuts of phases may allow more than all can
    yield "equal roots", f"{format_bandwidth(equal)}, reduce-scatter + allgather"
    if found.in_network is not None:
        yield (
            "in network",
            _beyond(found, found.in_network.algbw, "where switches do what they can"),
        )
    if (nvls := switch_rate(topology)) is not None:
        yield "NVLS", _beyond(found, nvls, "where every sum of the switch returns to a GPU")


def _beyond(found: AllreduceBound, rate: Fraction, where: str) -> str:
    """Return a bandwidth that switches help to reach, and what it gains."""
    extra = rate / found.algbw - 1
    gained = f"{percent(extra):.2f} % more" if extra > 0 else "no more"
    return f"{format_bandwidth(rate)}, {gained}, {where}"


def _forwarding(found: AllreduceBound) -> str:
    """Return a remark if switches could do more than forward."""
    return "" if found.in_network is None else " of switches that only forward"


def _proof(topology: Topology, limit: Limit) -> str:
    way = "leave" if limit.direction == "out" else "enter"
    bandwidth = format_bandwidth(limit.bandwidth)
    if len(limit.parts) == 1:
        count = len(_gpus(topology, limit.parts[0]))
        return f"all data must {way} {plural(count, 'GPU')}, over {bandwidth}"
    times = 2 * (len(limit.parts) - 1)
    alone = all(len(_gpus(topology, part)) == 1 for part in limit.parts)
    sets = "GPUs" if alone else "sets of GPUs"
    moved = f"{times} copies of the message must {way} {len(limit.parts)} {sets}"
    return f"{moved}, over {bandwidth} in total"


def _gpus(topology: Topology, nodes: tuple[int, ...]) -> list[str]:
    return [topology.nodes[node].name for node in nodes if node in topology.rank_of]
