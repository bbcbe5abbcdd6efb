"""The script that registers plans with MSCCL++ 0.9 and later (contract 9.2, 9.4)."""

from __future__ import annotations

from collections.abc import Sequence

SCRIPT = "register_plans.py"
VARIABLE = "COLSYNTH_PLANS"
"""Paths of plans, separated by colons; the script reads it."""

_TEXT = '''\
"""Registers the plans of COLSYNTH_PLANS with MSCCL++ 0.9 or later.

Run it in every rank before the first communicator exists:

    import register_plans
    register_plans.register(rank, world_size, ranks_per_node)

A selector takes a plan only where collective, call mode and size fit and 16 bytes times its chunks
divide the message; all other calls go on to the library. Plans add: a job that reduces otherwise
(max, min, prod) sets MSCCLPP_FORCE_NCCL_FALLBACK_OPERATION for that collective. One communicator
per number of ranks: a plan object belongs to one rank number.
"""

import json
import os

ALIGNED = 16


def read_plans(paths):
    """Return (path, what the selector needs) of all plans, without reading their programs."""
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        first = plan["gpus"][0]
        found.append(
            {
                "path": path,
                "name": plan["name"],
                "collective": plan["collective"],
                "inplace": plan["inplace"],
                "min": plan["min_message_size"],
                "max": plan["max_message_size"],
                "multiple": ALIGNED * max(first["input_chunks"], first["output_chunks"]),
                "ranks": len(plan["gpus"]),
            }
        )
    return found


def chosen(plans, collective, size, inplace, ranks):
    """Return the name of the plan for a call, None where the library shall serve it."""
    for plan in plans:
        if (plan["collective"], plan["inplace"], plan["ranks"]) != (collective, inplace, ranks):
            continue
        if plan["min"] <= size <= plan["max"] and size % plan["multiple"] == 0:
            return plan["name"]
    return None


def register(rank, world_size, ranks_per_node):
    """Register the plans for this rank, and the selector."""
    import mscclpp

    plans = read_plans(filter(None, os.environ["@VARIABLE@"].split(":")))
    # Reduce-scatter in place is not told apart from out of place by this library; ranks would
    # choose differently and hang.
    plans = [plan for plan in plans if plan["collective"] != "reducescatter"]
    wrong = [plan["path"] for plan in plans if plan["ranks"] != world_size]
    if wrong:
        raise ValueError(f"not for {world_size} ranks: {wrong}")
    builder_of = getattr(mscclpp, "AlgorithmCollectionBuilder", None)
    builder = (builder_of or mscclpp.ext.AlgorithmCollectionBuilder)()
    constraint = mscclpp.Algorithm.Constraint(world_size, ranks_per_node)
    for plan in plans:
        program = mscclpp.ExecutionPlan(plan["path"], rank)
        builder.add_algorithm_builder(
            mscclpp.Algorithm(
                id=plan["name"], execution_plan=program, constraint=constraint, tags={}
            )
        )

    def selector(algorithms, request):
        mode = request.buffer_mode
        mode = str(mode() if callable(mode) else mode).rpartition(".")[2].replace("_", "").upper()
        inplace, ranks = mode == "INPLACE", request.world_size
        name = chosen(plans, request.collective, request.message_size, inplace, ranks)
        return None if name is None else algorithms.get(request.collective, {}).get(name)

    builder.set_algorithm_selector(selector)
'''

DEFAULTS: dict[tuple[int, int], tuple[tuple[str, ...], ...]] = {
    (16, 8): (
        ("allreduce_2nodes_1K_64K.json",),
        ("allreduce_2nodes_128K_2M.json", "allreduce_2nodes_64K_2M.json"),
    ),
    (32, 8): (("allreduce_4nodes_1K_64K.json",),),
    (64, 4): (("allreduce_4nodes_128K_2M.json",),),
}
"""By ranks and ranks per node, the names that 0.9 and later load from ``$MSCCLPP_CACHE_DIR``.

One tuple per plan; where it has several names, versions look for different ones.
"""


def script() -> str:
    """Return the text of the script."""
    return _TEXT.replace("@VARIABLE@", VARIABLE)


def default_names(ranks: int, per_node: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """Return under which names the library loads plans by itself; none for most shapes."""
    nodes = set(per_node)
    return DEFAULTS.get((ranks, nodes.pop()), ()) if len(nodes) == 1 else ()
