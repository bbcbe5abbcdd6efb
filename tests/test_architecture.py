"""The rules of the house, read off the source: who imports whom, and what nobody does."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from colsynth.cli.explain import explanations
from colsynth.pipeline.registry import DEFAULT

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "colsynth"

LADDER = [
    {"text"},
    {"errors", "units", "gc_pause"},
    {"model", "kernels", "writing", "reading"},
    {"runtimes", "store"},
    {"topology", "verify", "simulate"},
    {"synthesis", "lowering"},
    {"pipeline", "jobs"},
    {"search"},
    {"compile"},
    {"tuning", "survey"},
    {"api"},
    {"cli"},
    {"__main__"},
]
"""Rooms from the ground up: each may import from the rungs below it and from itself."""

ALLOWED_BESIDE = {("units", "errors"), ("simulate", "topology")}
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


MODULES = {module_of(path): path for path in FILES}


@cache
def imports(path):
    """Return (line, module, whether under TYPE_CHECKING or in a function) of our own modules."""
    tree = parsed(path)
    late = {id(n) for top in ast.walk(tree) if is_late(top) for n in ast.walk(top)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                known = name if name in MODULES else node.module
                found.append((node.lineno, known, id(node) in late))
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, id(node) in late) for alias in node.names]
    return found


def is_late(node):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    return isinstance(node, ast.If) and ast.unparse(node.test) in (
        "TYPE_CHECKING",
        "typing.TYPE_CHECKING",
    )


def ours(path):
    return [x for x in imports(path) if x[1].split(".")[0] == "colsynth"]


def test_every_room_has_its_place_on_the_ladder():
    rooms = {room_of(module) for module in MODULES} - {None, "explanations"}
    assert rooms <= set(RUNG), "a new room needs a rung in LADDER"


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_go_down_the_ladder_at_every_depth(path):
    room = room_of(module_of(path))
    wrong = [
        f"line {line}: {name}"
        for line, name, _ in ours(path)
        if (other := room_of(name)) is not None
        and other != room
        and (room, other) not in ALLOWED_BESIDE
        and (room is None or RUNG[other] >= RUNG[room])
    ]
    assert not wrong


def test_the_ladder_test_sees_imports_inside_functions_and_type_checking_blocks(tmp_path):
    path = tmp_path / "late.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from colsynth.cli import main\n"
        "def f():\n    import colsynth.api\n"
    )
    assert [(name, late) for _, name, late in ours(path)] == [
        ("colsynth.cli.main", True),
        ("colsynth.api", True),
    ]


def test_verification_shares_nothing_with_what_it_checks():
    shared = [
        f"{module_of(path)}: {name}"
        for path in FILES
        if room_of(module_of(path)) in ("synthesis", "lowering", "verify")
        for _, name, _ in ours(path)
        if {room_of(module_of(path)), room_of(name)}
        in ({"verify", "synthesis"}, {"verify", "lowering"})
    ]
    assert not shared


def test_modules_do_not_import_each_other_in_circles():
    below = {
        module: {name for _, name, late in ours(path) if not late and name != module}
        for module, path in MODULES.items()
    }
    done, open_ = set(), []

    def visit(module):
        assert module not in open_, " -> ".join([*open_[open_.index(module) :], module])
        if module in done or module not in below:
            return
        open_.append(module)
        for other in sorted(below[module]):
            visit(other)
        done.add(open_.pop())

    for module in sorted(below):
        visit(module)


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_star_imports_no_print_outside_cli_no_assert_outside_kernels(path):
    room = room_of(module_of(path))
    wrong = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            wrong.append(f"line {node.lineno}: star import")
        if isinstance(node, ast.Assert) and room != "kernels":
            wrong.append(f"line {node.lineno}: assert")
        called = getattr(node, "func", None)
        if isinstance(called, ast.Name) and called.id == "print" and room != "cli":
            wrong.append(f"line {node.lineno}: print")
    assert not wrong


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


HEAVY = "numba networkx lxml numpy yaml msgspec"


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


def test_every_code_that_can_be_raised_is_explained():
    raised = {
        node.value
        for path in FILES
        for node in ast.walk(parsed(path))
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
