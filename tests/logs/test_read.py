"""Logs of all tools and versions: what is read, what is left out, what is refused."""

import math
import random
import re
from contextlib import suppress
from pathlib import Path

import pytest

from colsynth.errors import InputError
from colsynth.logs import Device, Pinned, read_log
from tests.each import each
from tests.fuzz.mutations import mutated_text, pick

CORPUS = Path(__file__).parents[1] / "corpus" / "logs"
SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "topology" / "nccl_tests"


def times(log):
    return {row.size: round(row.seconds * 1e6, 6) for row in log.rows}


def test_a_table_with_statistics_between_other_lines():
    log = read_log(CORPUS / "new_layout.txt")
    assert log.pinned == Pinned("allreduce", "ring", "Simple", 8)
    assert [device[:2] for device in log.devices] == [("n1", 0), ("n1", 1), ("n2", 0), ("n2", 1)]
    # The median of both halves; of 64 MiB one half is wrong; the first size was a warm-up.
    assert times(log) == {2**16: 41, 2**22: 102, 2**26: 700, 2**28: 2800}
    assert log.notes[:2] == (
        "1 row with wrong results left out",
        "1 size at the start left out as warm-up",
    )
    assert len(log.digest) == 64


def test_an_old_table_under_the_labels_of_srun():
    log = read_log(CORPUS / "old_layout_all_gather.txt")
    assert log.pinned == Pinned("allgather")
    assert log.devices[1] == Device("n1", 1, "NVIDIA GeForce RTX 2080 Ti", 4)
    assert times(log) == {2**20: 201, 2**21: 390}


@pytest.mark.parametrize(
    "label",
    [
        "[1,0]<stdout>:",
        "[1,0]<stdout> ",
        "[prterun-node1-77@1,0][node1:7]<stdout>: ",
        "[0] ",
        "node1: ",
        "(node-1.a) ",
        "0: ",
        "[pod/worker-0/main] ",
        "worker-1  | ",
        "2026-11-28T20:25:13.123456789Z ",
        "[2026-11-28 20:25:13] ",
        "2026-11-28 20:25:13,123 node1: ",
    ],
)
def test_labels_of_launchers_do_not_count(tmp_path, label):
    for name in ("new_layout.txt", "nvbandwidth.txt", "ib_write_bw.txt", "ib_send_lat.txt"):
        bare, labelled = tmp_path / "bare", tmp_path / "labelled"
        lines = (CORPUS / name).read_text().splitlines()
        bare.write_text("\n".join(lines))
        labelled.write_text("\n".join(label + line for line in lines))
        one, other = read_log(bare), read_log(labelled)
        assert (one.rows, one.devices, one.pinned) == (other.rows, other.devices, other.pinned)
        assert (one.tool, one.wires) == (other.tool, other.wires)


@pytest.mark.parametrize(
    "line", ["[all_reduce_perf] 2 nodes", "all_reduce_perf | 2 nodes", "all_reduce_perf: 2 nodes"]
)
def test_a_test_that_is_named_where_labels_stand_counts(tmp_path, line):
    path = tmp_path / "log.txt"
    path.write_text(f"{line}\n{HEADER}\n{ROW}\n")
    log = read_log(path)
    assert log.pinned.collective == "allreduce"
    assert times(log) == {4096: 41}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["new_layout.txt", "report.json", "ib_write_bw.txt"])
def test_a_log_that_a_shell_of_windows_redirected_is_read(tmp_path, name, encoding):
    copy = tmp_path / name
    copy.write_bytes((CORPUS / name).read_text().encode(encoding))
    one, other = read_log(CORPUS / name), read_log(copy)
    assert (one.rows, one.pinned, one.wires) == (other.rows, other.pinned, other.wires)


def test_a_json_report_and_what_the_user_knows_better():
    log = read_log(CORPUS / "report.json")
    assert (log.pinned, times(log)) == (Pinned("sendrecv", None, "LL"), {1024: 21})
    assert [device[:2] for device in log.devices] == [("n1", 3), ("n2", 3)]
    given = read_log(CORPUS / "report.json", Pinned(protocol="Simple", channels=4))
    assert given.pinned == Pinned("sendrecv", None, "Simple", 4)


HEADER = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
ROW = "4096 1024 float sum -1 40.0 0 0 0 42.0 0 0 0"


@pytest.mark.parametrize(
    ("last", "note", "time"),
    [
        *[
            (
                ROW.replace("40.0", time),
                "1 time of zero, below zero or no number left out (line 3)",
                42,
            )
            for time in ("-40.0", "0.0", "nan", "inf")
        ],
        (ROW.replace("40.0", "N/A"), None, 42),
        (ROW[:-6], "1 incomplete measurement left out (line 3)", 40),
        (ROW[:25], "1 incomplete measurement left out (line 3)", None),
        (ROW[:13], "1 incomplete measurement left out (line 3)", None),
        (ROW[:2], "1 incomplete measurement left out (line 3)", None),
        (f"n1:7:9 [0] NCCL INFO {ROW}", "1 incomplete measurement left out (line 3)", None),
        ("4096 1024 float sum -1 40.0 0 0 0", None, 40),
    ],
)
def test_no_row_vanishes_without_a_note(tmp_path, last, note, time):
    path = tmp_path / "all_reduce.txt"
    path.write_text(f"{HEADER}\n{ROW.replace('4096', '1024')}\n{last}")
    log = read_log(path)
    assert log.notes == (() if note is None else (note,))
    assert times(log).get(4096) == time


FAILURE = "n1: Test NCCL failure common.cu:958 'unhandled system error / '"


@pytest.mark.parametrize("before", ["", f"{HEADER}\n", f"{HEADER}\n{ROW}\n"])
def test_a_run_that_failed_is_told(tmp_path, before):
    """What it measured before counts; where that is nothing, this is why."""
    path = tmp_path / "all_reduce.txt"
    path.write_text(f"{before}{FAILURE}\n .. n1 pid 7: Test failure common.cu:1100\n")
    line = before.count("\n") + 1
    said = f"the run failed: {FAILURE.removeprefix('n1: ')} (line {line})"
    if ROW in before:
        log = read_log(path)
        assert (log.notes, times(log)) == ((said,), {4096: 41})
    else:
        with pytest.raises(InputError) as refused:
            read_log(path)
        assert said in refused.value.diagnostic.notes


START = "mpirun -np 2 -x NCCL_ALGO=Ring ./all_reduce_perf -b 8 -n 20 -g 1"
LISTED = "".join(f"# Rank {rank} Pid 7 on n1 device {rank} [0x00] A100\n" for rank in (0, 1))


@pytest.mark.parametrize(
    ("head", "given", "said"),
    [
        (START, Pinned("allreduce", "ring"), None),
        (START, Pinned("allgather"), ":1: collective allreduce, but --log says allgather"),
        (START, Pinned(algorithm="tree"), ":1: algorithm ring, but --log says tree"),
        ("n1 NCCL INFO 16 coll channels", Pinned(channels=2), ":1: channels 16, but --log says 2"),
        (START.replace("np 2", "np 4"), Pinned(), ":1: starts 4 ranks, but 2 ranks are listed"),
        (
            START.replace("-g 1", "-t 2 -g 2"),
            Pinned(),
            ":1: starts 8 ranks, but 2 ranks are listed",
        ),
        ("srun -n4 x/all_reduce_perf -g 1", Pinned(), ":1: starts 4 ranks, but 2 ranks are listed"),
        ("mpirun -np 1 ./a : -np 1 ./all_reduce_perf", Pinned(), None),
        (f"{START}\nNCCL_ALGO=Tree", Pinned(), ":2: algorithm tree, but ring in line 1"),
        ("16 coll channels\n2 coll channels", Pinned(), ":2: channels 2, but 16 in line 1"),
        (f"{START}\nNCCL_ALGO=Tree", Pinned(algorithm="tree"), None),
        (f"{START}\nNCCL_ALGO set by environment to Ring.", Pinned(), None),
        ("", Pinned("sendrecv"), None),
        ("", Pinned("allgather"), ":5: the row has a redop, so it is not of the allgather"),
    ],
)
def test_contradictions_are_told_with_their_line(tmp_path, head, given, said):
    path = tmp_path / "all_reduce.txt"
    path.write_text(f"{head}\n{LISTED}{HEADER}\n{ROW}\n")
    phrases = [str(doubt.span) + ": " + doubt.phrase for doubt in read_log(path, given).doubts]
    short = [text.replace("the log says ", "").replace("the command ", "") for text in phrases]
    short = [text.partition(" that it is fitted as")[0] for text in short]
    assert short == ([] if said is None else [f"{path}{said}"])


def test_tools_that_measure_links():
    copies = read_log(CORPUS / "nvbandwidth.txt")
    assert {wire.pair: wire.value for wire in copies.wires}[1, 0] == pytest.approx(270.1e9)
    assert len(copies.wires) == 6  # writes say the same again
    rates = read_log(CORPUS / "ib_write_bw.txt")
    assert [wire.value for wire in rates.wires] == [23400 * 2**20, 23500 * 2**20]
    (latency,) = read_log(CORPUS / "ib_send_lat.txt").wires
    assert (latency.what, latency.value) == ("latency", pytest.approx(1.6e-6))


@each("name", sorted(path.name for path in CORPUS.iterdir()))
def test_a_number_of_any_length_is_read_or_refused(name, tmp_path):
    """Python converts no text of more than 4300 digits."""
    text = (CORPUS / name).read_text()
    for number in tuple(re.finditer("[0-9]+", text))[:60]:
        longer = text[: number.start()] + "9" * 5000 + text[number.end() :]
        (tmp_path / name).write_text(longer)
        with suppress(InputError):
            read_log(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "code", "why"),
    [
        ("a.txt", "nothing here\n", "CS620", "no table"),
        ("a.json", '{"results": [{"size": 1}]}', "CS620", "no row that can be read"),
        ("a.json", "[1, 2]", "CS620", "no table"),
        ("a.txt", "[node1] mpirun: command not found\n", "CS620", "no table"),
        ("all_reduce.txt", "# size count type redop time algbw busbw error\n", "CS620", "no row"),
        ("all_reduce.txt", f"{HEADER}\n{ROW[:-12]}3\n", "CS620", "no right result"),
        (
            "log.txt",
            "1024 256 float sum -1 34.2 0.01 0.01 0 33.6 0.01 0.01 N/A\n",
            "CS622",
            "of allreduce",
        ),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, name, text, code, why):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as refusal:
        read_log(tmp_path / name)
    assert refusal.value.diagnostic.code == code
    assert why in str(refusal.value.diagnostic)


def test_two_tables_of_processes_that_did_not_meet_are_refused():
    with pytest.raises(InputError) as refusal:
        read_log(CORPUS / "unmerged_all_reduce.txt")
    assert refusal.value.diagnostic.code == "CS621"
    assert "MPI=1" in str(refusal.value.diagnostic)


def test_tables_of_two_tests_are_refused(tmp_path):
    path = tmp_path / "two.txt"
    tables = [f"./{name}_perf -g 2\n{HEADER}\n{ROW}\n" for name in ("all_reduce", "all_gather")]
    path.write_text("".join(tables))
    with pytest.raises(InputError, match="tables of several runs") as refusal:
        read_log(path)
    assert str(refusal.value.diagnostic.span) == f"{path}:5"


def table(*rows):
    """Return a table of sizes and times."""
    lines = [ROW.replace("4096", str(n)).replace("40.0", t).replace("42.0", t) for n, t in rows]
    return "\n".join([HEADER, *lines, ""])


FAST = table((4096, "40.0"), (2**20, "80.0"), (2**26, "600.0"))
SLOW = table((4096, "41.0"), (2**20, "170.0"), (2**26, "3000.0"))
NOISY = table((4096, "90.0"), (2**20, "79.0"), (2**26, "1300.0"))


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (FAST + FAST, None, ""),
        (FAST + NOISY, None, ""),
        (FAST + SLOW, 5, "at 64 MiB, its rows take 5 times as long as in a table before it"),
        (SLOW + FAST, 5, "at 64 MiB, its rows take 1/5 of the time as in a table before it"),
        (FAST + SLOW.partition("\n")[2], 5, "at 64 MiB, its rows take 5 times as long"),
        *[
            (f"{first}\n{FAST}{second}\n{FAST}", 7, f"says {said} for the rows before it, but")
            for first, second, said in [
                ("8 coll channels", "2 coll channels", "channels 8"),
                ("NCCL_ALGO=Ring", "NCCL_ALGO=Tree", "algorithm ring"),
                ("NCCL_PROTO=LL", "NCCL_PROTO=LL128", "protocol LL"),
            ]
        ],
        (f"16 coll channels\n{FAST}n1 NCCL INFO Channel 00/0 : 1[1] -> 0[0]\n{FAST}", None, ""),
    ],
)  # fmt: skip
def test_tables_of_runs_that_differ_are_refused_and_repeats_are_not(tmp_path, text, line, why):
    path = tmp_path / "all_reduce.txt"
    path.write_text(text)
    if line is None:
        assert len(read_log(path).rows) == 3
        return
    with pytest.raises(InputError, match="tables of several runs") as refusal:
        read_log(path)
    assert str(refusal.value.diagnostic.span) == f"{path}:{line}"
    assert why in str(refusal.value.diagnostic)


def test_mutated_logs_are_read_or_refused_with_one_diagnostic(tmp_path):
    rng = random.Random(14)
    texts = {path.name: path.read_text() for path in sorted(CORPUS.iterdir())}
    read = 0
    for _ in range(600):
        name = pick(rng, tuple(texts))
        (tmp_path / name).write_text(mutated_text(rng, texts[name]), errors="replace")
        try:
            log = read_log(tmp_path / name)
        except InputError:
            continue
        read += 1
        assert all(row.size > 0 and 0 < row.seconds < math.inf for row in log.rows)
        assert all(0 < wire.value < math.inf for wire in log.wires)
    assert 60 < read < 600


@pytest.mark.skipif(not SAMPLES.exists(), reason="samples are not part of the repository")
def test_public_logs():
    h200 = read_log(SAMPLES / "h200_2x8_all_reduce_issue256.txt")
    assert (len(h200.devices), len({device.host for device in h200.devices})) == (16, 2)
    assert times(h200)[9663676416] == pytest.approx(37143.5)
    a40 = read_log(SAMPLES / "a40_2x1_sendrecv_excerpt_issue214.txt")
    assert a40.pinned.collective == "sendrecv"
    assert times(a40)[4096] == pytest.approx(30.715)
