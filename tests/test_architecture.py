"""The rules of the house, read off the source: who imports whom, and what nobody does."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from colsynth.cli.codes import explanations
from colsynth.pipeline.registry import DEFAULT

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "colsynth"

LADDER = [
    {"text"},
    {"errors", "units", "gc_pause"},
    {"model", "kernels", "writing", "reading", "memory"},
    {"runtimes", "store", "logs"},
    {"topology", "verify"},
    {"cost"},
    {"sketches"},
    {"bounds"},
    {"synthesis", "lowering", "simulate", "cabling"},
    {"pipeline", "jobs", "execute", "export"},
    {"search"},
    {"compile"},
    {"tuning", "survey", "calibrate", "ranks"},
    {"api", "torch"},
    {"report"},
    {"cli"},
    {"__main__"},
]
"""Rooms from the ground up: each may import from the rungs below it and from itself."""

ALLOWED_BESIDE = {("units", "errors")}
"""Imports within one rung."""

FILES = sorted(PACKAGE.rglob("*.py"))
RUNG = {room: height for height, rooms in enumerate(LADDER) for room in rooms}


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


@cache
def parsed(path):
    return ast.parse(path.read_text("utf-8"), str(path))


@cache
def nodes(path):
    """Return every node of a module; to walk all of them takes longer than to parse."""
    return tuple(ast.walk(parsed(path)))


MODULES = {module_of(path): path for path in FILES}


@cache
def imports(path):
    """Return (line, module) of all imports of ours, also in functions and for types alone."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [(node.lineno, x if x in MODULES else node.module) for x in names]
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
    return [x for x in found if x[1].split(".")[0] == "colsynth"]


def test_every_room_has_its_place_on_the_ladder():
    rooms = {room_of(module) for module in MODULES} - {None, "explanations"}
    assert rooms <= set(RUNG), "a new room needs a rung in LADDER"


def test_imports_go_down_the_ladder_at_every_depth():
    wrong = [
        f"{module_of(path)}, line {line}: {name}"
        for path in FILES
        for line, name in imports(path)
        if not goes_down(room_of(module_of(path)), room_of(name))
    ]
    assert not wrong


def goes_down(room, other):
    if other is None or other == room or (room, other) in ALLOWED_BESIDE:
        return True
    return room is not None and RUNG[other] < RUNG[room]


def test_imports_inside_functions_and_for_types_alone_are_seen(tmp_path):
    path = tmp_path / "late.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from colsynth.cli import main\n"
        "def f():\n    import colsynth.api\n"
    )
    assert [name for _, name in imports(path)] == ["colsynth.cli.main", "colsynth.api"]


def test_verification_shares_nothing_with_what_it_checks():
    shared = [
        f"{module_of(path)}: {name}"
        for path in FILES
        if room_of(module_of(path)) in ("bounds", "synthesis", "lowering", "verify")
        for _, name in imports(path)
        if {room_of(module_of(path)), room_of(name)}
        in ({"verify", "bounds"}, {"verify", "synthesis"}, {"verify", "lowering"})
    ]
    assert not shared


def test_modules_do_not_import_each_other_in_circles():
    arrows = [(module, name) for module, path in MODULES.items() for _, name in imports(path)]
    graph = nx.DiGraph((near, far) for near, far in arrows if near != far)
    circles = [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1]
    assert not circles


LONGEST_MODULE, LONGEST_FUNCTION = 350, 60
"""Lines; docstrings of functions are not counted."""

LONG_KERNELS = {
    # One loop over events; every part of it would have to be handed all of its thirty arrays.
    "colsynth.kernels.execution.execute",
}
"""Functions that are longer, and why; kernels alone."""


def test_modules_and_functions_are_short():
    modules = {module_of(path) for path in FILES if lines_of(path) > LONGEST_MODULE}
    functions = {
        f"{module_of(path)}.{node.name}"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef) and length(node) > LONGEST_FUNCTION
    }
    assert {name for name in functions if name.startswith("colsynth.kernels.")} >= LONG_KERNELS
    assert (modules, functions - LONG_KERNELS) == (set(), set())


def lines_of(path):
    return path.read_text("utf-8").count("\n")


def length(node):
    """Return the lines of a function without its docstring."""
    return span(node) - (span(node.body[0]) if ast.get_docstring(node) is not None else 0)


def span(node):
    return node.end_lineno - node.lineno + 1


def test_no_star_imports_no_print_outside_cli_no_assert_outside_kernels():
    wrong = [
        f"{module_of(path)}, line {node.lineno}: {what}"
        for path in FILES
        for node in nodes(path)
        if (what := unwanted(node, room_of(module_of(path)))) is not None
    ]
    assert not wrong


def unwanted(node, room):
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        return "star import"
    if isinstance(node, ast.Assert) and room != "kernels":
        return "assert"
    called = getattr(node, "func", None)
    if isinstance(called, ast.Name) and called.id == "print" and room != "cli":
        return "print"
    return None


@pytest.mark.parametrize("name", DEFAULT.names())
def test_name_file_and_class_of_a_pass_agree(name):
    module, _, attribute = DEFAULT.places[name].partition(":")
    words = name.split("-")
    assert module.rpartition(".")[2] == "_".join(words)
    assert attribute == "".join(word.capitalize() for word in words)
    assert DEFAULT.load(name).name == name


def test_every_pass_file_is_in_the_registry():
    places = set(DEFAULT.places.values())
    found = {
        f"{module_of(path)}:{node.name}"
        for path in FILES
        if room_of(module_of(path)) in ("synthesis", "lowering")
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and {"takes", "gives"} <= annotated(node)
    }
    assert found == places


def annotated(node):
    return {
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }


HEAVY = "numba networkx lxml numpy yaml msgspec scipy jinja2 vl_convert"


@pytest.mark.parametrize(
    "code",
    ["import colsynth", "from colsynth.cli.main import run; assert run(['--help']) == 0"],
    ids=["import", "help"],
)
def test_nothing_heavy_is_loaded_before_it_is_used(code):
    probe = (
        f"{code}\nimport sys; sys.exit(' '.join(set('{HEAVY}'.split()) & set(sys.modules)) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_a_refused_request_loads_no_kernels():
    words = ["compile", "dgx-a100", "-c", "allgather", "-r", "msccl"]
    words += ["-a", "nothing", "-o", "x.xml"]
    probe = (
        f"from colsynth.cli.main import run; assert run({words}) == 2\n"
        "import sys; assert 'numba' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0
    assert "CS213" in done.stderr


def test_every_code_that_can_be_raised_is_explained():
    raised = {
        node.value
        for path in FILES
        for node in nodes(path)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"CS\d{3}", node.value)
    }
    assert len(raised) > 50
    assert sorted(raised - set(explanations())) == []


def test_every_dependency_has_a_lower_and_an_upper_bound():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for dependency in project["dependencies"]:
        assert re.fullmatch(r"[a-z]+>=[0-9.]+,<[0-9.]+", dependency), dependency
