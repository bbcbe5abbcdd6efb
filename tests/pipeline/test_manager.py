from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colsynth.api import load_topology, make_problem
from colsynth.errors import DefectError, InputError, LimitError
from colsynth.model import Forest, Problem, TimedSchedule
from colsynth.pipeline.clock import Clock
from colsynth.pipeline.manager import Pipeline
from tests.pipeline.toys import REGISTRY, AddWord, Draft, JoinWords, Text
from tests.verify.timed_schedules import random_schedule

ADD = st.builds(
    AddWord,
    word=st.text(max_size=5),
    times=st.integers(0, 4),
    upper=st.booleans(),
    at_most=st.none() | st.integers(0, 9),
    style=st.sampled_from(["plain", "loud", 3]),
)


def build(text):
    return Pipeline.from_text(text, REGISTRY)


@given(st.lists(ADD | st.just(JoinWords()), min_size=1).map(tuple))
def test_every_pipeline_builds_again_from_its_text(passes):
    pipeline = Pipeline(passes)
    assert build(str(pipeline)) == pipeline


def test_only_options_that_differ_from_the_default_are_printed():
    assert str(build("add-word{times=1,at-most=4,word=more},join-words")) == (
        "add-word{at-most=4},join-words"
    )


@pytest.mark.parametrize(
    ("text", "code", "column", "said"),
    [
        ("add-wrod", "CS202", 1, "did you mean 'add-word'"),
        ("join-words,add-word{tims=2}", "CS203", 21, "did you mean 'times'"),
        ("join-words{x=1}", "CS203", 12, "takes no options"),
        ("add-word{times=1,times=2}", "CS203", 18, "given twice"),
        ("add-word{style=quiet}", "CS204", 10, "plain | loud | int"),
    ],
)
def test_wrong_names_and_values_are_diagnosed_at_their_column(text, code, column, said):
    with pytest.raises(InputError) as caught:
        build(text)
    found = caught.value.diagnostic
    assert (found.code, found.span.column) == (code, column)
    assert said in str(found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("join-words,join-words", "'join-words' takes Draft, 'join-words' gives Text"),
        ("add-word", "the end takes Text, 'add-word' gives Draft"),
    ],
)
def test_a_chain_that_does_not_fit_is_refused(text, said):
    with pytest.raises(InputError, match=said) as caught:
        build(text).check(Draft, Text)
    assert caught.value.diagnostic.code == "CS205"


def test_a_chain_that_fits_passes_the_check():
    build("add-word,add-word,join-words").check(Draft, Text)


def test_run_gives_the_value_and_tells_of_each_pass(target):
    seen, clock = [], Clock()
    result = build("add-word{word=b},join-words").run(
        Draft(("a",)), target, clock, lambda *told: seen.append(told)
    )
    assert result == Text("a b")
    assert seen == [(1, "add-word", Draft(("a", "b"))), (2, "join-words", Text("a b"))]
    assert list(clock.seconds()) == ["add-word", "join-words"]


def test_progress_names_each_pass_before_it_runs(target):
    told = []
    listening = replace(target, progress=lambda *what: told.append(what))
    head, tail = build("add-word,add-word,join-words").split_after(Draft)
    tail.run(head.run(Draft(()), listening), listening)
    assert told == [("add-word", 0, 2), ("add-word", 1, 2), ("join-words", 2, 3)]


def test_time_of_a_pass_that_fails_is_counted(target):
    clock = Clock()
    with pytest.raises(LimitError):
        build("add-word,add-word,misbehave{how=limit}").run(Draft(()), target, clock)
    assert list(clock.seconds()) == ["add-word", "misbehave"]


def test_the_two_parts_of_a_split_do_what_the_whole_does(target):
    whole = build("add-word{word=b},add-word{word=c},join-words")
    head, tail = whole.split_after(Draft)
    assert (len(head.passes), tail.first) == (2, 3)
    middle = head.run(Draft(()), target)
    assert tail.run(middle, target) == whole.run(Draft(()), target)


def test_an_exception_in_a_pass_is_a_defect_that_names_it(target):
    with pytest.raises(DefectError, match=r"'misbehave' failed: KeyError: 'lost'") as caught:
        build("misbehave").run(Draft(()), target)
    assert caught.value.diagnostic.code == "CS901"


def test_a_ctrl_c_inside_a_kernel_is_no_defect(target):
    with pytest.raises(KeyboardInterrupt):
        build("misbehave{how=interrupt}").run(Draft(()), target)


def test_a_result_of_the_wrong_type_is_a_defect(target):
    with pytest.raises(DefectError, match="gave a Text") as caught:
        build("misbehave{how=type}").run(Draft(()), target)
    assert caught.value.diagnostic.code == "CS902"


def test_memory_that_is_not_there_is_no_defect(target):
    with pytest.raises(InputError, match="'misbehave' needs more memory") as caught:
        build("misbehave{how=memory}").run(Draft(()), target)
    assert caught.value.diagnostic.code == "CS308"
    assert caught.value.diagnostic.notes == ("it asked for 8,000,000.0 GB at once",)
    assert "a machine with more memory" in caught.value.diagnostic.help


def test_errors_meant_for_the_user_pass_through(target):
    with pytest.raises(LimitError):
        build("misbehave{how=limit}").run(Draft(()), target)


def test_a_forest_that_is_not_what_it_claims_is_a_defect(target):
    problem = make_problem(load_topology("ring:4"), "allgather")
    honest = Pipeline.from_text("pack-trees{trees=1}").run(problem, target)
    phase = honest.phases[0]
    faster = replace(phase, unit_bandwidth=phase.unit_bandwidth * 2)

    @dataclass(frozen=True)
    class PackTrees:
        name: ClassVar[str] = "pack-trees"
        takes: ClassVar[type] = Problem
        gives: ClassVar[type] = Forest

        def run(self, value, target):
            return replace(honest, phases=(faster,))

    with pytest.raises(DefectError, match="not what it claims") as caught:
        Pipeline((PackTrees(),)).run(problem, target)
    assert caught.value.diagnostic.code == "CS903"


def test_a_timed_schedule_is_replayed_after_the_pass_that_gives_it(target):
    right = random_schedule(1)
    wrong = replace(right, ticks=right.ticks + 1)
    results = []

    @dataclass(frozen=True)
    class MatchChunks:
        name: ClassVar[str] = "match-chunks"
        takes: ClassVar[type] = Problem
        gives: ClassVar[type] = TimedSchedule

        def run(self, value, target):
            return results[-1]

    clock = Clock()
    results.append(right)
    assert Pipeline((MatchChunks(),)).run(right.problem, target, clock) is right
    assert list(clock.seconds()) == ["match-chunks", "check-timed"]
    results.append(wrong)
    with pytest.raises(DefectError, match="timed schedule that is not what it claims") as caught:
        Pipeline((MatchChunks(),)).run(right.problem, target)
    assert caught.value.diagnostic.code == "CS903"
    assert caught.value.diagnostic.notes[0].startswith("CS510: ")
