"""Byte ranges: every size once, and no better plan exists."""

from __future__ import annotations

from itertools import product
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
    row = st.tuples(*[TIMES] * count)
    measured = tuple(
        Measured(plan(f"forest{i}"), draw(row)) for i in range(draw(st.integers(0, 3)))
    )
    return Offer(measured, draw(row), draw(st.integers(1, 2)))


def excess(offer, place, seconds):
    """Return how far a time is behind the best, beyond the tolerance, in 1e-9; a twin."""
    rows = [*(m.seconds for m in offer.measured), offer.library]
    best = min((row[place] for row in rows if row[place] is not None), default=None)
    known = seconds is not None and best is not None
    loss = round(1e9 * log(seconds / best)) if known else 10**15
    return max(loss - round(1e9 * log(1 + TOLERANCE)), 0)


def every_plan(offer):
    """Yield (excess, segments with a file) of every way to serve the sizes, by brute force."""
    count = len(offer.library)
    for owners in product([None, *range(len(offer.measured))], repeat=count):
        total, files = 0, 0
        for place, owner in enumerate(owners):
            row = offer.library if owner is None else offer.measured[owner].seconds
            if owner is not None and row[place] is None:
                break
            total += excess(offer, place, row[place])
            files += owner is not None and (place == 0 or owners[place - 1] != owner)
        else:
            yield total, files


def spent(plan, offer):
    total = 0
    for segment in plan.segments:
        for place in range(segment.first, segment.last + 1):
            row = segment.ranking[0].seconds if segment.ranking else offer.library
            total += excess(offer, place, row[place])
    return total


def check_cover(plan, offer):
    places = [p for s in plan.segments for p in range(s.first, s.last + 1)]
    assert places == list(range(len(offer.library)))
    assert plan.served == sum(bool(s.ranking) for s in plan.segments)
    for segment in plan.segments:
        for measured in segment.ranking:
            row = measured.seconds[segment.first : segment.last + 1]
            assert None not in row


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


@pytest.mark.parametrize("most", [0, 1])
def test_without_files_the_library_keeps_everything(most):
    ours = Measured(plan("forest"), (1.0,))
    (found,) = plan_ranges([Offer((ours,), (None,), 2)], most)
    assert [s.ranking for s in found.segments] == [()]
