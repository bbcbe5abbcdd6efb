import ast
import json
import subprocess
import sys
from pathlib import Path

import colsynth
from colsynth.cli.main import run

PACKAGE = Path(colsynth.__file__).parent
KERNELS = "colsynth.kernels"
PROBE = """
import importlib, json, sys
from colsynth import api
api.warm()
never = []
for place in json.load(sys.stdin):
    module, name = place.split(":")
    kernel = getattr(importlib.import_module(module), name)
    if hasattr(kernel, "overloads") and not kernel.overloads:
        never.append(place)
print(json.dumps(never))
"""


def used_kernels():
    """Return what the package takes from `colsynth.kernels`, as "module:name"."""
    return sorted(
        {
            f"{node.module}:{alias.name}"
            for path in PACKAGE.rglob("*.py")
            if path.parent.name != "kernels"
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{KERNELS}.")
            for alias in node.names
        }
    )


def test_warm_compiles_every_kernel_that_the_package_calls():
    places = used_kernels()
    assert len(places) > 20
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        capture_output=True,
        text=True,
        check=False,
        input=json.dumps(places),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


def test_the_command_says_when_it_is_through(monkeypatch, capsys):
    told = []
    monkeypatch.setattr("colsynth.api.warm", told.append)
    assert run(["warm"]) == 0
    assert len(told) == 1
    assert capsys.readouterr().out.startswith("all kernels are compiled")
