"""How results of ``colsynth run`` are shown: the table of nccl-tests, and what is stuck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from colsynth.cli._common import ruled_table
from colsynth.simulate.points import bus_factor

if TYPE_CHECKING:
    from rich.console import Console

    from colsynth.execute.choose import Choice
    from colsynth.execute.job import Outcome

_UNKNOWN = "N/A"
"""As nccl-tests says it without checks (-c 0)."""

_SHOWN = 24
"""Waiting threadblocks, or leftovers, that are listed; --json names all."""


def show_run(
    console: Console, library: str, dtype: str, name: str, choice: Choice, outcomes: list[Outcome]
) -> None:
    """Print the results of one file.

    Parameters
    ----------
    console : Console
    library : str
        The backend.
    dtype : str
        Of the elements, as nccl-tests calls it.
    name : str
        Of the file.
    choice, outcomes
        What `colsynth.execute` decided and found.
    """
    runtime = choice.profile.name
    if choice.refused is not None:
        console.print(f"{name}: not executed: {choice.refused}", soft_wrap=True)
        return
    header = choice.header
    what = "a custom collective" if choice.reading.custom else header.collective.value
    head = f"{name}: {what} of {header.ranks} ranks over {library}, as {runtime} runs it"
    console.print(head, soft_wrap=True)
    for fault in choice.faults:
        console.print(f"note: {runtime} objects: {fault}", soft_wrap=True)
    _show_table(console, library, dtype, choice, outcomes)
    law = choice.taken(1)
    for outcome in outcomes:
        mode = "in place" if outcome.in_place else "out of place"
        where = f"{outcome.size} bytes, {mode}"
        if not law.min_bytes <= outcome.size <= (law.max_bytes or outcome.size):
            console.print(f"note: {runtime} does not select the file for {outcome.size} bytes")
        _show_stuck(console, where, outcome)
    if choice.reading.custom:
        console.print("nothing was compared: a custom collective has no agreed result")


def _show_table(
    console: Console, library: str, dtype: str, choice: Choice, outcomes: list[Outcome]
) -> None:
    served = [mode for mode in (False, True) if any(o.in_place is mode for o in outcomes)]
    heads = ["size (B)", "count", "type", "root"]
    for mode in served:
        name = "in place" if mode else "out of place"
        heads += [f"{name}\ntime (us)", "algbw (GB/s)", "busbw (GB/s)", "#wrong"]
    table = ruled_table(*heads, f"{library}'s own\ntime (us)", right=slice(None))
    for column in table.columns:
        column.no_wrap, column.vertical = True, "bottom"
    for size in dict.fromkeys(outcome.size for outcome in outcomes):
        modes = {o.in_place: o for o in outcomes if o.size == size}
        first = next(iter(modes.values()))
        timed = [o for o in modes.values() if o.seconds is not None]
        own = [o.library_seconds for o in timed if o.library_seconds is not None]
        cells = [str(size), str(first.count), dtype, _root(first, choice)]
        for mode in served:
            cells += _half(modes[mode], choice)
        table.add_row(*cells, f"{min(own) * 1e6:.1f}" if own else "-")
    console.print(table)


def _root(outcome: Outcome, choice: Choice) -> str:
    """Return the root as nccl-tests prints it; results tell it, so not where none was compared."""
    if outcome.root is not None:
        return str(outcome.root)
    rooted = choice.header.collective.rooted and not outcome.custom
    return _UNKNOWN if rooted else "-1"


def _half(outcome: Outcome, choice: Choice) -> tuple[str, str, str, str]:
    """Return time, bandwidths and wrong elements of one mode."""
    if outcome.late or outcome.stuck:
        return "-", "-", "-", "late" if outcome.late else "stuck"
    wrong = _UNKNOWN if outcome.wrong is None else str(outcome.wrong)
    if not outcome.seconds:
        return "-", "-", "-", wrong
    algbw = outcome.size / outcome.seconds / 1e9
    busbw = algbw * bus_factor(choice.header.collective, choice.header.ranks)
    return f"{outcome.seconds * 1e6:.1f}", f"{algbw:.3f}", f"{busbw:.3f}", wrong


def _show_stuck(console: Console, where: str, outcome: Outcome) -> None:
    """Print what waits for what, and what was left over."""
    if outcome.library_wrong:
        text = f"the library's own collective has {outcome.library_wrong} wrong elements"
        console.print(f"{where}: {text}")
    if outcome.left:
        rest = f" and {len(outcome.left) - 3} more" if len(outcome.left) > 3 else ""
        console.print(f"{where}: {'; '.join(outcome.left[:3])}{rest}", soft_wrap=True)
    if not outcome.stuck:
        return
    why = "the time was over; these" if outcome.late else "no rank can go on; these"
    console.print(f"{where}: {why} threadblocks wait:")
    table = ruled_table("rank", "threadblock", "at", "waits for")
    for entry in outcome.stuck[:_SHOWN]:
        block = entry["threadblock"]
        cells = (entry["rank"], "-" if block is None else block, entry["step"] or "-")
        table.add_row(*map(str, cells), entry["waits"])
    console.print(table)
    if len(outcome.stuck) > _SHOWN:
        console.print(f"and {len(outcome.stuck) - _SHOWN} more; --json lists them")
