"""Reads a plan, and what its first lines say about the calls that it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from colsynth.model import Collective, Header
from colsynth.reading import parse_json
from colsynth.runtimes.kinds import written_for
from colsynth.runtimes.reader import Reading
from colsynth.runtimes.rules import Findings

if TYPE_CHECKING:
    from colsynth.runtimes.plans.form import Plan
    from colsynth.runtimes.profile import Profile

MARK = " #"
"""Separates the title in a plan's name from the part that makes it unique (contract T9)."""
_OTHERS = {
    "xml": "the file is XML, for another runtime",
    "rounds": "the file holds rounds, for torch",
}
"""What is said instead of a fault where a file is for others, by `written_for`."""


def read_plan(data: bytes, profile: Profile, *, steps: bool = True) -> Reading:
    """Read a plan; where the bytes are none, the first fault is reported (P01).

    Without `steps`, which take longer to find than all else, there is no program.
    """
    from colsynth.runtimes.plans.form import Plan
    from colsynth.runtimes.plans.lift import lift

    findings = Findings(profile.name)
    try:
        plan = parse_json(data, Plan)
    except ValueError as fault:
        findings.add("P01", _OTHERS.get(written_for(data) or "", str(fault)))
        return Reading(None, findings.all())
    found = header_of(plan, profile)
    if found is None:
        findings.add("P01", "the plan has no GPUs, or they have no chunks")
        return Reading(None, findings.all())
    header, custom = found
    return Reading(lift(plan, header) if steps else None, (), custom, plan=plan, _header=header)


def header_of(plan: Plan, profile: Profile) -> tuple[Header, bool] | None:
    """Return the header of a plan, and whether its collective has no agreed result.

    None where the plan has no GPUs or chunks.
    """
    if not plan.gpus:
        return None
    first = plan.gpus[0]
    chunks = max(first.input_chunks, first.output_chunks)
    if chunks < 1:
        return None
    spelt = {word: collective for collective, word in profile.collectives.items()}
    collective = spelt.get(plan.collective)
    most: int | None = plan.max_message_size - int(profile.exclusive_max)
    if plan.max_message_size >= 2**63:
        most = None
    header = Header(
        name=plan.name.rpartition(MARK)[0] or plan.name,
        collective=collective or Collective.ALLTOALL,
        protocol="LL" if plan.protocol == "LL" else "Simple",
        ranks=len(plan.gpus),
        chunks=chunks,
        channels=max((sum(len(c.connected_to) for c in g.channels) for g in plan.gpus), default=0),
        in_place=plan.inplace,
        out_of_place=not plan.inplace,
        min_bytes=plan.min_message_size,
        max_bytes=most,
    )
    return header, collective is None
