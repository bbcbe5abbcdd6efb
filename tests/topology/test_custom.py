"""Custom collectives: every bad file of the corpus gets its one diagnostic, at its place.

To add a case: put NAME.yaml into tests/corpus/custom/bad, and what is to be said into NAME.txt.
"""

from pathlib import Path

import pytest

from colsynth.cli.codes import explanations
from colsynth.errors import InputError
from colsynth.model import Demand
from colsynth.topology import load
from colsynth.topology.custom import read_custom

FOLDER = Path(__file__).parents[1] / "corpus" / "custom" / "bad"
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
BOX = load("dgx-a100")


@pytest.mark.parametrize("case", CASES)
def test_diagnostic(case, monkeypatch):
    monkeypatch.chdir(FOLDER)
    with pytest.raises(InputError) as caught:
        read_custom(Path(f"{case}.yaml"), BOX)
    found = caught.value.diagnostic
    assert found.span.line is not None
    assert found.code in explanations()
    said, expected = str(caught.value).splitlines(), (FOLDER / f"{case}.txt").read_text()
    if found.code == "CS103":  # the parser words its own notes
        assert said[0] == expected.splitlines()[0]
    else:
        assert said == expected.splitlines()


def read(tmp_path, *entries):
    path = tmp_path / "mine.yaml"
    lines = [f"  - {{{entry}}}\n" for entry in entries]
    path.write_text("version: 1\nchunks:\n" + "".join(lines))
    return read_custom(path, BOX)


def test_ranks_ranges_and_names_mean_the_same(tmp_path):
    expected = (Demand((2, 3, 4), (0,)),)
    for held in ("[2, 3, 4]", "[4, 2-3]", "[gpu0.3, gpu0.2, 4-4]", '["2", "3-4"]'):
        assert read(tmp_path, f"held-by: {held}, wanted-by: [0]") == expected


def test_counts_and_sums(tmp_path):
    entries = (
        "held-by: [0], wanted-by: [1-3], count: 4",
        "held-by: [0-2], wanted-by: [3], reduces: true",
    )
    assert read(tmp_path, *entries) == (
        Demand((0,), (1, 2, 3), 4),
        Demand((0, 1, 2), (3,), reduces=True),
    )


def test_entries_of_which_some_move_nothing_are_fine(tmp_path):
    found = read(tmp_path, "held-by: [0], wanted-by: [0]", "held-by: [0], wanted-by: [1]")
    assert len(found) == 2


def test_ranks_follow_the_order_of_the_topology(tmp_path):
    file = tmp_path / "pair.yaml"
    file.write_text(
        "version: 1\nname: pair\nnodes: [{name: a, kind: gpu}, {name: b, kind: gpu}]\n"
        "links: [{from: a, to: b, bandwidth: 1 GB/s}]\nranks: [b, a]\n"
    )
    mine = tmp_path / "mine.yaml"
    mine.write_text("version: 1\nchunks: [{held-by: [a], wanted-by: [0]}]\n")
    assert read_custom(mine, load(str(file))) == (Demand((1,), (0,)),)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot read the custom collective") as caught:
        read_custom(tmp_path / "none.yaml", BOX)
    assert caught.value.diagnostic.code == "CS101"
