import json
from fractions import Fraction

import pytest

from colsynth.bounds.allreduce import rooted
from colsynth.cli import _groups as groups
from colsynth.cli.main import run


@pytest.mark.parametrize(
    ("topology", "nodes", "gb_per_s"),
    [
        ("dgx-a100", 1, 342.857),
        ("dgx-a100", 2, 346.667),
        ("dgx-a100", 4, 266.667),
        ("dgx-a100", 8, 228.571),
        ("mi250", 1, 342.857),
        ("mi250", 2, 354.133),
        ("mi250", 4, 341.333),
    ],
)
def test_allgather_optima_of_the_presets(topology, nodes, gb_per_s, capsys):
    """The figures ForestColl's search gives on the same models (arXiv 2402.06787)."""
    assert run(["bound", topology, "--nodes", str(nodes), "-c", "allgather", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["algbw_gb_per_s"] == pytest.approx(gb_per_s, abs=1e-3)
    assert float(Fraction(answer["algbw"])) == pytest.approx(answer["algbw_gb_per_s"], abs=1e-6)


def test_the_bottleneck_is_a_cut_whose_ratio_is_the_answer(capsys):
    assert run(["bound", "mi250", "--nodes", "2", "-c", "allgather", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    cut = answer["bottleneck"]
    assert set(answer) >= {"collective", "ranks", "algbw_gb_per_s", "algbw", "trees_per_gpu"}
    share = answer["ranks"] / len(cut["gpus"])
    assert cut["bandwidth_gb_per_s"] * share == pytest.approx(answer["algbw_gb_per_s"], abs=1e-5)
    assert all(" -> " in link for link in cut["links"])


def test_allreduce_names_a_bottleneck_for_each_phase(capsys):
    assert run(["bound", "dgx-a100", "-c", "allreduce", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [phase["direction"] for phase in answer["phases"]] == ["in", "out"]
    rates = [Fraction(phase["algbw"]) for phase in answer["phases"]]
    assert 1 / sum(1 / rate for rate in rates) == Fraction(answer["algbw"])


def test_people_read_the_exact_optimum_and_the_links(capsys):
    assert run(["bound", "dgx-a100", "--nodes", "2", "-c", "allgather"]) == 0
    shown = capsys.readouterr()
    assert "exactly 1040/3 GB/s" in shown.out
    assert "nvswitch0 -> gpu0.0" in shown.out
    assert shown.err == ""


def test_a_root_is_for_rooted_collectives_alone(capsys):
    assert run(["bound", "dgx-a100", "-c", "broadcast", "--root", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["root"] == 3
    assert run(["bound", "dgx-a100", "-c", "allgather", "--root", "3"]) == 2


def test_alltoall_of_two_boxes(capsys):
    """Eight times eight pairs over one NIC of 12.5 GB/s, sixteen messages."""
    assert run(["bound", "ndv2", "--nodes", "2", "-c", "alltoall", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["algbw"] == "25/8"
    assert answer["algbw_gb_per_s"] == answer["cut_gb_per_s"] == 3.125
    assert answer["lp_gb_per_s"] == pytest.approx(3.125)
    assert answer["exact"] is True
    assert answer["trees_per_gpu"] is answer["prices"] is None
    assert len(answer["bottleneck"]["gpus"]) == 8
    assert [phase["algbw"] for phase in answer["phases"]] == ["25/8"]


def test_people_read_whether_flows_reach_the_bound(capsys):
    assert run(["bound", "dgx-a100", "-c", "alltoall"]) == 0
    assert "yes, by flows (linear program)" in capsys.readouterr().out
    assert run(["bound", "torus:13x13", "-c", "alltoall"]) == 0
    shown = capsys.readouterr().out
    assert "at most, for" in shown
    assert "not known: too large" in shown
    assert run(["bound", "dgx-a100", "-c", "gather", "--root", "3"]) == 0
    assert "gather to rank 3" in capsys.readouterr().out


def test_prices_are_listed_where_they_prove_more_than_cuts(capsys, tmp_path):
    file = tmp_path / "circle.yaml"
    names = [f"g{i}" for i in range(5)]
    links = [(i, (i + step) % 5) for i in range(5) for step in (1, 2)]
    lines = ["version: 1", "name: circle", "nodes:"]
    lines += [f"  - {{name: {name}, kind: gpu}}" for name in names]
    lines += ["links:"]
    lines += [f"  - {{from: g{a}, to: g{b}, bandwidth: 1 GB/s, one-way: true}}" for a, b in links]
    file.write_text("\n".join(lines) + "\n")
    assert run(["bound", str(file), "-c", "alltoall", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["algbw"] == "3/2"
    assert answer["cut_gb_per_s"] == 2.5
    assert len(answer["prices"]) == 3
    assert run(["bound", str(file), "-c", "alltoall"]) == 0
    assert "prices of links" in capsys.readouterr().out


def test_the_better_allreduce_is_named_with_what_none_beats(capsys):
    assert run(["bound", "mesh:3x3", "-c", "allreduce", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["algbw"], answer["composition"], answer["better"]) == (
        "75",
        "225/4",
        "free roots",
    )
    assert (answer["limit"], answer["gap"], len(answer["limit_sets"])) == ("75", 0, 9)
    assert run(["bound", "mesh:3x3", "-c", "allreduce"]) == 0
    shown = capsys.readouterr().out
    assert "no schedule is faster: 16 copies of the message must enter 9 GPUs" in shown
    assert "33.33 % more than reduce-scatter and allgather" in shown


def test_an_allreduce_that_nothing_beats_needs_no_free_roots(capsys):
    assert run(["bound", "ndv2", "--nodes", "2", "-c", "allreduce", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["free_roots"], answer["better"]) == (None, "reduce-scatter + allgather")
    assert answer["limit"] == answer["composition"] == answer["algbw"] == "25/2"


def test_switches_that_reduce_and_multicast_have_a_bound_of_their_own(capsys):
    assert run(["bound", "dgx-h100", "-c", "allreduce", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["algbw"], answer["in_network"]) == ("1800/7", "450")
    assert run(["bound", "dgx-h100", "-c", "allreduce"]) == 0
    shown = capsys.readouterr().out
    assert "450 GB/s, 75.00 % more, where switches do what they can" in shown
    assert "no schedule of switches that only forward is faster" in shown


def test_what_is_too_large_for_the_program_is_no_optimum(monkeypatch, capsys):
    monkeypatch.setattr(rooted, "_MOST_WORK", 1000)
    assert run(["bound", "mesh:5x5", "-c", "allreduce", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["optimum_known"], answer["free_roots"]) == (False, None)
    assert Fraction(answer["limit"]) > Fraction(answer["algbw"]) == Fraction(answer["composition"])
    assert run(["bound", "mesh:5x5", "-c", "allreduce"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("at least, for")
    assert "too large for the linear program" in shown


def asked(capsys, *options):
    assert run(["bound", *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_bound_of_a_group_without_and_with_transit(capsys):
    case = ["mi250", "-c", "allgather", "--group", "0-7"]
    alone = asked(capsys, *case)
    assert (alone["algbw_gb_per_s"], alone["ranks"], alone["transit"]) == (200, 8, False)
    assert alone["groups"] == [list(range(8))]
    assert "reached" not in alone
    # Links to GPUs that take no part are no way out of the set.
    assert all("gpu0.8" not in link for link in alone["bottleneck"]["links"])
    helped = asked(capsys, *case, "--transit")
    assert (helped["algbw_gb_per_s"], helped["reached_gb_per_s"]) == (400, 400)
    assert run([*["bound", *case], "--transit"]) == 0
    shown = capsys.readouterr().out
    assert "optimum of" in shown
    assert "in group 0-7 with transit on mi250 x1 (16 GPUs)" in shown


def test_what_trees_reach_is_told_where_it_is_less(capsys):
    """Corners of a mesh: relays that add up might allow 100 GB/s, trees reach less."""
    case = ["mesh:3x3", "-c", "allreduce", "--group", "0,2,6,8", "--transit"]
    found = asked(capsys, *case)
    assert found["reached_gb_per_s"] < found["algbw_gb_per_s"]
    assert run(["bound", *case]) == 0
    shown = capsys.readouterr().out
    assert "at most, for" in shown
    assert "% less" in shown


def test_groups_at_the_same_time(capsys):
    halves = ["dgx-a100", "-c", "reduce-scatter", "--groups", "0-3;4-7"]
    found = asked(capsys, *halves)
    assert found["algbw_gb_per_s"] == found["reached_gb_per_s"] == 400
    assert run(["bound", "dgx-a100", "-c", "allreduce", "--groups", "0-3;4-7"]) == 0
    shown = capsys.readouterr().out
    assert "allreduce (reduce-scatter + allgather) in 2 groups of 4 at the same time" in shown
    assert "yes, by trees" in shown


def test_many_members_are_not_packed_in_passing(monkeypatch, capsys):
    monkeypatch.setattr(groups, "_MOST_WITH_RELAYS", 1000)
    found = asked(capsys, "torus:6x6", "-c", "allreduce", "--group", "0-29", "--transit")
    assert found["reached"] is found["trees_per_gpu"] is None


def test_what_need_not_be_reached_is_no_least(monkeypatch, capsys):
    """Too many for free roots to be worked out, and relays that do not send what they receive."""
    monkeypatch.setattr(rooted, "_MOST_WORK", 1000)
    case = ["mesh:18x18", "-c", "allreduce", "--group", "0-299", "--transit"]
    for failure, title in (([], "at least, for"), (["gpu320->gpu321=50%"], "equal roots at most")):
        options = [text for name in failure for text in ("--degrade", name)]
        assert run(["bound", *case, *options]) == 0
        assert capsys.readouterr().out.startswith(title)


def test_trees_are_counted_that_reach_what_is_reached(tmp_path, capsys):
    """Each pair alone takes three trees to fill all links; together one fills the middle."""
    ends = {"a": "s", "b": "s", "c": "t", "d": "t"}
    nodes = [f"{{name: {gpu}, kind: gpu}}" for gpu in ends]
    nodes += [f"{{name: {switch}, kind: switch}}" for switch in "st"]
    links = [f"{{from: {a}, to: {b}, bandwidth: 20 GB/s}}" for a, b in ends.items()]
    links += ["{from: s, to: t, bandwidth: 12 GB/s}"]
    path = tmp_path / "dumbbell.yaml"
    path.write_text(
        f"version: 1\nname: dumbbell\nnodes: [{', '.join(nodes)}]\nlinks: [{', '.join(links)}]\n"
    )
    alone = asked(capsys, str(path), "-c", "allgather", "--group", "0,2")
    assert alone["trees_per_gpu"] == 3
    both = asked(capsys, str(path), "-c", "allgather", "--groups", "0,2;1,3")
    assert both["reached"] == both["algbw"] == "12"
    assert both["trees_per_gpu"] == 1


def test_several_roots(capsys):
    case = ["dgx-a100", "--nodes", "2", "-c", "broadcast"]
    found = asked(capsys, *case, "--root", "0,8")
    assert (found["root"], found["roots"]) == (None, [0, 8])
    assert found["algbw_gb_per_s"] == 325
    assert run(["bound", *case, "--root", "0,8"]) == 0
    assert "broadcast from ranks 0,8 on" in capsys.readouterr().out


def test_the_healthy_bound_is_of_the_same_group(capsys):
    """Ranks of the group are those that are left; rank 3 of them was 4."""
    case = ["torus:3x3", "-c", "allgather", "--group", "0-3", "--transit"]
    found = asked(capsys, *case, "--drop-gpu", "3")
    healthy = asked(capsys, "torus:3x3", "-c", "allgather", "--group", "0-2,4", "--transit")
    assert found["healthy_algbw"] == healthy["algbw"]
    assert found["groups"] == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("options", "exit_code", "code"),
    [
        (["-c", "allgather", "--group", "0-8"], 2, "CS216"),
        (["-c", "allgather", "--group", "0"], 2, "CS216"),
        (["-c", "allgather", "--group", "0-x"], 2, "CS216"),
        (["-c", "allgather", "--groups", "0-2;3-4"], 2, "CS216"),
        (["-c", "allgather", "--group", "0,1", "--groups", "2,3"], 2, "CS217"),
        (["-c", "allgather", "--transit"], 2, "CS217"),
        (["-c", "alltoall", "--groups", "0,1;2,3"], 2, "CS306"),
        (["-c", "broadcast", "--root", "0,1", "--groups", "0,1;2,3"], 2, "CS217"),
        (["-c", "gather", "--root", "0,1"], 2, "CS217"),
        (["-c", "broadcast", "--root", "0,,1"], 2, "CS211"),
        (["-c", "allgather", "--group", "0,2"], 1, "CS302"),
        (["-c", "scatter", "-r", "msccl"], 1, "CS220"),
    ],
)
def test_groups_roots_and_runtimes_that_cannot_be(options, exit_code, code, capsys):
    assert run(["bound", "ring:8", *options]) == exit_code
    assert f"error[{code}]" in capsys.readouterr().err


def test_the_bound_of_a_collective_of_one_s_own(tmp_path, capsys):
    mine = tmp_path / "mine.yaml"
    mine.write_text("version: 1\nchunks: [{held-by: [2], wanted-by: [1, 5], count: 3}]\n")
    found = asked(capsys, "dgx-a100", "--custom", str(mine))
    assert (found["collective"], found["algbw_gb_per_s"], found["exact"]) == ("custom", 300, False)
    assert run(["bound", "dgx-a100", "--custom", str(mine)]) == 0
    shown = capsys.readouterr().out
    assert "at most, for" in shown
    assert "not known: a limit on any schedule" in shown
    # What was rank 2 is rank 3 of the healthy ring, with twice the ways.
    found = asked(capsys, "ring:6", "--custom", str(mine.parent / "near.yaml"), *_near(mine.parent))
    assert (found["algbw_gb_per_s"], found["healthy_algbw_gb_per_s"]) == (50, 100)


def _near(folder):
    """Rank 2 sends to rank 3 of what a ring of six is without its rank 0."""
    near = folder / "near.yaml"
    near.write_text("version: 1\nchunks: [{held-by: [2], wanted-by: [3], count: 1}]\n")
    return ["--drop-gpu", "0"]


@pytest.mark.parametrize(
    ("options", "code"), [([], "CS217"), (["-c", "custom"], "CS217"), (["-c", "sum"], "CS213")]
)
def test_some_collective_must_be_named(options, code, capsys):
    assert run(["bound", "ring:4", *options]) == 2
    assert f"error[{code}]" in capsys.readouterr().err


def test_a_runtime_adds_what_no_file_can_beat(capsys):
    asked = ["bound", "dgx-b200", "-c", "allreduce", "-r", "rccl", "--sizes", "1KiB,1GiB"]
    assert run(asked) == 0
    assert "threadblocks" in capsys.readouterr().out
    assert run([*asked, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["by_size"]
    assert [row["binds"] for row in rows] == ["latency", "threadblocks"]
    for row in rows:
        assert row["least_us"] == row[f"{row['binds']}_us"]
    plain = ["bound", "dgx-h100", "-c", "allreduce"]
    for option, value in (("--sizes", "1KiB"), ("--model", "m.yaml")):
        assert run([*plain, option, value]) == 2
        assert f"{option} needs a runtime" in capsys.readouterr().err


def test_a_bound_takes_the_constants_of_a_model(tmp_path, capsys):
    model = tmp_path / "m.yaml"
    model.write_text("link_efficiency: 1\n")
    asked = ["bound", "dgx-a100", "-c", "allgather", "-r", "msccl", "--sizes", "1GiB", "--json"]
    most = []
    for more in ([], ["--model", str(model)]):
        assert run([*asked, *more]) == 0
        most.append(json.loads(capsys.readouterr().out)["by_size"][0]["most_gb_per_s"])
    assert most[0] < most[1]


def test_a_switch_that_could_send_more_than_it_gets_makes_the_bound_a_limit(tmp_path, capsys):
    """30 GB/s enter a switch that only forwards, and two copies of the message must."""
    path = tmp_path / "sw.yaml"
    lines = ["version: 1", "name: sw", "nodes:", "  - {name: s, kind: switch}"]
    lines += [f"  - {{name: gpu{i}, kind: gpu}}" for i in range(3)] + ["links:"]
    for i in range(3):
        for ends, rate in ((f"from: gpu{i}, to: s", 10), (f"from: s, to: gpu{i}", 20)):
            lines.append(f"  - {{{ends}, bandwidth: {rate} GB/s, one-way: true}}")
    path.write_text("\n".join(lines) + "\n")
    assert run(["bound", str(path), "-c", "allgather"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("at most, for")
    assert "15 GB/s by trees, 50.00 % less" in shown
    assert run(["bound", str(path), "-c", "allgather", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["algbw_gb_per_s"], found["reached_gb_per_s"]) == (30.0, 15.0)
    assert run(["bound", str(path), "-c", "allreduce"]) == 0
    assert "equal roots    7.5 GB/s" in capsys.readouterr().out


ONE_WAY = """\
version: 1
name: one-way
nodes: [{name: a, kind: gpu}, {name: b, kind: gpu}, {name: c, kind: gpu}, {name: d, kind: gpu}]
links:
  - {from: d, to: b, bandwidth: 25 GB/s, one-way: true}
  - {from: b, to: c, bandwidth: 10 GB/s, one-way: true}
  - {from: c, to: a, bandwidth: 20 GB/s, one-way: true}
  - {from: a, to: d, bandwidth: 10 GB/s, one-way: true}
"""


def test_what_is_proven_of_trees_alone_is_no_optimum(tmp_path, capsys):
    path = tmp_path / "one-way.yaml"
    path.write_text(ONE_WAY)
    answer = asked(capsys, str(path), "-c", "allreduce")
    assert not answer["optimum_known"]
    assert answer["limit_gb_per_s"] > answer["algbw_gb_per_s"] == answer["free_roots_gb_per_s"]
    assert run(["bound", str(path), "-c", "allreduce"]) == 0
    assert capsys.readouterr().out.startswith("best trees for")
    made = ["compile", str(path), "-c", "allreduce", "-r", "msccl", "-a", "ring", "-O0"]
    assert run([*made, "-o", str(tmp_path / "x.xml")]) == 0
    shown = capsys.readouterr().out
    assert "from the best trees known 6.667" in shown or "no faster trees are known" in shown
    assert "proven optimal" not in shown


LOPSIDED = """\
version: 1
name: lopsided
nodes: [{name: a, kind: gpu}, {name: b, kind: gpu}, {name: c, kind: gpu}, {name: sw, kind: switch}]
links:
  - {from: a, to: sw, bandwidth: 20 GB/s}
  - {from: b, to: sw, bandwidth: 10 GB/s, one-way: true}
  - {from: sw, to: b, bandwidth: 20 GB/s, one-way: true}
  - {from: c, to: sw, bandwidth: 40 GB/s, one-way: true}
  - {from: sw, to: c, bandwidth: 20 GB/s, one-way: true}
  - {from: a, to: b, bandwidth: 20 GB/s}
"""
"""More leaves `c` than enters it."""


def test_trees_with_free_roots_count_for_what_is_reached(tmp_path, capsys):
    path = tmp_path / "lopsided.yaml"
    path.write_text(LOPSIDED)
    answer = asked(capsys, str(path), "-c", "allreduce")
    assert answer["reached_gb_per_s"] > answer["composition_gb_per_s"]
    assert run(["bound", str(path), "-c", "allreduce"]) == 0
    assert "by trees with free roots" in capsys.readouterr().out
