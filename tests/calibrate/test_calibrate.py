"""Constants recovered from logs that the simulator made, and honesty about what does not fit."""

import hashlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colsynth import api
from colsynth.calibrate import library_program
from colsynth.calibrate.fit import Standing, fit
from colsynth.calibrate.solution import NARROW, Constant
from colsynth.cli.main import run
from colsynth.cost import default_model
from colsynth.cost.model_file import read_model
from colsynth.runtimes import profile
from colsynth.simulate import simulate
from colsynth.topology.communicator import communicators

SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "topology" / "nccl_tests"
MSCCL = profile("msccl")
BASE = default_model(MSCCL)
TRUTH = replace(
    BASE,
    link_efficiency=0.72,
    network_efficiency=0.88,
    rate={**BASE.rate, "Simple": 17.0, "LL": 2.9},
    launch={**BASE.launch, "Simple": 11.0, "LL": 7.0},
    step={**BASE.step, "Simple": 1.4},
    hop={**BASE.hop, "Simple": 2.3},
    network_hop={**BASE.network_hop, "Simple": 13.0},
)
BOXES = api.load_topology("dgx-a100", nodes=2)
ONE, TWO = tuple(range(8)), tuple(range(16))
KEY = ("rate", "Simple")
RUNS = [
    ("all_reduce_1", "ring", "Simple", 1, ONE),
    ("all_reduce_16", "ring", "Simple", 16, ONE),
    ("all_reduce_two_boxes", "ring", "Simple", 8, TWO),
    ("sendrecv_nv", None, "Simple", 1, (0, 1)),
    ("sendrecv_ib", None, "Simple", 4, (0, 8)),
    ("all_reduce_ll", "ring", "LL", 2, ONE),
]


def logged(folder, name, algorithm, protocol, channels, members, rng, truth=TRUTH):
    """Write what nccl-tests would print on a machine with other constants, with 3 % of noise."""
    test = "sendrecv" if algorithm is None else "all_reduce"
    collective = {"sendrecv": "sendrecv", "all_reduce": "allreduce"}[test]
    problem = api.make_problem(BOXES, "allreduce", groups=[members])
    place = communicators(problem)[0].problem.topology
    program = library_program(place, collective, algorithm, protocol, BASE, channels)
    sizes = [2**power for power in range(10, 30, 3)]
    lines = [f"mpirun -x NCCL_ALGO={algorithm} -x NCCL_PROTO={protocol} ./{test}_perf"]
    lines.append(f"NCCL INFO {channels} coll channels, {channels} p2p channels per peer")
    for rank, member in enumerate(members):
        host = f"host{member // 8} device {member % 8}"
        lines.append(f"#  Rank {rank:2} Group  0 Pid 7 on {host} [0000:04:00] A100")
    lines.append("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong")
    for point in simulate(program, place, MSCCL, sizes, truth):
        halves = point.seconds * 1e6 * np.exp(rng.normal(0, 0.03, 2))
        cells = " ".join(f"{time:.4f} 0.0 0.0 0" for time in halves)
        lines.append(f"{point.size_bytes} {point.size_bytes // 4} float sum -1 {cells}")
    path = folder / f"{name}.txt"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.slow
def test_constants_of_another_machine_are_recovered(tmp_path, capsys):
    rng = np.random.default_rng(14)
    paths = [logged(tmp_path, *item, rng) for item in RUNS]
    model = tmp_path / "model.yaml"
    logs = [word for path in paths for word in ("--log", str(path))]
    case = ["calibrate", "dgx-a100", "--nodes", "2", "-r", "msccl", *logs]
    assert run([*case, "-o", str(model), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    by_standing = {"told": {}, "tied": {}, "untold": {}}
    for item in answer["constants"]:
        value = getattr(TRUTH, item["name"])
        true = value if item["protocol"] is None else value[item["protocol"]]
        key = (item["name"], item["protocol"])
        by_standing[item["standing"]][key] = item["value"] / true - 1
        if item["standing"] == "untold":
            assert item["value"] == item["default"]
    told = by_standing["told"]
    assert {name for name, _ in told} >= {"link_efficiency", "network_efficiency", "rate"}
    assert max(map(abs, told.values())) < NARROW == 0.05
    # A hop of LL is the sum of two constants: nothing tells them apart.
    assert by_standing["untold"] or by_standing["tied"]
    assert ("step", "LL") not in told
    assert {"wait", "local_rate", "hop LL128"} <= set(answer["untouched"])
    assert abs(answer["rows"][0]["residual"]) < 0.15
    assert 0.01 < answer["noise"] < 0.05
    # The file is what --model takes, for this runtime alone, and names the logs.
    fitted = read_model(model, BASE, "msccl")
    assert fitted.rate["Simple"] == pytest.approx(TRUTH.rate["Simple"], rel=0.05)
    assert all(hashlib.sha256(p.read_bytes()).hexdigest() in model.read_text() for p in paths)
    assert run(["simulate", "--show-model", "-r", "rccl", "--model", str(model)]) == 2
    assert "fitted for msccl" in capsys.readouterr().err


@pytest.mark.parametrize("seed", [3, 5])
def test_a_log_that_links_or_threadblocks_explain_tells_neither_alone(tmp_path, capsys, seed):
    """Large messages on many channels are limited by links, which one rate imitates."""
    rng, case = np.random.default_rng(seed), ["calibrate", "dgx-a100", "--nodes", "2", "--json"]
    many = logged(tmp_path, "many", "ring", "Simple", 16, ONE, rng)
    few = logged(tmp_path, "few", "ring", "Simple", 1, ONE, rng)
    far = logged(tmp_path, "far", None, "Simple", 4, (0, 8), rng)
    for logs, told in (((many,), False), ((many, far), False), ((many, few, far), True)):
        words = [word for log in logs for word in ("--log", str(log))]
        assert run([*case, "-r", "msccl", *words]) == 0
        answer = json.loads(capsys.readouterr().out)
        (rate,) = (x for x in answer["constants"] if (x["name"], x["protocol"]) == KEY)
        assert (rate["standing"] == "told") == told
        assert ("link_efficiency" in rate["tied_to"]) != told
        assert told == (abs(rate["value"] / TRUTH.rate["Simple"] - 1) < NARROW)


def test_each_channel_of_a_tree_is_a_tree(tmp_path, capsys):
    """NCCL's `8 coll channels` are four pairs of trees; each has a way up and a way down here."""
    program = library_program(BOXES, "allreduce", "tree", "Simple", BASE, 8)
    assert program.header.channels == 2 * 8
    log = logged(tmp_path, "tree", "tree", "Simple", 8, ONE, np.random.default_rng(1))
    assert run(["calibrate", "dgx-a100", "-r", "msccl", "--json", "--log", str(log)]) == 0
    assert "allreduce tree Simple, 8 channels" in capsys.readouterr().out


def test_what_hangs_from_a_file_is_no_matter_for_a_library():
    program = library_program(BOXES, "reduce", "ring", "Simple", BASE, 2)
    assert simulate(program, BOXES, MSCCL, [2**20])[0].seconds > 0


@pytest.mark.skipif(not SAMPLES.exists(), reason="samples are not part of the repository")
def test_public_logs_are_fitted_or_refused_with_the_reason(capsys):
    a40 = str(SAMPLES / "a40_2x1_sendrecv_excerpt_issue214.txt")
    case = ["calibrate", "dgx-a100", "--nodes", "2", "-r", "msccl", "--log"]
    assert run([*case, a40]) == 0
    shown = capsys.readouterr().out
    assert "the logs do not tell" in shown
    worst = float(shown.split("worst residual ")[1].split("%")[0])
    assert 0 < worst < 15
    h200 = str(SAMPLES / "h200_2x8_all_reduce_issue256.txt")
    assert run(["calibrate", "dgx-h100", "--nodes", "2", "-r", "msccl", "--log", h200]) == 2
    refusal = capsys.readouterr().err
    assert "CS624" in refusal
    assert "in-network reduction" in refusal


def test_defaults_that_agree_one_by_one_but_not_together_are_not_kept(tmp_path, capsys):
    slow, quick = {**BASE.rate, "Simple": 9.2}, {**BASE.hop, "Simple": 0.16}
    truth = replace(BASE, rate=slow, hop=quick, step={**BASE.step, "Simple": 0.5})
    path = logged(tmp_path, *RUNS[1], np.random.default_rng(3), truth)
    assert run(["calibrate", "dgx-a100", "-r", "msccl", "--log", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert abs(answer["rows"][0]["residual"]) < 0.1
    assert answer["warnings"] == []


def table(path, rows, devices=8, host="host{0}"):
    lines = [
        f"# Rank {rank} Pid 7 on {host.format(rank // 8)} device {rank % 8} [0x00] A100"
        for rank in range(devices)
    ]
    lines.append("# size count type redop root time algbw busbw #wrong time algbw busbw #wrong")
    lines += [f"{size} {size // 4} float sum -1 {us} 0 0 0 {us} 0 0 0" for size, us in rows]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([",algorithm"], "CS627"),
        ([",protocol=LL64"], "CS627"),
        ([",channels=0"], "CS627"),
        ([",channels=2,channels=4"], "CS627"),
        ([",algorithm=nvls"], "CS624"),
        ([",algorithm=ring"], "CS624"),  # small messages of an unknown protocol
        ([",algorithm=ring", "--rows=-1"], "CS210"),
        ([",algorithm=ring", "--log={},algorithm=tree"], "CS627"),
    ],
)
def test_options_and_logs_that_fit_nothing(tmp_path, capsys, options, code):
    path = table(tmp_path / "all_reduce.txt", [(1024, 60.0), (2048, 61.0)])
    more = [option.format(path) for option in options[1:]]
    assert run(["calibrate", "dgx-a100", "-r", "msccl", "--log", path + options[0], *more]) == 2
    assert code in capsys.readouterr().err


def test_a_log_of_more_hosts_than_boxes(tmp_path, capsys):
    path = table(tmp_path / "all_reduce.txt", [(1024, 60.0)], 16)
    assert run(["calibrate", "dgx-a100", "-r", "msccl", "--log", path]) == 2
    refusal = capsys.readouterr().err
    assert "CS623" in refusal
    assert "--nodes 2" in refusal


def test_a_log_without_devices_is_not_of_a_smaller_machine(tmp_path, capsys):
    path = tmp_path / "all_reduce.txt"
    device = re.compile(r".*Rank .*\n")
    whole = Path(table(path, [(1024, 60.0)])).read_text()
    path.write_text("# nThread 1 nGpus 8 minBytes 1024\n" + device.sub("", whole))
    assert run(["calibrate", "ring:4", "-r", "msccl", "--log", str(path)]) == 2
    assert "CS623" in capsys.readouterr().err


@pytest.mark.parametrize(("ranks", "advice"), [(4, "which GPUs took part"), (16, "--nodes")])
def test_a_command_of_another_number_of_ranks_is_refused(tmp_path, capsys, ranks, advice):
    path = tmp_path / "log.txt"
    whole = Path(table(path, [(1024, 60.0)], devices=0)).read_text()
    path.write_text(f"mpirun -np {ranks} ./all_reduce_perf -g 1\n{whole}")
    assert run(["calibrate", "dgx-a100", "-r", "msccl", "--log", str(path)]) == 2
    refusal = capsys.readouterr().err
    assert f"CS623]: log.txt: the run was on {ranks} GPUs (line 1)" in refusal
    assert advice in refusal


@pytest.mark.parametrize(
    ("machine", "gpu", "differs"),
    [
        ("dgx-a100", "NVIDIA A800-SXM4-80GB", False),
        ("dgx-a100", "NVIDIA H100 80GB HBM3", True),
        ("dgx-a100", "AMD Instinct MI250X", True),
        ("ring:8", "NVIDIA H100 80GB HBM3", False),
    ],
)
def test_gpus_of_another_generation_are_told(tmp_path, capsys, machine, gpu, differs):
    path = tmp_path / "all_reduce.txt"
    text = Path(table(path, [(2**24, 900.0), (2**26, 3500.0)])).read_text()
    path.write_text(text.replace("A100", gpu))
    run(["calibrate", machine, "-r", "msccl", "--log", f"{path},algorithm=ring,channels=1"])
    assert (
        f"all_reduce.txt:1: warning[CS629]: the log lists GPUs called {gpu}"
        in capsys.readouterr().err
    ) == differs


def test_rounds_have_no_constants_to_fit(tmp_path, capsys):
    path = table(tmp_path / "all_reduce.txt", [(1024, 60.0)])
    assert run(["calibrate", "dgx-a100", "-r", "torch", "--log", path]) == 2
    refusal = capsys.readouterr().err
    assert "CS625" in refusal
    assert "-r msccl-executor" in refusal


def test_without_scipy_there_is_one_diagnostic(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    rows = [(2**power, 60.0 + 2**power / 1e5) for power in range(10, 20)]
    path = table(tmp_path / "all_reduce.txt", rows)
    pinned = f"{path},algorithm=ring,protocol=Simple,channels=2"
    assert run(["calibrate", "dgx-a100", "-r", "msccl", "--log", pinned]) == 2
    assert "CS626" in capsys.readouterr().err


def test_links_are_fitted_to_copies_unless_kernels_tell_of_them(capsys):
    corpus = Path(__file__).parents[1] / "corpus" / "logs"
    case = ["calibrate", "dgx-a100", "--nodes", "2", "-r", "msccl", "--json"]
    files = ("nvbandwidth.txt", "ib_write_bw.txt", "ib_send_lat.txt")
    logs = [word for name in files for word in ("--log", str(corpus / name))]
    assert run([*case, *logs]) == 0
    answer = json.loads(capsys.readouterr().out)
    values = {item["name"]: item["value"] for item in answer["constants"]}
    assert values["link_efficiency"] == pytest.approx(0.909, rel=0.01)  # 272.85 of 300 GB/s
    assert values["network_efficiency"] == pytest.approx(0.985, rel=0.01)  # of 25 GB/s
    assert any("NIC to NIC 1.6 us" in note for log in answer["logs"] for note in log["notes"])


def test_rows_that_depend_on_no_constant_leave_all_at_their_defaults():
    pytest.importorskip("scipy")

    class Deaf:
        def residuals(self, _model):
            return np.full(5, 0.3)

        def change(self, _here, _other, _constant):
            return np.zeros(5)

    constants = [Constant("launch", "Simple"), Constant("link_efficiency", None)]
    model, estimates, _ = fit(Deaf(), BASE, constants)
    assert model == BASE
    assert [x.standing for x in estimates] == [Standing.UNTOLD] * 2


class Linear:
    """Residuals that are linear in the logarithms of the constants, with noise."""

    def __init__(self, names, slopes, truth, noise):
        self.names, self.slopes = names, slopes
        self.offset = noise - slopes @ truth

    def residuals(self, model):
        return self.slopes @ np.log([name.of(model) for name in self.names]) + self.offset

    def change(self, here, other, _constant):
        return self.residuals(other) - self.residuals(here)


@pytest.mark.parametrize(("rows", "count"), [(1, 1), (2, 1), (3, 2), (6, 2), (12, 5)])
def test_intervals_cover_the_truth_and_no_default_outside_its_interval_is_kept(rows, count):
    pytest.importorskip("scipy")
    rng = np.random.default_rng(rows)
    words = ("launch", "step", "hop", "rate", "network_hop")
    names = [Constant(word, "Simple") for word in words[:count]]
    defaults = np.log([name.of(BASE) for name in names])
    covered = []
    for _ in range(60):
        slopes = rng.dirichlet(np.ones(count), rows)
        truth = defaults + rng.normal(0, 0.8, count)
        judge = Linear(names, slopes, truth, rng.normal(0, 0.03, rows))
        found = fit(judge, BASE, names)[1]
        assert all(item.low <= item.value <= item.high for item in found)
        if all(item.standing is not Standing.UNTOLD for item in found):
            pairs = zip(found, np.exp(truth), strict=True)
            covered += [item.low <= true <= item.high for item, true in pairs]
    assert np.mean(covered) > 0.9


@pytest.mark.parametrize(
    ("time", "status", "said"),
    [
        (lambda size: 68 + size / 1e3, 2, "no constants reproduce"),
        (lambda size: 68 + size / 118e3 + 300 * (size % 7 == 4), 0, "not reproduce the log"),
        (lambda size: (68 + size / 118e3) * (1 + (size == 2**22)), 0, "1 row of the log is far"),
        (lambda size: 68 + size / 118e3, 0, ""),
    ],
)
def test_a_log_that_the_fitted_model_misses_is_told(tmp_path, capsys, time, status, said):
    model = tmp_path / "model.yaml"
    sizes = [2**power for power in range(12, 32, 2)]
    path = table(tmp_path / "all_reduce.txt", [(size, time(size)) for size in sizes])
    pinned = f"{path},algorithm=ring,protocol=Simple,channels=16"
    case = ["calibrate", "dgx-a100", "-r", "msccl", "--log", pinned, "-o", str(model)]
    assert run(case) == status
    errors = capsys.readouterr().err
    assert said in errors
    assert ("CS628" in errors) == bool(said)
    assert model.exists() == (status == 0)
    assert status or ("# warning CS628" in model.read_text()) == bool(said)


def test_a_figure_above_the_bandwidth_of_a_link_is_left_out(tmp_path, capsys):
    path = tmp_path / "ib_write_bw.txt"
    text = (Path(__file__).parents[1] / "corpus" / "logs" / "ib_write_bw.txt").read_text()
    path.write_text(text.replace("23500.0", "235000.0").replace("23400.0", "234000.0"))
    case = ["calibrate", "dgx-a100", "--nodes", "2", "-r", "msccl", "--log", str(path)]
    assert run(case) == 2
    assert "faster than the link of 25 GB/s" in capsys.readouterr().err


def test_a_copy_of_a_log_counts_once(tmp_path, capsys):
    rows = [(2**power, 68 + 2**power / 118e3) for power in range(12, 32, 4)]
    first, second = (table(tmp_path / f"all_reduce_{name}.txt", rows) for name in "ab")
    case = ["calibrate", "dgx-a100", "-r", "msccl", "--json"]
    options = ",algorithm=ring,protocol=Simple,channels=16"
    answers = []
    for paths in ([first], [first, second, first]):
        logs = [word for path in paths for word in ("--log", path + options)]
        assert run([*case, *logs]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]["constants"] == answers[1]["constants"]
    assert answers[0]["rows"] == answers[1]["rows"]
    notes = [log["notes"] for log in answers[1]["logs"]]
    assert notes[1] == notes[2] == ["the same bytes as all_reduce_a.txt: counted once"]
