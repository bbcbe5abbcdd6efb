"""``colsynth show``: what a schedule file does, in the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from colsynth.cli._common import JsonOption, answer_console, emit_json, ruled_table
from colsynth.cli.simulate import AnyRuntimeOption
from colsynth.cli.streams import require_one_stdin
from colsynth.cli.verify import read_schedule
from colsynth.errors import Diagnostic, InputError
from colsynth.units import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.tree import Tree

    from colsynth.model import Gpu, ThreadblockProgram
    from colsynth.simulate import Source
    from colsynth.verify.moves import Branch, Trees

_CELLS = 32
"""Rows of the matrix; ranks of larger files share rows."""
_TREES = 4
"""Different trees that are drawn."""
_SHADES = "·░▒▓█"
_SENDS, _RECEIVES = ("s", "rcs", "rrs", "rrcs"), ("r", "rcs", "rrs", "rrc", "rrcs")
_REDUCES = ("rrs", "rrc", "rrcs", "re")
_COLUMNS = (
    "threadblocks", "channels", "longest", "steps", "sends", "receives", "reductions", "copies",
)  # fmt: skip

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Schedule file, e.g. allreduce.xml; - for stdin.", show_default=False
    ),
]
RootOption = Annotated[
    int | None,
    typer.Option(
        "--root",
        metavar="RANK",
        help="Rank whose trees are drawn, e.g. 3.",
        show_default="the root of the collective, else 0",
    ),
]


AnywayOption = Annotated[
    bool, typer.Option("--anyway", help="Draw also a file that verify calls bad.")
]


def show(
    file: FileArgument,
    runtime: AnyRuntimeOption = None,
    root: RootOption = None,
    anyway: AnywayOption = False,
    json: JsonOption = False,
) -> None:
    """Draw what a schedule file does: who sends to whom, trees of a rank, steps per rank."""
    from colsynth.api.files import refuse_bad
    from colsynth.verify.moves import moves, trees_of

    require_one_stdin(file)
    subject, data = read_schedule(file)
    source = _read(data, runtime, subject)
    report = source.report
    if not anyway:
        refuse_bad(report)
    source.require_executable()
    program = source.threadblocks
    root = int(dict(report.facts).get("root", 0)) if root is None else root
    if not 0 <= root < program.header.ranks:
        phrase = f"--root cannot be {root}: the file is for ranks 0 to {program.header.ranks - 1}"
        raise InputError(Diagnostic("CS211", phrase))
    trees = trees_of(moves(program), program.header, root)
    if json:
        emit_json(_as_object(source, root, trees))
    else:
        _show(answer_console(), source, root, trees)


def _read(data: bytes, runtime: str | None, subject: str) -> Source:
    """Return the file as read by the given runtime, or by the first that can run it."""
    from colsynth.runtimes import profile
    from colsynth.simulate import find_runtimes, read_source

    if runtime is None:
        return find_runtimes(data, subject)[0]
    return read_source(data, profile(runtime), subject)


def _loads(program: ThreadblockProgram) -> list[list[int]]:
    """Return the chunks that every rank sends to every other, by row and column."""
    ranks = program.header.ranks
    found = [[0] * ranks for _ in range(ranks)]
    for gpu in program.gpus:
        for block in gpu.threadblocks:
            if block.send is not None:
                sent = (step.count for step in block.steps if step.op in _SENDS)
                found[gpu.rank][block.send] += sum(sent)
    return found


def _counts(gpu: Gpu) -> tuple[int, ...]:
    """Return the figures of a rank, as `_COLUMNS` names them."""
    steps = Counter(step.op for block in gpu.threadblocks for step in block.steps)
    kinds = (_SENDS, _RECEIVES, _REDUCES, ("cpy",))
    return (
        len(gpu.threadblocks),
        len({block.channel for block in gpu.threadblocks}),
        max((len(block.steps) for block in gpu.threadblocks), default=0),
        steps.total(),
        *(sum(steps[op] for op in kind) for kind in kinds),
    )


def _as_object(source: Source, root: int, trees: dict[Trees, int]) -> dict[str, Any]:
    header = source.program.header
    return {
        "file": source.subject,
        "runtime": source.profile.name,
        "collective": header.collective.value,
        "ranks": header.ranks,
        "chunks": header.chunks,
        "sent_chunks": _loads(source.threadblocks),
        "root": root,
        "trees": [
            {
                "chunks": chunks,
                "phases": [
                    {"inwards": phase.inwards, "edges": _edges(phase.tree)} for phase in found
                ],
            }
            for found, chunks in trees.items()
        ],
        "ranks_steps": [
            {"rank": gpu.rank, **dict(zip(_COLUMNS, _counts(gpu), strict=True))}
            for gpu in source.threadblocks.gpus
        ],
    }


def _edges(branch: Branch) -> list[list[int]]:
    """Return (upper, lower) rank of every edge of a tree, the upper edges first."""
    own = [[branch.rank, low.rank] for low in branch.below]
    return own + [edge for low in branch.below for edge in _edges(low)]


def _show(console: Console, source: Source, root: int, trees: dict[Trees, int]) -> None:
    header = source.program.header
    console.print(
        f"{source.subject}: {header.collective} of {header.ranks} ranks, "
        f"{plural(header.chunks, 'chunk')}, {header.protocol}",
        soft_wrap=True,
    )
    _show_matrix(console, _loads(source.threadblocks))
    _show_trees(console, root, trees)
    _show_steps(console, source.threadblocks.gpus)


def _show_matrix(console: Console, loads: Sequence[Sequence[int]]) -> None:
    """Print a shaded cell for every pair of ranks, or of groups of neighbouring ranks."""
    wide = -(-len(loads) // _CELLS)
    groups = [range(a, min(a + wide, len(loads))) for a in range(0, len(loads), wide)]
    cells = [[sum(loads[a][b] for a in row for b in column) for column in groups] for row in groups]
    most = max(map(max, cells))
    names = [_span(group) for group in groups]
    width = max(2, *(len(name) + 1 for name in names)) if wide == 1 else 2
    console.print(f"\nchunks from row to column; █ is up to {most}, each shade a quarter less")
    left = max(map(len, names))
    if wide == 1:
        console.print(" " * left + "".join(f"{name:>{width}}" for name in names))
    for name, row in zip(names, cells, strict=True):
        marks = (_SHADES[-(-4 * load // most) if most else 0] for load in row)
        console.print(
            f"{name:>{left}}" + "".join(f"{mark * (width - 1):>{width}}" for mark in marks)
        )


def _show_trees(console: Console, root: int, trees: dict[Trees, int]) -> None:
    """Print the trees of a rank that serve most chunks."""
    from rich.tree import Tree

    if not trees:
        console.print(f"\nno chunk begins or is complete first at rank {root}")
    for phases, chunks in list(trees.items())[:_TREES]:
        console.print(f"\n{plural(chunks, 'chunk')} of rank {root}")
        for told, tree in _told(phases):
            drawn = Tree(told)
            _draw(drawn, (tree,))
            console.print(drawn)
    if len(trees) > _TREES:
        rest = sum(list(trees.values())[_TREES:])
        kinds = plural(len(trees) - _TREES, "other tree")
        console.print(f"\n{plural(rest, 'more chunk')} of rank {root} on {kinds}")


def _told(phases: Trees) -> Iterator[tuple[str, Branch]]:
    """Yield what happens on each tree; a tree that is walked both ways occurs once."""
    if len({frozenset(map(tuple, _edges(phase.tree))) for phase in phases}) < len(phases):
        yield "reduced from below, then copied from above", phases[0].tree
        return
    for phase in phases:
        yield "reduced from below" if phase.inwards else "copied from above", phase.tree


def _draw(drawn: Tree, branches: Sequence[Branch]) -> None:
    """Add branches to a tree; ranks without branches of their own share a line."""
    from colsynth.verify.contents import ranks

    for branch in branches:
        if branch.below:
            _draw(drawn.add(f"rank {branch.rank}"), branch.below)
    leaves = sum({1 << branch.rank for branch in branches if not branch.below})
    if leaves:
        drawn.add(ranks(leaves))


def _show_steps(console: Console, gpus: Sequence[Gpu]) -> None:
    """Print the figures of every rank; equal neighbours share a row."""
    table = ruled_table("rank", *_COLUMNS, right=slice(1, None))
    rows: list[tuple[list[int], tuple[int, ...]]] = []
    for gpu in gpus:
        counts = _counts(gpu)
        if rows and rows[-1][1] == counts:
            rows[-1][0].append(gpu.rank)
        else:
            rows.append(([gpu.rank], counts))
    for ranks, counts in rows:
        table.add_row(_span(ranks), *map(str, counts))
    console.print(table)


def _span(ranks: Sequence[int]) -> str:
    return str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]}-{ranks[-1]}"
