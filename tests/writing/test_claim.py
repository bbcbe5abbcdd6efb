"""A file that one process goes on writing to; locks end with their process."""

import pytest

from colsynth.errors import InputError
from colsynth.writing import append, claimed, discard
from tests.writing.test_files import ended, names, started

HOLD = """
import sys, time
from pathlib import Path
from colsynth.writing import claimed
with claimed(Path(sys.argv[1])):
    print(flush=True)
    time.sleep(60)
"""


def test_another_process_is_refused_until_the_first_has_ended(tmp_path):
    path = tmp_path / "new" / "journal"
    holder = started(HOLD, path)
    with pytest.raises(InputError) as caught, claimed(path):
        pytest.fail("two processes have it")
    assert caught.value.diagnostic.code == "CS250"
    discard(path)
    assert path.exists()
    ended(holder)
    with claimed(path):
        append(path, b"line")
    assert path.read_bytes() == b"line"
    discard(path)
    assert names(tmp_path) == []


def test_what_nothing_was_written_to_goes_with_its_folders(tmp_path):
    (tmp_path / "old").mkdir()
    for folder in ("new/deep", "old"):
        with claimed(tmp_path / folder / "journal"):
            assert (tmp_path / folder / "journal").exists()
    assert names(tmp_path) == ["old"]
    assert names(tmp_path / "old") == []


def test_a_link_is_refused(tmp_path):
    (tmp_path / "victim").write_bytes(b"good")
    (tmp_path / "journal").symlink_to("victim")
    with pytest.raises(InputError, match="CS208"), claimed(tmp_path / "journal"):
        pytest.fail("it followed the link")
    with pytest.raises(InputError, match="CS208"):
        append(tmp_path / "journal", b"bad")
    assert (tmp_path / "victim").read_bytes() == b"good"
