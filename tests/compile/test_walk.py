from xml.etree import ElementTree as ET

import pytest

from colsynth import api
from colsynth.compile.request import Request
from colsynth.compile.run import compile_problem
from colsynth.errors import DefectError, InputError, LimitError, VerificationError
from colsynth.pipeline.registry import ALGORITHMS
from colsynth.pipeline.target import aim
from colsynth.runtimes import profile, profiles
from colsynth.synthesis.forest.rate import candidates, fewest_trees
from colsynth.verify import verify_bytes

RING = api.make_problem(api.load_topology("ring:4"), "allgather")
MI250 = api.make_problem(api.load_topology("mi250"), "allgather")
PROTOCOLS = ("Simple", "LL", "LL128")
XML = [p.name for p in profiles() if p.xml]
TIGHT = "assign-threadblocks{{max-threadblocks=9,max-steps={},strategy=spread}}"


def tight(steps):
    """The default pipeline within fewer threadblocks and steps than the runtime has."""
    return ALGORITHMS["forest"].replace("assign-threadblocks{strategy=spread}", TIGHT.format(steps))


def test_auto_takes_the_most_trees_that_fit_and_says_what_was_given_up():
    done = api.compile(MI250, "rccl", passes=tight(6))
    trees = done.schedule.trees_per_root
    assert trees < 3
    assert f"pack-trees{{trees={trees}}}" in done.pipeline
    assert done.summary()["gap"] > 0.02
    assert done.notes[0].startswith("3 trees per GPU would be faster but were given up: ")


def test_auto_takes_fewer_trees_where_they_are_predicted_to_be_faster():
    machine = api.load_topology("mi300x", nodes=2)
    problem = api.make_problem(machine, "allreduce")
    seen = []
    watch = lambda *told: seen.append(told)  # noqa: E731 - one line
    done = api.compile(problem, "msccl", mode="in-place", algorithm="forest", watch=watch)
    within = candidates(problem)[0]
    assert done.schedule.trees_per_root == fewest_trees(problem) < within
    assert done.notes[0].startswith(f"{within} trees per GPU have the better bound, but are pred")
    assert seen[-1][3] == done.artefacts[0].program
    more = api.compile(problem, "msccl", mode="in-place", trees=str(within), algorithm="forest")
    times = [
        api.simulate(made.artefacts[0].data, "msccl", machine, [10**9]).points[0].seconds
        for made in (done, more)
    ]
    assert times[0] < times[1]


def test_auto_without_search_is_within_two_percent():
    done = api.compile(MI250, "msccl", mode="in-place", level=0)
    assert fewest_trees(MI250) < done.schedule.trees_per_root
    assert done.summary()["gap"] <= 0.02
    assert "given up" not in " ".join(done.notes)


def test_where_no_number_of_trees_fits_the_limit_is_named():
    with pytest.raises(LimitError, match="threadblocks of rccl"):
        api.compile(MI250, "rccl", passes=tight(2))


def test_there_is_no_program_of_no_instances():
    none = ALGORITHMS["forest"].replace("lower-forest", "lower-forest{instances=0}")
    for options in ({"instances": 0}, {"passes": none}):
        with pytest.raises(InputError, match="instances 0: expected a number from 1"):
            api.compile(RING, "rccl", **options)


def test_a_largest_message_of_more_tiles_than_a_flag_counts_is_refused():
    largest = 65536 * profile("rccl").tile_bytes["LL"] * 8
    request = Request(settings={"trees": "2"}, level=0)
    kept = compile_problem(RING, aim(RING, profile("rccl"), "LL", max_bytes=largest), request)
    assert kept.artefacts[0].program.header.chunks == 8
    with pytest.raises(LimitError, match="give a smaller --max-bytes") as caught:
        compile_problem(RING, aim(RING, profile("rccl"), "LL", max_bytes=largest + 1), request)
    assert caught.value.diagnostic.code == "CS222"


def test_a_smallest_message_of_more_tiles_than_a_flag_counts_is_refused():
    largest = 65536 * profile("rccl").tile_bytes["LL"] * 8
    target = aim(RING, profile("rccl"), "LL", min_bytes=largest + 1)
    with pytest.raises(LimitError, match="give a smaller --min-bytes"):
        compile_problem(RING, target, Request(settings={"trees": "2"}, level=0))


@pytest.mark.parametrize("runtime", XML)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_file_has_the_largest_limit_that_the_verifier_accepts(runtime, protocol):
    """Each runtime meets each protocol and each collective."""
    place = XML.index(runtime) + PROTOCOLS.index(protocol)
    collective = ("allgather", "allreduce", "broadcast")[place % 3]
    problem = api.make_problem(api.load_topology("ring:2"), collective)
    of = profile(runtime)
    done = api.compile(problem, runtime, protocol=protocol, several=True, level=0)
    for artefact in done.artefacts:
        header = artefact.program.header
        assert header.max_bytes == done.summary()["max_bytes"]
        spelt = int(ET.fromstring(artefact.data).get("maxBytes"))
        assert spelt - of.exclusive_max == header.max_bytes > 0
        for larger in (spelt + 1, 0):
            data = artefact.data.replace(b'maxBytes="%d"' % spelt, b'maxBytes="%d"' % larger)
            rules = {f.rule for f in verify_bytes(data, of, subject="").errors}
            assert rules & {"K03", "A14", "A07"}, larger


def test_a_fixed_number_of_trees_is_walked_once():
    with pytest.raises(LimitError):
        api.compile(MI250, "rccl", passes=tight(6).replace("pack-trees", "pack-trees{trees=3}"))


def test_files_for_two_modes_share_one_forest():
    seen = []
    done = api.compile(
        RING, "msccl", watch=lambda mode, _place, name, _value: seen.append((mode, name))
    )
    assert [artefact.mode for artefact in done.artefacts] == ["in-place", "out-of-place"]
    assert [mode for mode, name in seen if name == "pack-trees"] == [""]
    assert [mode for mode, name in seen if name == "place-slots"] == ["in-place", "out-of-place"]
    for artefact in done.artefacts:
        assert api.verify(artefact.data, "msccl", single_node=True).ok


@pytest.mark.parametrize("mode", ["in-place", "out-of-place", "both"])
def test_a_mode_asked_for_is_the_mode_of_the_file(mode):
    (artefact,) = api.compile(RING, "rccl", mode=mode).artefacts
    header = artefact.program.header
    assert header.in_place is (mode != "out-of-place")
    assert header.out_of_place is (mode != "in-place")


@pytest.mark.parametrize(("passes", "kind"), [(None, DefectError), ("same", VerificationError)])
def test_who_is_to_blame_for_wrong_bytes(passes, kind, monkeypatch):
    """Wrong bytes of the default pipeline are a defect, of a given one a finding."""
    from colsynth.runtimes import writer

    honest = writer.write
    monkeypatch.setattr(
        writer, "write", lambda *args: honest(*args).replace(b'type="r"', b'type="s"', 1)
    )
    text = None if passes is None else ALGORITHMS["forest"]
    with pytest.raises(kind, match="nothing was written"):
        api.compile(RING, "rccl", passes=text)


def test_a_program_for_another_root_is_a_defect(monkeypatch):
    from colsynth import verify

    problem = api.make_problem(api.load_topology("clique:4"), "broadcast", 2)
    assert api.compile(problem, "rccl").verified
    honest = verify.verify_reading

    def elsewhere(*args, **options):
        report = honest(*args, **options)
        facts = tuple((key, "1" if key == "root" else value) for key, value in report.facts)
        return type(report)(report.subject, report.runtime, report.findings, facts)

    monkeypatch.setattr(verify, "verify_reading", elsewhere)
    with pytest.raises(DefectError, match="its root is 1, not 2"):
        api.compile(problem, "rccl")


def test_what_verification_warns_of_is_said_once():
    rooted = api.make_problem(api.load_topology("ring:4"), "broadcast")
    notes = api.compile(rooted, "msccl").notes
    assert sum(note.startswith("A15: ") for note in notes) == 1
    assert not [note for note in api.compile(RING, "msccl").notes if note.startswith("A15")]


def test_the_walk_of_ten_takes_its_options_and_shares_one_schedule():
    seen = []
    done = api.compile(
        RING,
        "msccl",
        algorithm="ten",
        size=4 * 10**6,
        chunks_per_gpu=2,
        policy="rarest",
        instances=2,
        watch=lambda _mode, _place, name, _value: seen.append(name),
    )
    assert done.pipeline.startswith(
        "match-chunks{size=4000000,chunks-per-gpu=2,policy=rarest,gap=latency},"
        "lower-timed{instances=2},"
    )
    assert (seen.count("match-chunks"), seen.count("lower-timed")) == (1, 2)
    assert (done.schedule.size, done.schedule.chunks) == (4 * 10**6, 8)
    for artefact in done.artefacts:
        assert api.verify(artefact.data, "msccl", single_node=True).ok


def test_options_of_another_algorithm_are_refused():
    with pytest.raises(InputError, match="--chunks-per-gpu does not go with -a forest") as caught:
        api.compile(RING, "rccl", algorithm="forest", chunks_per_gpu=2)
    assert caught.value.diagnostic.help == "it is an option of -a ten, exact, bfb"
    with pytest.raises(InputError, match="--trees does not go with -a ten"):
        api.compile(RING, "rccl", algorithm="ten", trees="2")


def test_verification_is_not_told_as_done_before_it_is():
    told = []
    problem = api.make_problem(api.load_topology("ring:4"), "allgather")
    api.compile(problem, "msccl", level=0, progress=lambda *row: told.append(row))
    assert [row for row in told if row[0] == "verify"] == [("verify", 0, 2), ("verify", 1, 2)]
