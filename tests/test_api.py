"""Problems as users ask for them."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from colsynth import api
from colsynth.cabling.request import Request, make_job
from colsynth.errors import InfeasibleError, InputError, LimitError, VerificationError
from colsynth.model import Collective, Demand

RING = api.load_topology("ring:8")
PLAIN = api.make_problem(RING, "allgather")
HALVES = ((0, 1, 2, 3), (4, 5, 6, 7))
_NO_FUNCTION = "CS200.*progress takes a function, not an object of type int"


def test_a_plain_problem():
    problem = api.make_problem(RING, "alltoall")
    assert (problem.collective, problem.root, problem.groups) == (Collective.ALLTOALL, None, ())
    assert problem.members == (tuple(range(8)),)


def test_groups_and_transit():
    problem = api.make_problem(RING, "allgather", groups=HALVES, transit=True)
    assert (problem.groups, problem.transit) == (HALVES, True)


def test_a_group_of_everybody_is_the_plain_problem():
    everybody = api.make_problem(RING, "allgather", groups=[range(8)], transit=True)
    assert everybody == api.make_problem(RING, "allgather")


@pytest.mark.parametrize("collective", ["broadcast", "reduce", "scatter", "gather"])
def test_the_root_is_a_place_in_every_group(collective):
    assert api.make_problem(RING, collective).root == 0
    assert api.make_problem(RING, collective, 7).root == 7
    assert api.make_problem(RING, collective, 3, groups=HALVES).root == 3
    with pytest.raises(InputError, match="no group has a member 4") as caught:
        api.make_problem(RING, collective, 4, groups=HALVES)
    assert caught.value.diagnostic.code == "CS211"


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_several_roots_have_equal_parts(collective):
    problem = api.make_problem(RING, collective, [6, 1])
    assert (problem.root, problem.has_several_roots) == (None, True)
    assert problem.shards == (0, 1, 0, 0, 0, 0, 1, 0)
    whole = api.make_problem(RING, collective, range(8))
    assert (whole.shards, whole.roots, whole.has_several_roots) == ((), tuple(range(8)), True)
    grouped = api.make_problem(RING, collective, [0, 1], groups=[[5, 3, 4]])
    assert grouped.shards == (0, 0, 0, 1, 0, 1, 0, 0)
    like = "allgather" if collective == "broadcast" else "reduce-scatter"
    assert api.bound(whole) == api.bound(api.make_problem(RING, like))
    assert api.pack(grouped, "optimal").gap == 0
    assert api.synthesize(whole).schedule.gap == 0


@pytest.mark.parametrize(
    ("collective", "root", "groups", "code"),
    [
        ("broadcast", {1: 2}, None, "CS210"),  # the keys alone would be read
        ("scatter", [0, 1], None, "CS217"),
        ("broadcast", [0, 1], HALVES, "CS217"),
        ("broadcast", [0, 0], None, "CS211"),
        ("broadcast", [0, 8], None, "CS211"),
        ("broadcast", [], None, "CS211"),
        ("allgather", [0, 1], None, "CS211"),
        ("broadcast", [0, 3], [[1, 2, 3]], "CS211"),
    ],
)
def test_roots_that_cannot_be(collective, root, groups, code):
    with pytest.raises(InputError) as caught:
        api.make_problem(RING, collective, root, groups=groups)
    assert caught.value.diagnostic.code == code


def test_shards_of_a_group_are_its_members_alone():
    shards = [0, 0, 4, 2, 0, 0, 0, 0]
    problem = api.make_problem(RING, "allgather", groups=[[3, 2]], shards=shards)
    assert (problem.roots, problem.weights) == ((3, 2), (1, 2))
    even = api.make_problem(RING, "allgather", groups=[[3, 2]], shards=[0, 0, 7, 7, 0, 0, 0, 0])
    assert even == api.make_problem(RING, "allgather", groups=[[3, 2]])
    with pytest.raises(InputError, match="is not in the group") as caught:
        api.make_problem(RING, "allgather", groups=[[3, 1]], shards=shards)
    assert caught.value.diagnostic.code == "CS137"


def test_a_communicator_is_a_group_by_itself():
    problem = api.make_problem(RING, "reduce", 1, groups=[[5, 4, 6]])
    (found,) = api.communicators(problem, "msccl")
    assert found.old_ranks == (5, 4, 6)
    inner = found.problem
    names = [inner.topology.nodes[node].name for node in inner.topology.ranks]
    assert (names, inner.root, inner.groups) == (["gpu5", "gpu4", "gpu6"], 1, ())
    assert len(inner.topology.links) == 4
    assert [RING.links[i].target for i in found.links] == [5, 4, 6, 5]


def test_other_questions_are_about_one_group():
    one = api.make_problem(RING, "allgather", groups=HALVES[:1])
    found = api.compare(one, [2**20], runtime="rccl", algorithms=["forest"])
    assert found.bound == api.bound(one).algbw
    for problem in (
        api.make_problem(RING, "allgather", groups=HALVES),
        api.make_problem(RING, "allgather", groups=HALVES[:1], transit=True),
    ):
        for ask in (lambda x: api.compare(x, [2**20]), api.survey):
            with pytest.raises(LimitError) as caught:
                ask(problem)
            assert caught.value.diagnostic.code == "CS404"


def test_a_group_in_parts_is_refused_with_what_helps():
    apart = api.make_problem(RING, "allgather", groups=[[0, 2]])
    for ask, advice in (
        (api.bound, "--transit"),
        (api.pack, "--transit"),
        (lambda x: api.compile(x, "rccl"), "into the group"),
    ):
        with pytest.raises(InfeasibleError, match="of the same group") as caught:
            ask(apart)
        assert advice in caught.value.diagnostic.help


def test_a_collective_of_one_s_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("version: 1\nchunks: [{held-by: [gpu0], wanted-by: [5], count: 2}]\n")
    for name in (None, "custom"):
        problem = api.make_problem(RING, name, custom=path)
        assert problem.collective is Collective.CUSTOM
        assert problem.demands == (Demand((0,), (5,), 2),)


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        ({"collective": None}, "which collective.*bound and synthesize also take --custom"),
        ({"collective": "custom"}, "described by a file"),
        ({"collective": "allgather", "custom": "x.yaml"}, "both name the collective"),
        ({"collective": None, "custom": "x.yaml", "root": 0}, "--root does not go with"),
        ({"collective": None, "custom": "x.yaml", "groups": HALVES}, "--groups does not go with"),
        ({"collective": None, "custom": "x.yaml", "transit": True}, "--transit does not go with"),
        ({"collective": "allgather", "transit": True}, "--transit is about GPUs outside a group"),
    ],
)
def test_options_that_do_not_go_together(options, phrase):
    with pytest.raises(InputError, match=f"(?s){phrase}") as caught:
        api.make_problem(RING, **options)
    assert caught.value.diagnostic.code == "CS217"


_PASSES = "pack-trees,round-weights,lower-forest,coalesce-chunks,order-transfers"


@pytest.mark.parametrize(
    ("call", "options", "code"),
    [
        (api.compile, {"runtime": "msccl", "size": 1e6}, "CS210"),
        (api.compile, {"runtime": "msccl", "min_bytes": 1e6}, "CS210"),
        (api.compile, {"runtime": "msccl", "instances": 2.0}, "CS210"),
        (api.compile, {"runtime": "msccl", "level": 1.0}, "CS210"),
        (api.compile, {"runtime": "msccl", "passes": _PASSES, "algorithm": "ring"}, "CS206"),
        (api.compile, {"runtime": "msccl", "passes": _PASSES, "level": 3}, "CS206"),
        (api.compile, {"runtime": "msccl", "seed": "a"}, "CS210"),
        (api.compile, {"runtime": "msccl", "mode": None}, "CS213"),
        (api.synthesize, {"size": 1e6}, "CS210"),
        (api.synthesize, {"seed": -1}, "CS210"),
        (api.frontier, {"seed": 1.5}, "CS210"),
        (api.compare, {"sizes": []}, "CS217"),
        (api.compare, {"sizes": [1024], "seed": True}, "CS210"),
        (api.survey, {"seed": "a"}, "CS210"),
    ],
)
def test_values_of_python_that_cannot_be_are_named(call, options, code):
    with pytest.raises(InputError) as caught:
        call(api.make_problem(RING, "allreduce"), **options)
    assert caught.value.diagnostic.code == code


@pytest.mark.parametrize("root", ["0", 1.0, ("1",)])
def test_a_root_is_a_whole_number(root):
    with pytest.raises(InputError, match=r"--root .*: expected a whole number"):
        api.make_problem(RING, "broadcast", root)


def test_numbers_of_numpy_paths_and_numbers_of_trees_are_taken_as_they_come(tmp_path):
    assert api.make_problem(RING, "broadcast", np.int64(3)).root == 3
    path = tmp_path / "two.yaml"
    path.write_text(
        "version: 1\nname: two\nnodes:\n  - {name: a, kind: gpu}\n  - {name: b, kind: gpu}\n"
        "links:\n  - {from: a, to: b, bandwidth: 1 GB/s}\n"
    )
    problem = api.make_problem(api.load_topology(path), "allgather")
    done = api.compile(problem, "msccl", algorithm="forest", trees=1, level=0)
    assert done.schedule.trees_per_root == 1
    assert api.pack(problem, 1).trees_per_root == 1
    for seed in (np.uint8(3), 3):
        api.write_schedule(api.synthesize(problem, seed=seed).schedule, tmp_path / f"{seed!r}.npz")
    narrow, plain = tmp_path / f"{np.uint8(3)!r}.npz", tmp_path / "3.npz"
    assert narrow.read_bytes() == plain.read_bytes()
    ring = api.make_problem(RING, "allgather")
    api.survey(ring, algorithm="ring", seed=np.uint8(3), folder=tmp_path / "survey")
    small = api.make_problem(api.load_topology("ring:3"), "allgather")
    assert api.survey(small, trees=1).case.trees == "1"
    assert api.damage(RING, gpus=[1]).topology == api.damage(RING, gpus=["1"]).topology


_MIB = np.int64(2**20)
_TWO = np.int64(2)


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (api.compile, {"runtime": "msccl", "size": _MIB}),
        (api.compile, {"runtime": "msccl", "min_bytes": np.uint16(1024), "max_bytes": _MIB}),
        (api.compile, {"runtime": "msccl", "algorithm": "ten", "chunks_per_gpu": _TWO}),
        (api.compile, {"runtime": "msccl", "algorithm": "ring", "channels": _TWO}),
        (api.compile, {"runtime": "msccl", "algorithm": "forest", "trees": _TWO}),
        (api.synthesize, {"size": np.int32(2**30), "chunks_per_gpu": np.int8(8)}),
        (api.synthesize, {"algorithm": "exact", "chunks_per_gpu": _TWO, "steps": _TWO}),
        (api.frontier, {"most_chunks": _TWO, "work": _TWO}),
        (api.compare, {"sizes": np.array([2**20]), "algorithms": ["ring"], "budget": _TWO}),
    ],
)
def test_integers_of_numpy_do_as_those_of_python(call, options):
    problem = api.make_problem(api.load_topology("ring:4"), "allgather")
    plain = {
        name: value.tolist() if isinstance(value, np.generic | np.ndarray) else value
        for name, value in options.items()
    }
    assert figures(call(problem, **options)) == figures(call(problem, **plain))


def figures(answer):
    """Return what the same question gives again, unlike the time that it took."""
    if isinstance(answer, api.Compilation):
        return answer.artefacts, answer.notes
    if hasattr(answer, "schedule"):
        return {
            x: y for x, y in answer.summary().items() if "seconds" not in x and "memory" not in x
        }
    return list(answer) if hasattr(answer, "__next__") else answer


def test_machines_and_roots_count_with_integers_of_numpy(tmp_path):
    assert api.load_topology("dgx-a100", nodes=np.int8(2)).size == 16
    bundle = api.tune(RING, ["broadcast"], "msccl", [_MIB], root=_TWO, algorithms=["tree"])
    assert bundle.cases[0].sizes == (2**20,)
    problem = api.make_problem(RING, "broadcast", _TWO)
    api.write_schedule(api.synthesize(problem).schedule, tmp_path / "two.npz")
    assert api.read_schedule(tmp_path / "two.npz").problem.root == 2
    job = make_job("allgather", (1,), (), Fraction(1), Fraction(0))
    wide, narrow = (api.cablings(Request(size(4), size(2), job)) for size in (int, np.int8))
    assert wide.winners == narrow.winners


@pytest.mark.parametrize(
    ("first", "last"), [(-3, None), (0, 10**6), (3, 2), (1.5, None), (0, "all")]
)
def test_hops_that_a_phase_has_not_are_refused(first, last):
    (phase,) = api.synthesize(api.make_problem(RING, "allgather")).schedule.phases
    assert (
        len(api.link_rows(phase, np.int8(1), np.int8(2)).start) == phase.first[2] - phase.first[1]
    )
    with pytest.raises(InputError, match=r"CS210.*(first|last) "):
        api.link_rows(phase, first, last)


def test_paths_may_be_strings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    api.tune(RING, ["broadcast"], "msccl", [2**20], algorithms=["tree"], journal="kept.journal")
    assert Path("kept.journal").read_bytes()
    request = Request(4, 2, make_job("allgather", (1,), (), Fraction(1), Fraction(0)))
    found = api.cablings(request).fabrics[0]
    api.write_cabling(found, request, "fabric.yaml", "cables.csv")
    assert api.load_topology("fabric.yaml").size == 4
    assert Path("cables.csv").read_text()


@pytest.mark.parametrize(
    ("call", "options", "code"),
    [
        (api.compile, {"runtime": "msccl", "protocol": 0}, "CS213"),
        (api.compile, {"runtime": "msccl", "protocol": []}, "CS213"),
        (api.compile, {"runtime": "msccl", "protocol": ""}, "CS213"),
        (api.survey, {"protocol": 0}, "CS213"),
        (api.survey, {"algorithm": ""}, "CS213"),
        (api.compile, {"runtime": "msccl", "model": 0}, "CS200"),
        (api.survey, {"model": {}}, "CS200"),
        (api.compare, {"sizes": [1024], "model": {}}, "CS200"),
        (api.compare, {"sizes": [1024], "algorithms": "ring"}, "CS200"),
        (api.compare, {"sizes": "1024"}, "CS200"),
        (api.compare, {"sizes": 1024}, "CS200"),
    ],
)
def test_values_that_are_false_or_alone_are_no_defaults_and_no_sequences(call, options, code):
    with pytest.raises(InputError) as caught:
        call(api.make_problem(RING, "allgather"), **options)
    assert caught.value.diagnostic.code == code


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("links", "gpu0-gpu1"),
        ("gpus", "12"),
        ("gpus", 1),
        ("nics", "nic0"),
        ("degraded", "a-b=1%"),
        ("degraded", {"gpu0-gpu1": 0.5}),
    ],
)
def test_failures_are_sequences(name, given):
    with pytest.raises(InputError, match=f"CS200.*{name} takes a sequence") as caught:
        api.damage(RING, **{name: given})
    assert f"write {name}=[" in caught.value.diagnostic.help


def test_so_are_collectives_groups_and_shards():
    for call in (
        lambda: api.tune(RING, "allgather", "msccl", [1024]),
        lambda: api.make_problem(RING, "allgather", groups="0-3"),
        lambda: api.make_problem(RING, "allgather", shards=8),
        lambda: api.simulate(b"", "msccl", RING, "1MB"),
    ):
        with pytest.raises(InputError, match=r"CS200.* takes a sequence, not"):
            call()


def test_settings_may_be_numbers_but_bandwidths_need_a_unit():
    texts, numbers = (
        api.load_topology("dgx-a100", settings={"nics": nics}) for nics in ("4", np.int64(4))
    )
    assert texts == numbers
    for value in (None, [4], True):
        with pytest.raises(InputError, match=r"CS123.*parameter 'nics' cannot be"):
            api.load_topology("dgx-a100", settings={"nics": value})
    with pytest.raises(InputError, match=r"CS110.*25000000000.0 is no bandwidth with a unit"):
        api.load_topology("ring:4", bandwidth=25e9)
    with pytest.raises(InputError, match=r"CS110.*1 is no latency with a unit"):
        api.load_topology("ring:4", latency=1)


def test_other_objects_than_topologies_and_whole_bytes_are_refused():
    for function, more in (
        (api.make_problem, ["allgather"]),
        (api.damage, []),
        (api.tune, [["allgather"], "msccl", [1024]]),
    ):
        with pytest.raises(InputError, match=f"{function.__name__} takes a topology, not 'ring:4'"):
            function("ring:4", *more)
    with pytest.raises(InputError, match="simulate takes a topology, not 'ring:4'"):
        api.simulate(b"", "msccl", "ring:4", [1024])
    with pytest.raises(InputError, match="executable takes a topology, not 'ring:4'"):
        api.executable(None, "ring:4")
    for anyway in (False, True):
        with pytest.raises(InputError, match=r"CS200.*not an object of type NoneType"):
            api.executable(None, None, anyway=anyway)
    with pytest.raises(InputError, match=r"CS200.*cablings takes a request"):
        api.cablings(8, 2)
    for function, more in (
        *((api.compile, ["msccl"]), (api.file_names, ["msccl"]), (api.communicators, ["msccl"])),
        *((api.bound, []), (api.allreduce_bound, []), (api.synthesize, []), (api.frontier, [])),
        *((api.survey, []), (api.pack, []), (api.steps, []), (api.heights, [])),
        (api.compare, [[1024]]),
    ):
        phrase = f"CS200.*{function.__name__} takes a problem, not an object of type Topology"
        with pytest.raises(InputError, match=phrase):
            function(RING, *more)
    done = api.compile(api.make_problem(RING, "allgather"), "msccl", algorithm="ring", level=0)
    with pytest.raises(InputError, match=r"size 1.5: expected a whole number"):
        api.simulate(done.artefacts[0].data, "msccl", RING, [1.5])
    with pytest.raises(InputError, match="--trees 0: expected auto"):
        api.compile(api.make_problem(RING, "allgather"), "msccl", trees=0)
    with pytest.raises(InputError, match="--nodes True"):
        api.load_topology("dgx-a100", nodes=True)


def _tuned(**options):
    return api.tune(RING, ["allgather"], "msccl", [1 << 20], **options)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: api.make_problem(RING, 5), "CS213.* no collective 5"),
        (lambda: api.make_problem(RING, ["allgather"]), "CS213.*did you mean 'allgather'"),
        (lambda: api.compile(PLAIN, None), "CS501.*unknown runtime None"),
        (
            lambda: api.compile(PLAIN, "msccl", algorithm=["ring"]),
            "CS200.*write algorithm='forest'",
        ),
        (lambda: api.compile(PLAIN, "msccl", passes=["pack-trees"]), "CS200.*passes takes text"),
        (lambda: api.compile(PLAIN, "msccl", algorithm="ten", policy=5), "CS213.* no policy 5"),
        (lambda: api.pass_names(passes=5), "CS200.*passes takes text"),
        (lambda: api.compare(PLAIN, [1024], algorithms=[5]), "CS200.*algorithms takes names"),
        (lambda: api.survey(PLAIN, 5), "CS200.*write failures='links:1'"),
        (lambda: api.survey(PLAIN, None), "CS200.*write failures='links:1'"),
        (lambda: api.damage(RING, degraded=[5]), "CS200.*degraded takes names"),
        (lambda: api.verify("x.xml", "msccl"), "CS200.*takes the bytes of a file, not 'x.xml'"),
        (lambda: api.simulate("x.xml", "msccl", RING, [1]), "CS200.*read_bytes"),
        (lambda: api.executable(b"", RING), "CS200.*executable takes a source"),
        (lambda: api.synthesize(PLAIN, algorithm=5), "CS200.*algorithm takes text"),
        (lambda: api.write_schedule(PLAIN, "x.npz"), "CS200.*takes a timed schedule"),
        (lambda: api.link_rows(api.synthesize(PLAIN).schedule), "CS200.*schedule.phases"),
        (lambda: api.read_schedule(None), "CS200.*read_schedule takes the name of a file"),
        (lambda: api.read_sketch(5, RING), "CS200.*read_sketch takes the name of a file"),
        (lambda: api.write_bundle(PLAIN, "x"), "CS200.*api.tune returns one"),
        (
            lambda: api.write_bundle(
                api.tune(RING, ["allgather"], "msccl", [1 << 20], algorithms=["ring"], budget=1), 5
            ),
            "CS200.*write_bundle takes the name of a file",
        ),
        (lambda: api.load_topology("dgx-a100", settings=["nics=4"]), "CS123.*settings={"),
        (lambda: api.survey(PLAIN, folder=5), "CS200.*folder takes a path"),
        (lambda: _tuned(journal=5), "CS200.*journal takes a path"),
        (lambda: _tuned(executor=5), "CS200.*executor takes one of concurrent.futures"),
        (lambda: api.survey(PLAIN, executor=5), "CS200.*leave executor out"),
        (lambda: api.compare(PLAIN, [1024], executor=5), "CS200.*leave executor out"),
        (lambda: api.compile(PLAIN, "msccl", watch=5), "CS200.*watch takes a function"),
        (lambda: api.compile(PLAIN, "msccl", progress=5), _NO_FUNCTION),
        (lambda: api.compare(PLAIN, [1024], progress=5), _NO_FUNCTION),
        (lambda: _tuned(progress=5), _NO_FUNCTION),
        (lambda: api.survey(PLAIN, progress=5), _NO_FUNCTION),
        (lambda: api.synthesize(PLAIN, progress=5), _NO_FUNCTION),
        (lambda: api.write_schedule(api.synthesize(PLAIN).schedule, "x", 5), _NO_FUNCTION),
        (lambda: api.pack(PLAIN, progress=5), _NO_FUNCTION),
        (lambda: api.heights(PLAIN, 5), _NO_FUNCTION),
        (
            lambda: api.cablings(
                Request(8, 2, make_job("allgather", (1,), (), Fraction(1), Fraction(0))), 5
            ),
            _NO_FUNCTION,
        ),
        (lambda: api.warm(5), _NO_FUNCTION),
    ],
)
def test_objects_of_other_types_are_refused(call, said):
    with pytest.raises(InputError, match=f"(?s){said}"):
        call()


def test_bytes_of_a_file_may_be_of_any_type_that_holds_bytes():
    (file,) = api.compile(PLAIN, "rccl", algorithm="ring", level=0).artefacts
    for given in (bytearray(file.data), memoryview(file.data)):
        assert api.verify(given, "rccl") == api.verify(file.data, "rccl")
        times = api.simulate(given, "rccl", RING, [2**20])
        assert times == api.simulate(file.data, "rccl", RING, [2**20])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: api.pack(PLAIN), "Forest(allgather on ring:8, 16 different trees, 114.286 GB/s, "),
        (lambda: api.synthesize(PLAIN), "Synthesis(ten, seed 0, TimedSchedule(allgather on ring:8"),
        (
            lambda: api.compare(PLAIN, [2**20, 2**21], algorithms=["ring"]),
            "Comparison(allgather on ring:8, msccl, ring at 1 MiB, ring at 2 MiB)",
        ),
        (lambda: _tuned(budget=4), "Bundle(allgather on ring:8, msccl, "),
        (lambda: _tuned(budget=4).files[0], "TunedFile(ring-8-allgather-msccl-"),
        (
            lambda: api.survey(PLAIN),
            "Survey(allgather on ring:8, msccl, 8 failures of links, gpu0-gpu1 costs 50 % of the b",
        ),
    ],
)
def test_what_holds_a_topology_is_shown_in_one_line(call, said):
    shown = repr(call())
    assert shown.startswith(said)
    assert len(shown) < 200
    assert "\n" not in shown


def test_a_mistyped_collective():
    with pytest.raises(InputError, match="did you mean 'scatter'"):
        api.make_problem(RING, "scater")


def test_a_bound_whose_certificate_proves_nothing_is_refused(monkeypatch):
    from colsynth.bounds import optimum

    problem = api.make_problem(api.load_topology("mesh:3x3"), "allreduce")
    found = optimum.allreduce_optimum(problem)
    limit = replace(found.limit, algbw=found.limit.algbw - 1)
    monkeypatch.setattr(optimum, "allreduce_optimum", lambda _: replace(found, limit=limit))
    with pytest.raises(VerificationError) as caught:
        api.allreduce_bound(problem)
    assert caught.value.diagnostic.code == "CS524"
