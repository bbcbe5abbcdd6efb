"""Maximum concurrent flow as a linear program, solved by HiGHS.

Flows from the same GPU are one commodity, since what leaves it may be shared out among
its targets at will: a variable for every (GPU, link) and one for the rate. HiGHS works in
doubles, so its answers are proposals; `alltoall` proves what it prints from the prices.

Source: F. Shahrokhi and D. Matula, J. ACM 37 (1990); J. Huangfu and J. Hall, HiGHS,
Math. Prog. Comp. 10 (2018).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.solver import silent

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Concurrent:
    """Every GPU sends to every other at the same rate.

    Parameters
    ----------
    nodes : int
    tail, head : int64 (L,)
    capacity : float64 (L,)
        About one, so that the solver's tolerances mean what they say.
    gpus : int64 (N,)
    """

    nodes: int
    tail: Ints
    head: Ints
    capacity: Floats
    gpus: Ints


def solve(problem: Concurrent) -> tuple[float, Floats] | None:
    """Return the largest rate of every pair and the price of every link, (L,).

    None where the solver gave up.
    """
    import highspy

    # The interior point method needs seconds where the simplex method needs minutes; its
    # crossover to a vertex makes the prices small whole multiples of each other.
    highs = silent(solver="ipm")
    start, index, entries = _matrix(problem)
    links, gpus = len(problem.tail), len(problem.gpus)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(start) - 1, links + gpus * problem.nodes
    lp.col_cost_ = np.append(np.zeros(lp.num_col_ - 1), -1.0)
    lp.col_lower_ = np.zeros(lp.num_col_)
    lp.col_upper_ = np.full(lp.num_col_, highspy.kHighsInf)
    conserved = np.zeros(gpus * problem.nodes)
    lp.row_lower_ = np.append(np.full(links, -highspy.kHighsInf), conserved)
    lp.row_upper_ = np.append(problem.capacity, conserved)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = start, index, entries
    highs.passModel(lp)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    prices = np.maximum(-np.array(highs.getSolution().row_dual[:links]), 0)
    return -float(highs.getInfo().objective_function_value), prices


def _matrix(problem: Concurrent) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Return the program's columns (start, row, entry): flows, then the rate.

    Rows are the capacity of every link, then for every source and node that what comes in
    less what goes out is the rate at other GPUs and nothing at switches; at the source
    itself the row stays empty.
    """
    links, gpus, nodes = len(problem.tail), len(problem.gpus), problem.nodes
    source, link = (x.ravel() for x in np.indices((gpus, links)))
    useful = problem.head[link] != problem.gpus[source]
    source, link = source[useful], link[useful]
    column = np.arange(len(source))
    leaves = problem.tail[link] != problem.gpus[source]
    row_of = links + source * nodes
    own, other = (x.ravel() for x in np.indices((gpus, gpus)))
    own, other = own[own != other], other[own != other]
    rate_rows = links + own * nodes + problem.gpus[other]
    rows = (link, row_of + problem.head[link], (row_of + problem.tail[link])[leaves], rate_rows)
    columns = (column, column, column[leaves], np.full(len(rate_rows), len(source)))
    signs = (1.0, 1.0, -1.0, -1.0)
    entries = np.concatenate([np.full(len(x), s) for x, s in zip(rows, signs, strict=True)])
    every = np.concatenate(columns)
    order = np.argsort(every, kind="stable")
    start = np.zeros(len(source) + 2, np.int32)
    np.cumsum(np.bincount(every, minlength=len(source) + 1), out=start[1:])
    return start, np.concatenate(rows)[order].astype(np.int32), entries[order]
