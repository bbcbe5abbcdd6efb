"""Numbering of ranks for launchers, and orders of hosts that are faster."""

import json
import re
from fractions import Fraction
from itertools import pairwise, permutations
from subprocess import check_output

import numpy as np
import pytest

from colsynth import api
from colsynth.cli.main import run
from colsynth.errors import InputError
from colsynth.model import Kind, Link, Node, Topology
from colsynth.ranks import Place, launch, reorder, reorder_topology, reordered
from colsynth.ranks.matrix import network_of, read_matrices
from colsynth.ranks.patterns import seconds_of, stages_of
from colsynth.ranks.search import bound_of


def fat_tree(leaves):
    """Return 16 hosts of one GPU on four leaves, whose uplinks carry half of their hosts."""
    nodes = [Node(f"gpu{i}", Kind.GPU, i) for i in range(16)]
    nodes += [Node(f"leaf{i}", Kind.SWITCH) for i in range(4)] + [Node("spine", Kind.SWITCH)]
    us = Fraction(1, 10**6)
    pairs = [(host, 16 + leaf, 25) for host, leaf in enumerate(leaves)]
    pairs += [(16 + leaf, 20, 50) for leaf in range(4)]
    links = [
        Link(*ends, Fraction(rate * 10**9), us) for a, b, rate in pairs for ends in ((a, b), (b, a))
    ]
    links.sort(key=lambda link: (link.source, link.target))
    return Topology("fat tree", tuple(nodes), tuple(links), tuple(range(16)))


@pytest.mark.parametrize("pattern", ["ring", "halving-doubling"])
def test_shuffled_hosts_of_a_fat_tree_are_put_back(pattern):
    size = 2**26
    plain = reorder_topology(fat_tree([host // 4 for host in range(16)]), pattern, size)
    rng = np.random.default_rng(3)
    machine = fat_tree((rng.permutation(16) // 4).tolist())
    found = reorder_topology(machine, pattern, size)
    assert found.after < 0.9 * found.before
    assert found.after < 1.02 * plain.before
    assert sorted(found.order) == list(range(16))
    assert found == reorder_topology(machine, pattern, size)
    again = reordered(machine, found.order)
    assert [again.nodes[node].box for node in again.ranks] == list(range(16))


@pytest.mark.parametrize("pattern", ["ring", "tree", "halving-doubling"])
def test_no_random_order_is_faster_and_none_beats_the_bound(pattern):
    rng = np.random.default_rng(64)
    hosts = 64 if pattern == "ring" else 16
    latency = rng.uniform(5e-6, 100e-6, (hosts, hosts))
    network = network_of(latency, rng.uniform(1e9, 25e9, (hosts, hosts)))
    stages = stages_of(pattern, hosts)
    orders = np.array([rng.permutation(hosts) for _ in range(1000)])
    for size in (1024,) if pattern == "ring" else (1024, 2**24):
        found = reorder(network, pattern, size)
        random = seconds_of(orders, stages, network, size)
        assert found.after <= min(random.min(), found.before)
        assert 0 < bound_of(stages, network, size) <= found.after
        chosen = seconds_of(np.array([found.order]), stages, network, size)
        assert chosen[0] == pytest.approx(found.after)


def test_a_small_ring_is_as_good_as_the_best_of_all_orders():
    rng = np.random.default_rng(7)
    network = network_of(rng.uniform(1e-6, 9e-6, (7, 7)), None)
    stages = stages_of("ring", 7)
    orders = np.array([(0, *rest) for rest in permutations(range(1, 7))])
    best = seconds_of(orders, stages, network, 8).min()
    assert reorder(network, "ring", 8).after == pytest.approx(best)
    assert bound_of(stages, network, 8) <= best


def places(text):
    """Return places such as ``"a0 a1 b0"``."""
    return tuple(Place(word[0], int(word[1:])) for word in text.split())


def test_launchers_say_the_same_order_in_their_own_words():
    plain = places("b0 b1 a0 a1")
    assert launch("openmpi", plain).commands == (
        "mpirun -np 4 --host b:2,a:2 --map-by slot ./program",
    )
    assert launch("mpich", plain).file == "b:2\na:2\n"
    slurm = launch("slurm", plain)
    assert slurm.file.split() == ["b", "b", "a", "a"]
    assert "--distribution=arbitrary" in slurm.commands[-1]
    first, second = launch("torchrun", plain).commands
    assert first.startswith("ssh b torchrun")
    assert "--node-rank=1 --nproc-per-node=2 --master-addr=b" in second


def test_orders_of_gpus_and_interleaved_hosts():
    woven = places("a1 b1 a0 b0")
    answer = launch("openmpi", woven)
    assert answer.file.split() == ["a", "b", "a", "b"]
    assert answer.commands[0] == "export CUDA_VISIBLE_DEVICES=1,0"
    assert "--map-by seq -x CUDA_VISIBLE_DEVICES" in answer.commands[1]
    assert (
        "CUDA_VISIBLE_DEVICES=1,0 torchrun" in launch("torchrun", places("a0 a1 b1 b0")).commands[1]
    )


@pytest.mark.parametrize(
    ("launcher", "text", "why"),
    [
        ("mpich", "a0 b0 a1 b1", "do not follow each other"),
        ("torchrun", "a0 b0 a1 b1", "do not follow each other"),
        ("torchrun", "a0 a1 b0", "one number"),
        ("openmpi", "a0 b1 a1 b0", "other, and hosts order their GPUs differently"),
    ],
)
def test_what_a_launcher_cannot_express_is_refused_with_the_reason(launcher, text, why):
    with pytest.raises(InputError) as refusal:
        launch(launcher, places(text))
    assert refusal.value.diagnostic.code == "CS632"
    assert why in str(refusal.value.diagnostic)


def test_hosts_may_order_their_gpus_differently():
    """As after the failure of a GPU: each host gets an environment of its own."""
    uneven = places("a0 a2 b0 b1 b2")
    (command,) = launch("openmpi", uneven).commands
    parts = "-np 2 --host a:2 -x CUDA_VISIBLE_DEVICES=0,2 ./program", "-np 3 --host b:3 ./program"
    assert command == f"mpirun {' : '.join(parts)}"
    assert launch("mpich", uneven).file == "a:2\nb:3\n"
    assert launch("mpich", uneven).commands == (
        "mpiexec -f {file} -n 2 -env CUDA_VISIBLE_DEVICES 0,2 ./program : -n 3 ./program",
    )
    slurm = launch("slurm", places("a0 b1 a2 b0"))
    assert slurm.file.split() == ["a", "b", "a", "b"]
    choice = slurm.commands[-1].partition("bash -c '")[2].partition("exec")[0]
    for host, order in (("a", "0,2"), ("b", "1,0"), ("c", "")):
        script = f"SLURMD_NODENAME={host}; {choice} echo $CUDA_VISIBLE_DEVICES"
        assert check_output(["bash", "-c", script], env={}, text=True).strip() == order


def test_a_seed_below_zero_is_refused():
    with pytest.raises(InputError, match="CS210"):
        reorder(network_of(np.full((4, 4), 1e-6), None), "ring", 8, seed=-1)


def test_the_command_writes_the_file_of_a_launcher(tmp_path, capsys):
    hosts, out = tmp_path / "hosts.txt", tmp_path / "my ranks.txt"
    hosts.write_text("# rack 7\nn1 slots=8\nn2:8\n")
    case = ["ranks", "dgx-a100", "--nodes", "2", "--hosts", str(hosts), "--for", "slurm"]
    assert run([*case, "--group", "8,0,9,1", "-o", str(out)]) == 0
    assert out.read_text().split() == ["n2", "n1", "n2", "n1"]
    export = capsys.readouterr().out.partition("srun")[0]
    script = f"{export} echo $SLURM_HOSTFILE"
    assert check_output(["bash", "-c", script], text=True).strip() == str(out)
    assert run([*case, "--group", "8,0,9,1", "-o", str(out)]) == 2
    assert "CS207" in capsys.readouterr().err
    # A GPU that is left out does not change the numbers of the others.
    assert run([*case, "--drop-gpu", "0", "--drop-gpu", "8", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["ranks"][7] == {"host": "n2", "device": 1}
    assert answer["commands"][0] == "export CUDA_VISIBLE_DEVICES=1,2,3,4,5,6,7"


def test_slots_of_a_host_are_a_limit(tmp_path, capsys):
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("n1:16\n\nn2 slots=4\n")
    case = ["ranks", "dgx-a100", "--nodes", "2", "--hosts", str(hosts), "--for", "slurm"]
    assert run(case) == 2
    assert capsys.readouterr().err.startswith(f"{hosts}:3:1: error[CS631]: n2 has 4 slots")
    assert run([*case, "--group", "0-7,8-11"]) == 0
    matrix = tmp_path / "latency.csv"
    matrix.write_text("us,n1,n2\nn1,,5\nn2,5,\n")
    case = ["ranks", "--hosts", str(hosts), "--for", "slurm", "--matrix", str(matrix)]
    assert run([*case, "--reorder", "ring", "--gpus-per-host", "8"]) == 2
    assert "help: correct its slots, or --gpus-per-host\n" in capsys.readouterr().err


def test_hosts_of_a_cloud_are_ordered_by_a_matrix_or_by_logs(tmp_path, capsys):
    hosts = tmp_path / "hosts.txt"
    hosts.write_text("n1\nn2\nn3\nn4\n")
    near = {("n1", "n3"), ("n3", "n2"), ("n2", "n4")}
    names = ["n1", "n2", "n3", "n4"]
    text = "us," + ",".join(names) + "\n"
    logs = []
    for a in names:
        row = [5.0 if (a, b) in near or (b, a) in near else 50.0 for b in names]
        text += ",".join([a, *("" if a == b else str(x) for b, x in zip(names, row, strict=True))])
        text += "\n"
        for b, time in zip(names, row, strict=True):
            if a < b:
                logs.append(tmp_path / f"{a}_{b}_sendrecv.txt")
                logs[-1].write_text(
                    f"# Rank 0 Pid 1 on {a} device 0 [0] X\n# Rank 1 Pid 1 on {b} device 0 [0] X\n"
                    f"8 2 float sum -1 {time} 0 0 0 {time} 0 0 0\n"
                    f"8388608 2097152 float sum -1 {time + 800} 0 0 0 {time + 800} 0 0 0\n"
                )
    matrix = tmp_path / "latency.csv"
    matrix.write_text(text)
    case = ["ranks", "--hosts", str(hosts), "--for", "mpich", "--gpus-per-host", "8"]
    case += ["--reorder", "ring", "--size", "1KiB"]
    given = [word for log in logs for word in ("--log", str(log))]
    for source in (["--matrix", str(matrix)], given):
        assert run([*case, *source, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        found = answer["reordered"]
        circle = [*found["hosts"], found["hosts"][0]]
        steps = {frozenset(pair) for pair in pairwise(circle)}
        assert {frozenset(pair) for pair in near} <= steps
        assert found["after_us"] < 0.7 * found["before_us"]
        assert answer["file"].split() == [f"{host}:8" for host in found["hosts"]]
        assert len(answer["ranks"]) == 32
    rates = tmp_path / "rates.csv"
    rates.write_text(re.sub(r"[0-9]+\.0", "10", text).replace("us", "GB/s"))
    for files, words in (
        ((matrix, rates), ["ring, 1 KiB: ", "by latencies and full links alone\n"]),
        ((matrix,), ["ring: ", "no bandwidth is known, so the size does not count\n"]),
        ((rates,), ["ring, 1 KiB: ", "no latency is known\n"]),
    ):
        given = [word for file in files for word in ("--matrix", str(file))]
        assert run([*case, *given]) == 0
        shown = capsys.readouterr().out
        assert all(word in shown for word in words)
        assert run([*case, *given, "--json"]) == 0
        size = json.loads(capsys.readouterr().out)["reordered"]["size_bytes"]
        assert size == (None if files == (matrix,) else 1024)


def test_hosts_are_ordered_for_a_schedule_file():
    """Trees of a plain machine on hosts that were exchanged: the order puts them back."""
    plain = fat_tree([host // 4 for host in range(16)])
    problem = api.make_problem(plain, "allgather")
    done = api.compile(problem, "msccl", algorithm="ring", level=0, mode="out-of-place")
    program = done.artefacts[0].program
    woven = fat_tree([host % 4 for host in range(16)])
    found = reorder_topology(woven, program, 2**26)
    assert found.after < 0.9 * found.before
    assert found.after < 1.02 * reorder_topology(plain, program, 2**26).before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("torchrun", "CS636"),
        ("torchrun --reorder ring", "CS636"),
        ("openmpi --reorder ring", "CS636"),
        ("lsf", "CS633"),
    ],
)
def test_a_file_that_no_launcher_takes_is_refused_before_the_work(
    words, code, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("colsynth.cli.ranks._placed", None)
    case = ["ranks", "dgx-a100", "--hosts", "none.txt", "-o", str(tmp_path / "ranks.txt")]
    assert run([*case, "--for", *words.split()]) == 2
    assert f"error[{code}]" in capsys.readouterr().err


def test_a_single_host_has_no_order():
    with pytest.raises(InputError, match="a single host has no order"):
        reorder(network_of(np.ones((1, 1)), None), "ring", 8)


def test_an_unknown_gap_is_null_in_json(tmp_path, capsys):
    """In a tree by bandwidths alone, no bound is known."""
    hosts, matrix = tmp_path / "hosts.txt", tmp_path / "rates.csv"
    hosts.write_text("n1\nn2\n")
    matrix.write_text("GB/s,n1,n2\nn1,,1\nn2,1,\n")
    case = ["ranks", "--hosts", str(hosts), "--matrix", str(matrix), "--reorder", "tree"]
    assert run([*case, "--for", "mpich", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reordered"]["gap"] is None
    assert run([*case, "--for", "mpich"]) == 0
    assert "gap unknown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("us,n1,n2\nn1,,x\nn2,5,\n", ":2", "from n1 to n2: expected a number from"),
        ("us,n1,n2\nn1,,5\nn2,1e308,\n", ":3", "from n2 to n1: expected a number from"),
        ("us,n1,n2\nn1,,5\nn2,5\n", ":3", "the row of n2 has 1 of 2 numbers"),
        ("us,n1,n2\nn2,,5\nn1,5,\n", ":2", "the row of n1 belongs here"),
        ("us,n1,n2\nn1,,5\n", "", "2 hosts need 2 rows"),
        ("us,n1,n1\nn1,,5\nn1,5,\n", "", "it names n1 twice"),
        ('{"hosts": ["n1", "n2"], "latency_us": [[1, null], [5, 1]]}', "", "not None"),
        ('{"host": ["n1", "n2"]}', "", "`hosts`"),
    ],
)
def test_a_wrong_matrix_is_refused_with_the_place(tmp_path, text, line, why):
    path = tmp_path / "matrix"
    path.write_text(text)
    with pytest.raises(InputError) as refusal:
        read_matrices([path], ["n1", "n2"])
    diagnostic = refusal.value.diagnostic
    assert (str(diagnostic.span), diagnostic.code) == (f"{path}{line}", "CS634")
    assert why in diagnostic.notes[0]


def test_what_two_files_tell_of_the_same_is_refused(tmp_path):
    """Which of them counts would be a guess."""
    path, other = tmp_path / "idle.csv", tmp_path / "busy.csv"
    path.write_text("us,n1,n2\nn1,,5\nn2,5,\n")
    other.write_text("us,n1,n2\nn1,,50\nn2,50,\n")
    with pytest.raises(InputError, match="another file has the latency already") as refusal:
        read_matrices([path, other], ["n1", "n2"])
    assert str(refusal.value.diagnostic.span) == str(other)
    both = tmp_path / "both.json"
    rows = [[1, 5], [5, 1]]
    both.write_text(
        json.dumps({"hosts": ["n1", "n2"], "latency_us": rows, "bandwidth_gb_per_s": rows})
    )
    with pytest.raises(InputError, match="has the bandwidth, latency already"):
        read_matrices([both, both], ["n1", "n2"])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "text",
    ["us,n1,n2\r\nn1,,5\r\nn2,7,\r\n", '{"hosts": ["n1", "n2"], "latency_us": [[1, 5], [7, 1]]}'],
)
def test_a_matrix_in_the_encodings_of_spreadsheets_is_read(tmp_path, text, encoding):
    path = tmp_path / "matrix"
    path.write_bytes(text.encode(encoding))
    found = read_matrices([path], ["n1", "n2"])
    assert found.latency[0, 1] == pytest.approx(5e-6)
    assert found.latency[1, 0] == pytest.approx(7e-6)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--for", "slurm"], "CS636"),
        (["dgx-a100", "--for", "slurm", "--matrix", "{bad}"], "CS636"),
        (["dgx-a100", "--nodes", "2", "--for", "torchrun", "-o", "{bad}2"], "CS636"),
        (["dgx-a100", "--nodes", "2", "--for", "openmpi", "-o", "{bad}2"], "CS636"),
        (["dgx-a100", "--nodes", "2", "--for", "slurm", "--gpus-per-host", "8"], "CS636"),
        (["dgx-a100", "--nodes", "2", "--for", "slurm", "--size", "1MiB"], "CS636"),
        (["dgx-a100", "--for", "slurm", "--reorder", "ring", "--size", "0"], "CS604"),
        (["dgx-a100", "--nodes", "2", "--for", "slurm", "--reorder", "none.json"], "CS502"),
        (["dgx-a100", "--for", "slurm"], "CS631"),
        (["dgx-a100", "--nodes", "2", "--for", "lsf"], "CS633"),
        (["dgx-a100", "--nodes", "2", "--for", "slurm", "--reorder", "star"], "CS635"),
        (["--for", "slurm", "--reorder", "ring", "--matrix", "{bad}"], "CS634"),
        (["--for", "slurm", "--reorder", "ring", "--log", "{bad}"], "CS620"),
    ],
)
def test_wrong_options_end_in_one_diagnostic(tmp_path, capsys, options, code):
    (tmp_path / "hosts.txt").write_text("n1\nn2\n")
    (tmp_path / "bad").write_text("us,n1,n3\nn1,,5\nn3,5,\n")
    words = [word.format(bad=tmp_path / "bad") for word in options]
    assert run(["ranks", "--hosts", str(tmp_path / "hosts.txt"), *words]) == 2
    assert code in capsys.readouterr().err
