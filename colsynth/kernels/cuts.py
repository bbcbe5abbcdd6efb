"""The exact optimum of spanning-tree collectives: the least ratio over cuts.

For capacities c, root weights w and GPUs V_c the kernel minimises c(leaving S) / w(S)
over node sets S that miss at least one GPU and hold weight, by Newton's method on
violated cuts: the current rate p/q is tested with one maximum flow per GPU (super
source -> root r with capacity w[r] * p, arcs scaled by q); a flow below w(V) * p exposes
a cut of smaller ratio, which becomes the rate. Rates only fall, so GPUs already passed
stay passed: about one flow per GPU in all, and each starts from the one before. Exact in
int64 while sum(capacity) * sum(weight) < 2**62, which callers check.

Theorem: the optimal allgather time is (M/N) max |S and V_c| / B+(S)
(Zhao et al., ForestColl, arXiv 2402.06787, section 4). Twin: tests/reference/flows.py.
"""

from __future__ import annotations

import numpy as np

from colsynth.kernels.compiled import njit
from colsynth.kernels.maxflow import (
    max_flow,
    reset,
    residual_index,
    send_on,
    source_side,
    with_returns,
)


@njit(cache=True, nogil=True)
def _cut_value(tail, head, capacity, inside):
    total = 0
    for i in range(tail.size):
        if inside[tail[i]] and not inside[head[i]]:
            total += capacity[i]
    return total


@njit(cache=True, nogil=True, allocates=True)
def _ingress_cut(n, tail, head, capacity, gpus, weight):
    """Best cut of the form everything-but-one-GPU: (p, q, inside)."""
    ingress = np.zeros(n, np.int64)
    for i in range(tail.size):
        ingress[head[i]] += capacity[i]
    total = weight.sum()
    best_p, best_q, best = np.int64(0), np.int64(0), -1
    for k in range(gpus.size):
        v = gpus[k]
        q = total - weight[v]
        if q > 0 and (best < 0 or ingress[v] * best_q < best_p * q):
            best_p, best_q, best = ingress[v], q, v
    inside = np.ones(n, np.bool_)
    inside[best] = False
    return best_p, best_q, inside


@njit(cache=True, nogil=True)
def smallest_cut_ratio(n, tail, head, capacity, gpus, weight):
    """Return (p, q, inside) with p / q the least ratio and `inside` a cut reaching it.

    Parameters
    ----------
    n : int
        Number of nodes.
    tail, head, capacity : int64 (m,)
        Arcs.
    gpus : int64 (k,)
        Nodes that must be reached, at least two.
    weight : int64 (n,)
        Weight of each node as a root, zero for nodes that are no roots.
    """
    p, q, inside = _ingress_cut(n, tail, head, capacity, gpus, weight)
    roots = np.nonzero(weight)[0]
    m = tail.size
    fed_tail = np.concatenate((tail, np.full(roots.size, n, np.int64)))
    fed_head = np.concatenate((head, roots))
    all_tail, all_head = with_returns(fed_tail, fed_head, n, gpus)
    scaled = np.zeros(all_tail.size, np.int64)
    first, after, to = residual_index(n + 1, all_tail, all_head)
    residual = np.empty(2 * scaled.size, np.int64)
    total = weight.sum()
    stale = True
    for k in range(gpus.size):
        while p > 0:
            if stale:
                for i in range(m):
                    scaled[i] = capacity[i] * q
                for i in range(roots.size):
                    scaled[m + i] = weight[roots[i]] * p
                reset(residual, scaled)
                stale = False
            flow = max_flow(first, after, to, residual, n, gpus[k], total * p)
            if flow == total * p:
                send_on(residual, fed_tail.size + k, flow)
                break
            stale = True
            inside = source_side(first, after, to, residual, n)[:n]
            p = _cut_value(tail, head, capacity, inside)
            q = np.int64(0)
            for r in roots:
                if inside[r]:
                    q += weight[r]
    return p, q, inside
