"""The answer of ``colsynth compile``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

from colsynth.cli.members import asked_ranks
from colsynth.cli.streams import tell
from colsynth.cli.synthesize import nearness
from colsynth.units import format_size, plural

if TYPE_CHECKING:
    from rich.console import Console

    from colsynth.api import Compilation
    from colsynth.runtimes.limits import Usage

_TELLING = 0.005
"""Least share of the time for which a limit is named."""

_SIZES = ("chunk", "channel", "threadblock", "step")


def show(summary: dict[str, Any], done: Compilation, console: Console) -> None:
    """Print the figures as a small table."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    modes = " and ".join(summary["modes"]).replace("both", "in-place and out-of-place")
    rows = {
        "schedule": f"{summary['collective']}{asked_ranks(done.problem)} on {summary['topology']}",
        "runtime": f"{summary['runtime']}, {summary['protocol']}, {modes}",
        "algorithm": " ".join([summary["algorithm"], *_settings(summary["settings"])]),
        **_of_schedule(summary),
        **_of_prediction(summary),
        "size": ", ".join(_sizes(summary)),
        "messages": f"{done.taken()}; the library runs others itself",
        "limits": "\n".join(_lines_of_limits(done.limits())),
        "verified": "yes",
    }
    for name, value in rows.items():
        table.add_row(name, value)
    for path in summary["files"]:
        table.add_row("file", path)
    console.print(table)


def _lines_of_limits(limits: tuple[Usage, ...]) -> Iterator[str]:
    """Yield the use of every limit, a few to a line, without repetitions."""
    pairs = zip((None, *limits[:-1]), limits, strict=True)
    told = [
        item
        for before, item in pairs
        if not (item.advisory and before is not None and item.limit == before.limit)
    ]
    for first in range(0, len(told), 4):
        some = told[first : first + 4]
        yield ", ".join(f"{item.title} {item.used} of {item.limit}" for item in some)


def _of_schedule(summary: dict[str, Any]) -> dict[str, str]:
    """Return the rows of the schedule's figures; there may be none."""
    rows = {"transfers": f"as -a {summary['algorithm']} has them"}
    if summary["trees"] is not None:
        rows = _of_trees(summary)
    elif summary["time_us"] is not None:
        rows = _of_time(summary)
    if summary["algbw_gb_per_s"] is None:
        return rows
    reached, bound = (f"{summary[name]:.3f}" for name in ("algbw_gb_per_s", "bound_gb_per_s"))
    near = nearness if summary["bound_proven"] else _near_trees
    return {**rows, "links": f"{reached} GB/s, {near(summary['gap'], bound)}"}


def _near_trees(gap: float, bound: str) -> str:
    """Return text for the distance from a rate that other schedules may beat."""
    if gap > 0:
        return f"{100 * gap:.2f} % from the best trees known {bound}"
    return f"no faster trees are known: {bound}"


def _sizes(summary: dict[str, Any]) -> Iterator[str]:
    """Yield the figures of a program; rounds have no channels, threadblocks and steps."""
    for word in ("chunk", "round") if "rounds" in summary else _SIZES:
        yield plural(summary[f"{word}s"], word)


def _settings(settings: dict[str, Any]) -> Iterator[str]:
    """Yield the options that differ from the algorithm's defaults."""
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield f"{name}={_in_runs(text) if name == 'segments' else text}"


def _in_runs(sizes: str) -> str:
    """Return sizes such as ``1-1-1-1-2`` as ``4x1-2``: there may be hundreds."""
    runs = ((size, sum(1 for _ in same)) for size, same in groupby(sizes.split("-")))
    return "-".join(f"{many}x{size}" if many > 1 else size for size, many in runs)


def _of_prediction(summary: dict[str, Any]) -> dict[str, str]:
    """Return the rows of the predicted bandwidths, the largest message first."""
    points = [(p, format_size(p["size_bytes"])) for p in reversed(summary["predicted"])]
    if not points:
        return {}
    rows = {"predicted": [f"{p['algbw_gb_per_s']:.4g} GB/s at {size}" for p, size in points]}
    rows["at most"] = [
        f"{p['most_gb_per_s']:.4g} GB/s at {size} ({p['binds']})"
        for p, size in points
        if "binds" in p
    ]
    ranked = sorted(summary["limited_by"].items(), key=lambda pair: -pair[1])
    rows["limited by"] = [f"{name} {share:.0%}" for name, share in ranked if share >= _TELLING]
    return {name: ", ".join(parts).replace("%", " %") for name, parts in rows.items() if parts}


def _of_trees(summary: dict[str, Any]) -> dict[str, str]:
    height = f"height {summary['max_height']} at most, {summary['mean_height']:.2f} on average"
    if summary["trees_per_gpu"] is None:
        return {"trees": f"{summary['trees']} with {plural(summary['roots'], 'root')}, {height}"}
    different, whole = summary["different_trees"], summary["trees_per_gpu"]
    number = f"{whole} per GPU"
    if different < whole:
        number = f"{different} per GPU with weights that add up to {whole}"
    return {"trees": f"{number}, {height}"}


def _of_time(summary: dict[str, Any]) -> dict[str, str]:
    cut = f"{plural(summary['chunks_per_gpu'], 'chunk')} per GPU"
    times = f"{summary['time_us']:.6g} us, at least {summary['bound_us']:.6g} us are needed"
    return {"time": f"{times} ({summary['size_bytes']} bytes, {cut})"}


def show_times(seconds: dict[str, float]) -> None:
    """Print the seconds of every pass on stderr."""
    for name, value in seconds.items():
        tell(f"{value:10.4f} s  {name}")
