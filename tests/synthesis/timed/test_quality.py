"""How near schedules come to what cannot be beaten: the promises of timed schedules."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from colsynth.bounds.flows import flow_bound
from colsynth.bounds.trees import bound
from colsynth.model import Collective, Problem
from colsynth.runtimes.target import Context
from colsynth.synthesis.timed.match_chunks import MatchChunks
from colsynth.topology.load import load
from colsynth.verify import check_timed

GIGABYTE = 10**9


def scheduled(topology, collective="allgather", **options):
    """Return a schedule found with default options but for those given."""
    problem = Problem(topology, Collective(collective))
    schedule = MatchChunks(**options).run(problem, Context())
    assert schedule.seconds >= schedule.bound.seconds
    return schedule


@pytest.mark.parametrize("side", [8, 16, 23])
def test_meshes_meet_the_ingress_of_their_corners(side):
    schedule = scheduled(load(f"mesh:{side}x{side}"))
    # A corner has two links for what all others send.
    link, rounds = schedule.problem.topology.links[0], -(-(side**2 - 1) // 2)
    assert schedule.seconds == rounds * (link.latency + schedule.chunk_bytes / link.bandwidth)
    assert schedule.seconds - schedule.bound.seconds == (rounds - 1) * link.latency
    assert schedule.bound.reason.startswith("ingress of gpu")


@pytest.mark.slow
def test_a_mesh_of_2304_meets_the_bound():
    assert scheduled(load("mesh:48x48", latency="0 s")).gap == 0


@pytest.mark.parametrize(
    "spec",
    ["torus:8x8", "torus:16x16", "torus:4x4x4", "hypercube:6", "hypercube:7", "hypercube:8"],
)
def test_tori_and_hypercubes_are_within_one_chunk_of_the_bound(spec):
    schedule = scheduled(load(spec))
    link = schedule.problem.topology.links[0]
    one = link.latency + schedule.chunk_bytes / link.bandwidth
    rounds = schedule.seconds / one
    assert schedule.seconds - schedule.bound.seconds <= one + rounds * link.latency


@pytest.mark.parametrize(
    ("spec", "boxes", "chunks"),
    [
        ("dgx-a100", 2, 8),
        ("dgx-a100", 4, 16),
        ("mi250", 1, 16),
        ("mi250", 2, 16),
        ("ndv2", 1, 16),
        ("ndv2", 2, 16),
    ],
)
def test_machines_are_within_a_twentieth_of_the_cut(spec, boxes, chunks):
    schedule = scheduled(load(spec, nodes=boxes), size=GIGABYTE, chunks_per_gpu=chunks)
    check_timed(schedule)
    assert schedule.seconds <= Fraction(105, 100) * GIGABYTE / bound(schedule.problem).algbw


def uneven_mesh(side, seed):
    """Return a mesh with one link in five at half bandwidth and one in a hundred gone.

    Cables are slow or missing both ways.
    """
    topology = load(f"mesh:{side}x{side}")
    rng = random.Random(seed)
    cables = sorted({tuple(sorted((x.source, x.target))) for x in topology.links})
    gone = set(rng.sample(cables, len(cables) // 100))
    slow = set(rng.sample(cables, len(cables) // 5))

    def kept(link):
        half = tuple(sorted((link.source, link.target))) in slow
        return replace(link, bandwidth=link.bandwidth / 2) if half else link

    links = (x for x in topology.links if tuple(sorted((x.source, x.target))) not in gone)
    return replace(topology, links=tuple(map(kept, links)))


@pytest.mark.parametrize("side", [16, 20])
def test_uneven_meshes_are_within_a_twentieth_of_the_bound(side):
    topology = uneven_mesh(side, seed=side)
    assert len(topology.links) < len(load(f"mesh:{side}x{side}").links)
    schedule = scheduled(topology)
    check_timed(schedule)
    assert schedule.gap <= Fraction(5, 100)


@pytest.mark.parametrize(
    ("spec", "boxes"),
    [("dgx-a100", 1), ("dgx-a100", 2), ("ndv2", 1), ("ndv2", 2), ("torus:4x4", None)],
)
def test_alltoall_is_within_a_tenth_of_the_linear_program(spec, boxes):
    schedule = scheduled(load(spec, nodes=boxes), "alltoall", size=GIGABYTE, chunks_per_gpu=4)
    check_timed(schedule)
    best = flow_bound(schedule.problem)
    assert best.exact
    assert schedule.seconds <= Fraction(110, 100) * GIGABYTE / best.algbw


@pytest.mark.parametrize("spec", ["ring:4", "ring:8", "mesh:2x2", "mesh:4x4"])
def test_equal_ways_round_a_ring_are_shared(spec):
    """Half of the chunks for the GPU opposite go either way, so all links carry as many."""
    assert scheduled(load(spec), "alltoall", size=GIGABYTE, gap="none").gap == 0


@pytest.mark.parametrize(
    ("collective", "size", "most"), [("alltoall", 16384, "7e-6"), ("allgather", 16384, "4e-6")]
)
def test_small_chunks_share_the_latency_of_their_links(collective, size, most):
    """A kilobyte per pair or GPU takes 27 and 6 us where each chunk pays for itself."""
    machine = load("ndv2", nodes=2)
    together = scheduled(machine, collective, size=size).seconds
    assert together < Fraction(most)
    assert together < scheduled(machine, collective, size=size, gap="latency").seconds
