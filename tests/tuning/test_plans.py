"""Bundles of plans: what the registration script selects is what the manifest says."""

import importlib.util
import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from colsynth import api, topology
from colsynth.cli.main import run
from colsynth.errors import InputError
from colsynth.runtimes import profile, variables
from colsynth.runtimes.plans.register import DEFAULTS, default_names
from tests.tuning.loading import environment_of

SIZES = (4096, 2**20, 2**26)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """Folders of equal bundles for two versions."""
    found = {}
    for runtime in ("mscclpp", "mscclpp@0.8"):
        value = topology.load("mesh:2x2")
        made = api.tune(value, ["allreduce"], runtime, SIZES, algorithms=("forest",), budget=6)
        found[runtime] = tmp_path_factory.mktemp("bundles") / "bundle"
        api.write_bundle(made, found[runtime])
    return found


def manifest(place):
    return json.loads((place / "manifest.json").read_text())


def plans_of(place):
    """Return the plans of a bundle without names, and their upper ends as spelt and as told."""
    plans, ends = [], []
    for entry in manifest(place)["files"]:
        plan = json.loads((place / entry["path"]).read_text())
        ends.append((plan.pop("max_message_size"), entry["max_bytes"]))
        plans.append({**plan, "name": ""})
    return plans, ends


def test_versions_differ_in_how_plans_are_found_and_in_whether_ends_are_exclusive(bundles):
    (plans, ends), (others, exclusive) = (plans_of(place) for place in bundles.values())
    assert plans == others
    assert all(spelt == told for spelt, told in ends)
    assert exclusive == [(told + 1, told) for _, told in ends]
    older = bundles["mscclpp@0.8"]
    assert environment_of(older)["MSCCLPP_EXECUTION_PLAN_DIR"] == str(older / "schedules")
    assert not (older / "register_plans.py").exists()
    newer = environment_of(bundles["mscclpp"])
    assert "MSCCLPP_EXECUTION_PLAN_DIR" not in newer
    assert newer["PYTHONPATH"] == str(bundles["mscclpp"])
    files = [str(bundles["mscclpp"] / e["path"]) for e in manifest(bundles["mscclpp"])["files"]]
    assert newer["COLSYNTH_PLANS"].split(":") == files


def script_of(place):
    spec = importlib.util.spec_from_file_location("register_plans", place / "register_plans.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_selector_takes_what_the_manifest_says(bundles, monkeypatch):
    place = bundles["mscclpp"]
    script, told = script_of(place), manifest(place)["files"]
    registered = {}
    builder = SimpleNamespace(
        add_algorithm_builder=lambda algorithm: registered.update({algorithm.id: algorithm}),
        set_algorithm_selector=lambda selector: registered.update(selector=selector),
    )
    library = ModuleType("mscclpp")
    library.AlgorithmCollectionBuilder = lambda: builder
    library.ExecutionPlan = lambda path, rank: (path, rank)

    class Algorithm(SimpleNamespace):
        Constraint = staticmethod(lambda world, per_node: (world, per_node))

    library.Algorithm = Algorithm
    monkeypatch.setitem(sys.modules, "mscclpp", library)
    paths = [str(place / entry["path"]) for entry in told]
    monkeypatch.setenv("COLSYNTH_PLANS", ":".join(paths))
    script.register(2, 4, 4)
    selector = registered.pop("selector")
    assert {a.execution_plan[0] for a in registered.values()} == set(paths)
    assert {a.constraint for a in registered.values()} == {(4, 4)}
    with pytest.raises(ValueError, match="not for 8 ranks"):
        script.register(2, 8, 8)
    for entry in told:
        for size in (entry["min_bytes"], entry["multiple_bytes"] * 8193, entry["min_bytes"] + 2):
            for mode, served in (("InPlace", "inplace"), ("OutOfPlace", "outofplace")):
                request = SimpleNamespace(collective="allreduce", message_size=size, world_size=4)
                request.buffer_mode = f"CollectiveBufferMode.{mode}"
                fits = [
                    e["path"]
                    for e in told
                    if e[served]
                    and e["min_bytes"] <= size <= e["max_bytes"]
                    and size % e["multiple_bytes"] == 0
                ]
                found = selector({"allreduce": registered}, request)
                expected = None if not fits else str(place / fits[0])
                assert (None if found is None else found.execution_plan[0]) == expected


def test_names_of_the_default_directory_exist_for_few_shapes():
    assert default_names(16, [8, 8]) == DEFAULTS[16, 8]
    assert default_names(16, [4, 12]) == default_names(8, [8]) == ()


def test_env_refuses_plans_that_serve_the_same_calls(bundles, tmp_path, capsys):
    place = bundles["mscclpp"] / "schedules"
    path = sorted(place.glob("*-inplace-*.json"))[0]
    twin = tmp_path / "twin.json"
    twin.write_bytes(path.read_bytes())
    with pytest.raises(InputError) as caught:
        variables([path, twin], profile("mscclpp"))
    assert caught.value.diagnostic.code == "CS504"
    assert run(["env", str(twin), "-r", "mscclpp"]) == 0
    assert capsys.readouterr().out == f"export COLSYNTH_PLANS={twin}\n"
    assert run(["env", str(twin), "-r", "mscclpp@0.8"]) == 0
    assert capsys.readouterr().out == f"export MSCCLPP_EXECUTION_PLAN_DIR={tmp_path}\n"
    (tmp_path / "README").write_text("no plan")
    assert run(["env", str(twin), "-r", "mscclpp@0.8"]) == 2
