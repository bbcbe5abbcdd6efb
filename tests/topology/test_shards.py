"""Files of shards: every bad one of the corpus gets its one diagnostic, at its place.

To add a case: put NAME.yaml into tests/corpus/shards/bad, and what is to be said into NAME.txt.
"""

from pathlib import Path

import numpy as np
import pytest

from colsynth.cli.codes import explanations
from colsynth.errors import InputError
from colsynth.topology import load
from colsynth.topology.shards import check_shards, read_shards

FOLDER = Path(__file__).parents[1] / "corpus" / "shards" / "bad"
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
BOX = load("dgx-a100")


@pytest.mark.parametrize("case", CASES)
def test_diagnostic(case, monkeypatch):
    monkeypatch.chdir(FOLDER)
    with pytest.raises(InputError) as caught:
        read_shards(Path(f"{case}.yaml"), BOX)
    found = caught.value.diagnostic
    assert found.span.line is not None
    assert found.code in explanations()
    assert str(caught.value).splitlines() == (FOLDER / f"{case}.txt").read_text().splitlines()


def read(tmp_path, *entries):
    path = tmp_path / "shards.yaml"
    path.write_text("version: 1\nshards:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries))
    return read_shards(path, BOX)


def test_weights_by_rank_range_and_name(tmp_path):
    entries = ("gpus: [gpu0.7, 0], weight: 4", "gpus: [1-5], weight: 2", "gpus: [6], weight: 0")
    assert read(tmp_path, *entries) == (2, 1, 1, 1, 1, 1, 0, 2)


def test_bytes_are_relative_too(tmp_path):
    entries = ("gpus: [0-3], bytes: 96MB", "gpus: [4-6], bytes: 32000000", "gpus: [7], bytes: 0")
    assert read(tmp_path, *entries) == (3, 3, 3, 3, 1, 1, 1, 0)


def test_equal_shards_are_no_shards(tmp_path):
    assert read(tmp_path, "gpus: [0-6], weight: 3", "gpus: [7], weight: 3") == ()


@pytest.mark.parametrize("size", [1.5, 0.0, "1", None, True])
def test_sizes_from_python_are_whole_numbers(size):
    with pytest.raises(InputError, match=r"rank 2 has size .* no whole number") as caught:
        check_shards([1, 1, size, 1, 1, 1, 1, 1], BOX)
    assert caught.value.diagnostic.code == "CS137"


def test_sizes_of_numpy_do_not_overflow():
    assert check_shards(np.full(8, 100, np.int8), BOX) == ()
    assert check_shards(np.array([200] * 7 + [100], np.uint8), BOX) == (2,) * 7 + (1,)
