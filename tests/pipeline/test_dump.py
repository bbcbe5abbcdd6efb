from fractions import Fraction

from colsynth.model import (
    ChunkProgram,
    Collective,
    Direction,
    Kind,
    Link,
    Node,
    Origin,
    Problem,
    Slot,
    Topology,
    Transfer,
)
from colsynth.pipeline import dump

PAIR = Topology(
    "pair",
    (Node("a", Kind.GPU, 0), Node("b", Kind.GPU, 0)),
    (Link(0, 1, Fraction(10**9, 3)), Link(1, 0, Fraction(5))),
    (0, 1),
)
ORIGIN = Origin(0, Direction.OUT, 3)


def program(count):
    transfers = tuple(
        Transfer(0, 1, i, 1, False, (i - 1,) if i else (), ORIGIN, Slot("i", 0), Slot("o", i))
        for i in range(count)
    )
    return ChunkProgram(Problem(PAIR, Collective.ALLGATHER), count, transfers)


def test_a_topology_alone_is_shown_whole_and_inside_a_value_by_name():
    assert "bandwidth=1000000000/3" in dump.pretty(PAIR)
    shown = dump.pretty(program(1))
    assert "Topology('pair', 2 ranks, 2 links)" in shown
    assert "1000000000/3" not in shown


def test_rows_stand_on_one_line_each_with_their_index():
    lines = dump.pretty(program(5)).splitlines()
    row = next(line for line in lines if "#4 " in line)
    assert row.strip() == (
        "#4 Transfer(source=0, target=1, chunk=4, count=1, reduces=False, after=(3), "
        f"origin={':'.join(map(str, ORIGIN))}, read=i:0, write=o:4),"
    )


def test_defaults_are_left_out():
    assert "operand" not in dump.pretty(program(2))
    assert "scratch" not in dump.pretty(program(2))


def test_long_rows_of_numbers_are_wrapped():
    shown = dump.pretty(tuple(range(200)))
    assert max(len(line) for line in shown.splitlines()) <= 120
    assert len(shown.splitlines()) < 20


def test_files_are_numbered_and_made_with_their_folder(tmp_path):
    path = dump.write(tmp_path / "new", 3, "assign-threadblocks", PAIR)
    assert path.name == "03-assign-threadblocks.txt"
    assert path.read_text() == dump.pretty(PAIR)
