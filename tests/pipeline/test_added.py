"""Passes that users add: their form, their names, and what they give."""

import sys
from dataclasses import dataclass, replace
from importlib import import_module, invalidate_caches
from typing import ClassVar

import pytest
from msgspec import structs

from colsynth import api
from colsynth.errors import DefectError, InputError, VerificationError
from colsynth.model import ChunkProgram, Problem
from colsynth.pipeline.manager import Pipeline
from colsynth.pipeline.registry import ADDED, ALGORITHMS, DEFAULT
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target
from colsynth.search.case import Case
from colsynth.search.plan import Plan
from colsynth.survey import SurveyCase

PROBLEM = api.make_problem(api.load_topology("ring:4"), "allgather")
LOWERING = "coalesce-chunks,order-transfers,place-slots,assign-threadblocks,spell-dependencies"


@dataclass(frozen=True)
class Mine:
    name: ClassVar[str] = "mine"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram
    choices: ClassVar[tuple[Choice, ...]] = (Choice("start", (0, 1)),)

    start: int = 0

    def run(self, value: Problem, target: Target) -> ChunkProgram:
        passes = Pipeline.from_text("pack-trees{trees=1},lower-forest")
        return passes.run(value, target)


@pytest.fixture(autouse=True)
def nothing_stays():
    yield
    for name in ADDED:
        del ALGORITHMS[name]
    ADDED.clear()
    DEFAULT.added.clear()


def fail(_self, _value, _target):
    raise KeyError("lost")


def changed(**values):
    """Return a class like `Mine` with other attributes, and without those that are None."""
    own = {**vars(Mine), **values}
    kept = ("__doc__", "__module__", "__annotations__", "name", "takes", "gives", "choices", "run")
    own = {key: own[key] for key in kept if own.get(key) is not None}
    return dataclass(frozen=True)(type("Mine", (), {**own, "start": values.get("start", 0)}))


def test_an_algorithm_that_was_added_is_compiled_and_compared():
    api.add_pass(Mine, "my-trees", f"mine,{LOWERING}")
    done = api.compile(PROBLEM, "msccl", algorithm="my-trees")
    assert done.algorithm == "my-trees"
    assert api.verify(done.artefacts[0].data, "msccl").ok
    found = api.compare(PROBLEM, [2**20], algorithms=["my-trees", "ring"])
    assert found.algbw("my-trees")[0] > 0


@pytest.mark.parametrize(
    ("pass_type", "said"),
    [
        (dict, "no frozen dataclass"),
        ([Mine], "type list is no pass: it is no class"),
        (dataclass(type("Loose", (), {"name": "mine"})), "no frozen dataclass"),
        (Mine(), r"type Mine is no pass: it is no class[\s\S]*give the class"),
        (changed(name=None), "name in kebab-case"),
        (changed(name="My_Pass"), "name in kebab-case"),
        (changed(takes=None), "a type that it takes"),
        (changed(gives="Forest"), "a type that it gives"),
        (changed(run=None), r"run\(self, value, target\)"),
        (changed(run=lambda _self, value: value), r"run\(self, value, target\)"),
        (changed(choices=[1]), "tuple of Choice"),
        (changed(choices=(Choice("stop"),)), "'stop', which is none of its options"),
        (changed(name="build-ring"), "colsynth has the pass 'build-ring' already"),
    ],
)
def test_a_class_that_is_no_pass_is_refused(pass_type, said):
    with pytest.raises(InputError, match=f"CS225.*{said}"):
        api.add_pass(pass_type)
    assert not DEFAULT.added


def test_options_that_text_cannot_spell_are_refused():
    @dataclass(frozen=True)
    class Half(Mine):
        share: float = 0.5

    with pytest.raises(InputError, match=r"CS225.*cannot have the type .*float"):
        api.add_pass(Half)


@pytest.mark.parametrize(
    ("algorithm", "pipeline", "code"),
    [
        ("ring", f"mine,{LOWERING}", "CS225"),
        ("auto", f"mine,{LOWERING}", "CS225"),
        ("My trees", f"mine,{LOWERING}", "CS225"),
        ("", f"mine,{LOWERING}", "CS225"),
        ("my-trees", None, "CS217"),
        (None, f"mine,{LOWERING}", "CS217"),
        ("my-trees", "mine,order-transfres", "CS202"),
        ("my-trees", "mine,order-transfers", "CS205"),
    ],
)
def test_an_algorithm_that_cannot_be_leaves_nothing_behind(algorithm, pipeline, code):
    with pytest.raises(InputError) as caught:
        api.add_pass(Mine, algorithm, pipeline)
    found = caught.value.diagnostic
    assert found.code == code
    where = "pipeline" if code in ("CS202", "CS205") else None  # the others have no text to show
    assert (found.span and found.span.file) == where
    assert not DEFAULT.added
    assert not ADDED


def test_a_class_of_the_registry_that_cannot_be_loaded_is_named():
    for place, said in (("nowhere:Mine", "No module named"), ("colsynth:Mine", "no attribute")):
        registry = replace(DEFAULT, places={"mine": place})
        with pytest.raises(InputError, match=f"CS225.*'mine' cannot be loaded: .*{said}"):
            Pipeline.from_text("mine", registry)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"target": 4}, "target must be a rank from 0 to 3"),
        ({"source": -1}, "source must be a rank from 0 to 3"),
        ({"chunk": 4}, "chunks must be from 0 to 3"),
        ({"count": 0}, "one chunk or more"),
        ({"after": (10**6,)}, "earlier transfers only"),
        ({"after": (0,)}, "only for transfers into its source"),
        ({"source": None}, "must be integers"),
        ({"chunk": 2**70}, "must be integers"),
        ({"after": None}, "must be integers"),
        (None, "holds no transfers"),
    ],
)
def test_transfers_that_cannot_be_are_named_before_a_kernel_follows_them(broken, said):
    def run(self, value, target):
        program = Mine.run(self, value, target)
        first, *rest = program.transfers
        bad = () if broken is None else (structs.replace(rest[-1], **broken),)
        return replace(program, transfers=(first, *rest, *bad) if bad else ())

    api.add_pass(changed(run=run))
    with pytest.raises(DefectError, match=f"(?s)CS902.*'mine'.*{said}"):
        api.compile(PROBLEM, "msccl", passes=f"mine,{LOWERING}")


def test_a_program_that_delivers_too_little_names_the_rank():
    def run(self, value, target):
        program = Mine.run(self, value, target)
        needed = {earlier for transfer in program.transfers for earlier in transfer.after}
        last = max(set(range(len(program.transfers))) - needed)
        assert last == len(program.transfers) - 1
        return replace(program, transfers=program.transfers[:-1])

    api.add_pass(changed(run=run), "my-trees", f"mine,{LOWERING}")
    with pytest.raises(VerificationError, match=r"(?s)CS230.*B01: rank [0-3]: "):
        api.compile(PROBLEM, "msccl", passes=f"mine,{LOWERING}")
    with pytest.raises(DefectError, match=r"(?s)CS904.*B01: rank [0-3]: "):
        api.compile(PROBLEM, "msccl", algorithm="my-trees", level=0)


def test_an_exception_says_where_it_was_raised():
    api.add_pass(changed(run=fail))
    with pytest.raises(DefectError, match=r"(?s)CS901.*KeyError.*raised in fail, test_added.py:"):
        api.compile(PROBLEM, "msccl", passes=f"mine,{LOWERING}")


def test_every_choice_of_a_pass_is_tried_also_where_two_are_of_one_option():
    def proposing(name):
        def propose(_basis):
            asked.add(name)
            return ()

        return propose

    asked = set()
    choices = (
        Choice("start", propose=proposing("first")),
        Choice("start", propose=proposing("second"), label="again"),
    )
    api.add_pass(changed(choices=choices), "my-trees", f"mine,{LOWERING}")
    api.compile(PROBLEM, "msccl", algorithm="my-trees", size=2**20)
    assert asked == {"first", "second"}


def test_a_pass_that_is_added_again_replaces_the_former():
    api.add_pass(changed(run=fail), "my-trees", f"mine,{LOWERING}")
    with pytest.raises(DefectError, match="CS901"):
        api.compile(PROBLEM, "msccl", algorithm="my-trees", level=0)
    api.add_pass(Mine, "my-trees", f"mine,{LOWERING}")
    assert api.compile(PROBLEM, "msccl", algorithm="my-trees", level=0).verified


PASS = """
from dataclasses import dataclass
from typing import ClassVar

from colsynth.model import ChunkProgram, Problem
{imports}

@dataclass(frozen=True)
class Theirs:
    name: ClassVar[str] = "theirs"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = ChunkProgram

    start: int = 0

    def run(self, value, target):
        return {call}
"""


def keys_after(folder, monkeypatch, files, change):
    """Return the keys of a plan with a pass in a user's module, twice and after a change."""
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(folder)
    module = next(iter(files)).removesuffix(".py")
    case = Case(PROBLEM, "msccl", (2**20,))
    plan = Plan("ring", "Simple", f"theirs,{LOWERING}")
    found = []
    for text in ({}, {}, change):
        for name, line in text.items():
            (folder / name).write_text(f"{(folder / name).read_text()}\n{line}\n")
        for name in [x for x in sys.modules if x.partition(".")[0] in (module, "helping")]:
            monkeypatch.delitem(sys.modules, name)
        invalidate_caches()
        api.add_pass(import_module(module).Theirs)
        found.append(case.key(plan))
    return found


HELPED = {
    "helped_pass.py": PASS.format(imports="from helping import lists", call="lists.made(value)"),
    "helping/__init__.py": "from .tables import SCALE",
    "helping/lists.py": "def made(value):\n    from . import late\n    return late.made(value)",
    "helping/late.py": "made = str",
    "helping/tables.py": "SCALE = 1",
}


@pytest.mark.parametrize("changed_file", list(HELPED))
def test_measurements_in_a_journal_are_those_of_this_version_of_a_pass(
    changed_file, tmp_path, monkeypatch
):
    """Of its module, and of all of the user's that this one imports."""
    first, again, other = keys_after(tmp_path, monkeypatch, HELPED, {changed_file: "x = 1"})
    assert first == again != other


def test_packages_that_a_pass_names_are_read_but_not_imported(tmp_path, monkeypatch):
    """One that it imports where it needs it may have no GPU here, or take long."""
    files = {
        "aware_pass.py": PASS.format(
            imports="def later():\n    from helping.deep import lists", call="later()"
        ),
        "helping/__init__.py": "raise RuntimeError('no GPU here')",
        "helping/deep.py": "lists = 1",
    }
    for changed_file in ("helping/__init__.py", "helping/deep.py"):
        first, again, other = keys_after(tmp_path, monkeypatch, files, {changed_file: "x = 1"})
        assert first == again != other
        assert "helping" not in sys.modules


def test_a_pass_is_told_from_others_of_its_module():
    case, plan = Case(PROBLEM, "msccl", (2**20,)), Plan("ring", "Simple", f"mine,{LOWERING}")

    def scaled(factor):
        return changed(run=lambda *_: factor)

    keys = []
    for one in (Mine, changed(run=fail), changed(start=1), scaled(1), scaled(2)):
        api.add_pass(one)
        assert case.key(plan) == case.key(plan)
        keys.append(case.key(plan))
    assert len(set(keys)) == len(keys)


def test_a_pass_made_again_from_the_same_functions_is_the_same():
    """Addresses differ, as they do in another process."""
    case, plan = Case(PROBLEM, "msccl", (2**20,)), Plan("ring", "Simple", f"mine,{LOWERING}")

    def helped(factor):
        def scale(number, again=None, *, by=factor):
            return scale(number, again) * by if again else number

        return changed(run=lambda _, problem, call=scale, *, also=scale: also(call(problem)))

    keys = []
    for factor in (1, 1, 2):
        api.add_pass(helped(factor))
        keys.append(case.key(plan))
    assert keys[0] == keys[1] != keys[2]


def test_a_pass_without_a_file_is_the_same_as_no_other():
    case, plan = Case(PROBLEM, "msccl", (2**20,)), Plan("ring", "Simple", f"mine,{LOWERING}")
    api.add_pass(changed(__module__="typed_in"))
    assert case.key(plan) != case.key(plan)


def test_a_survey_of_another_version_of_a_pass_is_another_one():
    api.add_pass(Mine, "my-trees", f"mine,{LOWERING}")
    case = SurveyCase(PROBLEM, ("links",), algorithm="my-trees")
    before = case.identity()
    assert case.identity() == before
    api.add_pass(changed(run=fail), "my-trees", f"mine,{LOWERING}")
    assert case.identity() != before
