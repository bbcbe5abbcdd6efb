"""What a compilation tells its user beside the figures."""

from __future__ import annotations

import re

from colsynth.compile.result import Artefact
from colsynth.runtimes.selection import taken_sizes, unused
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.found import Found
from colsynth.search.measured import Measured
from colsynth.units import format_size

_PLACE = re.compile(r"\b(rank|threadblock|step) \d+")
"""Where in a file a finding is."""
_ONE_MODE = "A16"
"""The rule that a file of a rooted collective serves both call modes."""


def given_up(found: Found) -> tuple[str, ...]:
    """Return why the preferred start was not taken, if both starts have trees."""
    refused, taken = found.refused, found.start.plan.option("trees")
    trees = None if refused is None else refused.plan.option("trees")
    if refused is None or refused.refusal is None or trees is None or taken is None:
        return ()
    reason = refused.refusal.partition(": ")[2]
    if refused.plan.algorithm == "roots":
        return (f"free roots would be faster but were given up: {reason}",)
    return (f"{trees} trees per GPU would be faster but were given up: {reason}",)


def search_notes(start: Measured, best: Measured, case: Case) -> tuple[str, ...]:
    """Return notes on changes of the search that users should know about."""
    if start.shape is None or best.shape is None:
        return ()
    notes = []
    before, after = (str(m.plan.option("trees", "")) for m in (start, best))
    fewer = before.isdigit() and after.isdigit() and int(after) < int(before)
    if fewer and best.seconds[-1] and start.seconds[-1]:
        times = start.seconds[-1] / best.seconds[-1]
        notes.append(
            f"{before} trees per GPU have the better bound, but are predicted "
            f"to take {times:.2f} times as long at {format_size(case.sizes[-1])}"
        )
    segments = 1 + str(best.plan.values().get("lower-forest.segments", "1")).count("-")
    if segments > 1 and len(case.sizes) > 1:
        notes.append(
            f"trees carry their chunks in {segments} segments, which helps large messages and "
            "costs small ones steps; --size makes a file for those of one size"
        )
    return tuple(notes)


def selection_notes(artefacts: tuple[Artefact, ...], target: Target) -> tuple[str, ...]:
    """Return a note if calls of the size, or else of usual sizes, do not use the files."""
    laws = (taken_sizes(artefact.program.header, target.profile) for artefact in artefacts)
    found = dict.fromkeys(text for law in laws if (text := unused(law, target.size)))
    return tuple(f"{text}; the library's own algorithm serves the others" for text in found)


def warnings(artefacts: tuple[Artefact, ...]) -> tuple[str, ...]:
    """Return the warnings of verification on all files, each once.

    Files of two call modes often share one, where only the numbers of threadblocks differ. That
    each serves one mode alone is no fault of files that serve both together.
    """
    told: dict[str, str] = {}
    modes = {artefact.mode for artefact in artefacts}
    for finding in (x for artefact in artefacts for x in artefact.report.findings):
        if finding.rule == _ONE_MODE and len(modes) > 1:
            continue
        text = f"{finding.rule}: {finding.message} (`colsynth explain {finding.rule}`)"
        told.setdefault(_PLACE.sub(r"\1", text), text)
    return tuple(told.values())
