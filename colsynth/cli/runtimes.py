"""``colsynth runtimes``: the supported runtimes, with their limits and sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table

if TYPE_CHECKING:
    from colsynth.runtimes import Profile

_LIMITS = (
    ("threadblocks per GPU", "max_threadblocks"),
    ("  aimed at", "resident_threadblocks"),
    ("steps per threadblock", "max_steps"),
    ("channels", "max_channels"),
    ("  on the best hardware", "hard_channels"),
    ("threadblocks per channel", "max_threadblocks_per_channel"),
    ("XML nodes per rank", "max_xml_nodes"),
    ("chunks per step", "max_count"),
    ("tiles per chunk", "max_tiles"),
    ("largest chunk offset", "max_offset"),
    ("largest id waited for", "max_wait_target"),
    ("files per job", "max_files"),
)


def runtimes(json: JsonOption = False) -> None:
    """List the runtimes with their limits; --json adds the source of every number."""
    from colsynth.runtimes import profiles

    found = profiles()
    if json:
        emit_json({"runtimes": [_as_object(profile) for profile in found]})
    else:
        _show(found)


def _as_object(profile: Profile) -> dict[str, Any]:
    from dataclasses import fields

    values = {field.name: getattr(profile, field.name) for field in fields(profile)}
    values["collectives"] = {str(k): word for k, word in profile.collectives.items()}
    values["exports"] = dict(profile.exports)
    return values


def _show(found: tuple[Profile, ...]) -> None:
    table = ruled_table("", *(profile.name for profile in found))
    table.add_row("version", *(profile.version for profile in found))
    table.add_row("steps", *(" ".join(profile.ops) for profile in found))
    table.add_row("modes per file", *("both" if p.both_modes else "one" for p in found))
    for title, field in _LIMITS:
        values = (getattr(profile, field) for profile in found)
        table.add_row(title, *("-" if value is None else str(value) for value in values))
    operations = (str(profile.plans.get("operations", "-")) for profile in found)
    table.add_row("operations per threadblock", *operations)
    for protocol in ("Simple", "LL", "LL128"):
        calls = (
            f"{p.fifo_calls[protocol]} / {p.tile_bytes[protocol]}"
            if protocol in p.fifo_calls
            else "-"
            for p in found
        )
        table.add_row(f"{protocol}: FIFO calls / tile bytes", *calls)
    console = answer_console()
    console.print(table)
    for profile in found:
        console.print(f"{profile.name}: {profile.title}")
        for note in (*profile.warnings, *profile.notes):
            console.print(f"  - {note}", soft_wrap=True)
