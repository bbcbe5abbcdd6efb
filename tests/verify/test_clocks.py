"""Which steps of real programs are ordered, beside sets of everything that came before."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from colsynth import api
from colsynth.runtimes import profile
from colsynth.verify.clocks import Past
from colsynth.verify.execute import execute
from colsynth.verify.table import S, tabulate
from colsynth.verify.units import resolve
from tests.reference.precedence import pasts
from tests.verify.programs import ALL


@cache
def _compiled(collective):
    machine, runtime = COMPILED[collective]
    problem = api.make_problem(api.load_topology(machine), collective)
    return api.compile(problem, runtime, several=False, trees="1", level=0).artefacts[0].program


COMPILED = {"allreduce": ("dgx-a100", "msccl"), "reduce-scatter": ("dgx-a100", "rccl")}
"""Machine and runtime of programs beside those that are written by hand."""


@pytest.mark.parametrize("name", [*sorted(ALL), *COMPILED])
@pytest.mark.parametrize("weak_sends", [False, True])
def test_pairs_of_steps_are_ordered_exactly_where_something_orders_them(name, weak_sends):
    program = ALL.get(name) or _compiled(name)
    units = resolve(tabulate(program))
    table = units.table
    run = execute(units, depth=profile("msccl").fifo_calls["Simple"], group=1, tiles=1)
    block, ordinal = table.threadblock.tolist(), table.ordinal.tolist()
    weak = ((table.op == S) & weak_sends).tolist()
    causes = [found.tolist() for found in np.split(units.cause, units.wait_first[1:-1])]
    before = pasts(run.order.tolist(), block, causes, units.match.tolist(), weak)
    ran = run.order[:: max(1, len(run.order) // 150)].tolist()
    pairs = [(a, b) for b in ran for a in ran if block[a] != block[b]]
    earlier, later = np.array(pairs, dtype=np.int64).reshape(-1, 2).T.copy()
    past = Past(units, run.order)
    found = set(past.unordered(earlier, later, weak_sends=weak_sends).tolist())
    latest = {
        b: {block[s]: ordinal[s] for s in sorted(before[b], key=ordinal.__getitem__)} for b in ran
    }
    for number, (a, b) in enumerate(pairs):
        known = latest[b].get(block[a], -1) >= ordinal[a]
        assert (number in found) != known, (name, table.name(a), table.name(b))
