"""Byte ranges: every size once, and no better plan exists."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, product
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colsynth.search.measured import Measured
from colsynth.search.plan import Plan
from colsynth.tuning.ranges import TOLERANCE, Offer, plan_ranges

TIMES = st.one_of(st.none(), st.sampled_from([1.0, 1.01, 1.03, 1.5, 2.0, 4.0]))


def plan(name):
    return Plan(name, "Simple", "pack-trees")


@st.composite
def offers(draw, sizes=None):
    count = draw(st.integers(1, 4)) if sizes is None else sizes
    row, flags = st.tuples(*[TIMES] * count), st.tuples(*[st.booleans()] * count)
    measured = tuple(
        Measured(plan(f"forest{i}"), draw(row), usable=draw(flags), exact=draw(flags))
        for i in range(draw(st.integers(0, 3)))
    )
    return Offer(measured, draw(row), draw(st.integers(1, 2)))


def times(measured):
    """Return the times at the sizes whose calls use a file."""
    pairs = zip(measured.seconds, measured.exact, strict=True)
    return [time if taken else None for time, taken in pairs]


def answer(offer, owner, place):
    """Return who serves a size, and its time, where a plan owns the range: it or the library.

    What the library serves there may be slow for sizes near it, which use the file.
    """
    if owner is None:
        return None, offer.library[place]
    own, library = owner.seconds[place], offer.library[place]
    if own is None or owner.exact[place] or not owner.usable[place]:
        return owner, times(owner)[place] if owner.exact[place] else None
    return None, None if library is None else max(own, library)


def excess(offer, place, seconds):
    """Return how far a time is behind the best, beyond the tolerance, in 1e-9; a twin."""
    rows = [*map(times, offer.measured), offer.library]
    best = min((row[place] for row in rows if row[place] is not None), default=None)
    known = seconds is not None and best is not None
    loss = round(1e9 * log(seconds / best)) if known else 10**15
    return max(loss - round(1e9 * log(1 + TOLERANCE)), 0)


def every_plan(offer):
    """Yield (excess, segments with a file) of every way to serve the sizes, by brute force."""
    count = len(offer.library)
    for owners in product([None, *offer.measured], repeat=count):
        answers = [answer(offer, owner, place) for place, owner in enumerate(owners)]
        if any(who is not None and seconds is None for who, seconds in answers):
            continue
        runs = [list(run) for _, run in groupby(range(count), key=lambda place: owners[place])]
        files = [run for run in runs if owners[run[0]] is not None]
        if all(any(answers[place][0] is not None for place in run) for run in files):
            rows = enumerate(answers)
            yield sum(excess(offer, place, time) for place, (_, time) in rows), len(files)


def spent(plan, offer):
    total = 0
    for segment in plan.segments:
        for place in range(segment.first, segment.last + 1):
            owner = segment.ranking[0] if segment.ranking else None
            total += excess(offer, place, answer(offer, owner, place)[1])
    return total


def check_cover(plan, offer):
    places = [p for s in plan.segments for p in range(s.first, s.last + 1)]
    assert places == list(range(len(offer.library)))
    assert plan.served == sum(bool(s.ranking) for s in plan.segments)
    for segment in plan.segments:
        for measured in segment.ranking:
            span = range(segment.first, segment.last + 1)
            answers = [answer(offer, measured, place) for place in span]
            assert all(seconds is not None for who, seconds in answers if who)
            assert any(who for who, _ in answers)


@given(offers())
def test_without_a_limit_the_plan_loses_least_with_the_fewest_files(offer):
    (plan,) = plan_ranges([offer], None)
    check_cover(plan, offer)
    assert (spent(plan, offer), plan.served) == min(every_plan(offer))
    assert plan.excess == spent(plan, offer)


@given(offers(), offers(), st.integers(0, 4))
def test_collectives_share_the_files_that_a_job_may_load(one, other, most):
    plans = plan_ranges([one, other], most)
    used = sum(p.served * c.files for p, c in zip(plans, (one, other), strict=True))
    assert used <= most
    best = min(
        (first + second, a * one.files + b * other.files)
        for (first, a), (second, b) in product(every_plan(one), every_plan(other))
        if a * one.files + b * other.files <= most
    )
    for plan, offer in zip(plans, (one, other), strict=True):
        check_cover(plan, offer)
    assert (sum(map(spent, plans, (one, other))), used) == best


def test_a_file_within_the_tolerance_serves_its_neighbour_too():
    fast = Measured(plan("forest"), (1.0, 1.0))
    near = Measured(plan("ten"), (1.019, 0.99))
    far = Measured(plan("ring"), (1.021, 0.5))
    (found,) = plan_ranges([Offer((fast, near), (9.0, 9.0), 1)], None)
    assert [s.ranking[0] for s in found.segments] == [fast]
    (found,) = plan_ranges([Offer((fast, far), (9.0, 9.0), 1)], None)
    assert [s.ranking[0] for s in found.segments] == [fast, far]


def test_what_the_library_does_as_well_gets_no_file():
    ours = Measured(plan("forest"), (1.0, 1.0, 1.0))
    (found,) = plan_ranges([Offer((ours,), (5.0, 1.0, 1.0), 2)], None)
    assert [(s.first, s.last, bool(s.ranking)) for s in found.segments] == [(0, 2, True)]
    (found,) = plan_ranges([Offer((ours,), (1.01, 1.0, 1.0), 2)], None)
    assert [(s.first, s.last, bool(s.ranking)) for s in found.segments] == [(0, 2, False)]


def test_a_file_that_only_other_sizes_use_serves_nothing():
    """It may cover such a size beside one that it serves, and the library serves the calls."""
    ours = Measured(plan("forest"), (1.0,), usable=(True,), exact=(False,))
    (found,) = plan_ranges([Offer((ours,), (5.0,), 1)], None)
    assert [s.ranking for s in found.segments] == [()]
    beside = replace(ours, seconds=(1.0, 1.0, 1.0), usable=(True,) * 3, exact=(True, False, True))
    (found,) = plan_ranges([Offer((beside,), (5.0, 5.0, 5.0), 1)], None)
    assert [(s.first, s.last, bool(s.ranking)) for s in found.segments] == [(0, 2, True)]


@pytest.mark.parametrize("seconds", [None, 100.0])
@pytest.mark.parametrize("exact", [(True, False), (True, False, True)])
def test_a_file_covers_no_size_at_which_it_is_slower_than_the_library(seconds, exact):
    """Calls of that size do not use it, but those of sizes near it would."""
    row = tuple(1.0 if taken else seconds for taken in exact)
    usable, library = (True,) * len(row), (5.0,) * len(row)
    ours = Measured(plan("forest"), row, usable=usable, exact=exact)
    (found,) = plan_ranges([Offer((ours,), library, 1)], None)
    covered = [place for s in found.segments if s.ranking for place in range(s.first, s.last + 1)]
    assert covered == [place for place, taken in enumerate(exact) if taken]


def test_of_files_that_are_as_fast_one_is_taken_that_usual_sizes_use_too():
    fast = Measured(plan("ten"), (1.0,), usable=(False,), exact=(True,))
    broad = Measured(plan("forest"), (1.019,), usable=(True,), exact=(True,))
    slow = replace(broad, seconds=(1.021,))
    for other, best in ((broad, broad), (slow, fast)):
        (found,) = plan_ranges([Offer((fast, other), (9.0,), 1)], None)
        assert found.segments[0].ranking[0] == best


@pytest.mark.parametrize("most", [0, 1])
def test_without_files_the_library_keeps_everything(most):
    ours = Measured(plan("forest"), (1.0,))
    (found,) = plan_ranges([Offer((ours,), (None,), 2)], most)
    assert [s.ranking for s in found.segments] == [()]
