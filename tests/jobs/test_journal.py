import json
import os
from dataclasses import replace

import pytest

from colsynth.errors import InputError
from colsynth.jobs.journal import Journal
from colsynth.reading import JOURNAL


def test_what_was_kept_is_found_again(tmp_path):
    path = tmp_path / "deep" / "journal.jsonl"
    first = Journal(path)
    assert first.recall("a") is None
    first.keep("a", {"seconds": [1.5, None]})
    first.keep("b", 2)
    again = Journal(path)
    assert first.recall("a") == again.recall("a") == {"seconds": [1.5, None]}
    assert again.recall("b") == 2


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path):
    path = tmp_path / "journal.jsonl"
    Journal(path).keep("a", 1)
    with path.open("a") as stream:
        stream.write('\n{"key": "b", "val')
    torn = Journal(path)
    assert torn.recall("b") is None
    torn.keep("c", 3)
    assert [Journal(path).recall(key) for key in "abc"] == [1, None, 3]


def test_lines_that_are_none_of_ours_are_passed_over(tmp_path):
    path = tmp_path / "journal.jsonl"
    lines = [b"", b"[]", b'"key"', b"\xff\xfe", json.dumps({"key": "a", "value": 1}).encode()]
    path.write_bytes(b"\n".join(lines))
    assert Journal(path).known == {"a": 1}


def test_without_a_file_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    journal = Journal()
    journal.keep("a", 1)
    assert journal.recall("a") == 1
    assert list(tmp_path.iterdir()) == []


def test_settled_journals_do_not_show_the_order_of_the_work(tmp_path):
    texts = []
    for order in ("abc", "cab"):
        journal = Journal(tmp_path / order)
        for key in order:
            journal.keep(key, key * 2)
        journal.settle()
        texts.append((tmp_path / order).read_bytes())
        assert Journal(tmp_path / order).known == journal.known
    assert texts[0] == texts[1]


DAMAGED = [
    b'{"key": ["a"], "value": 1}',
    b'{"key": 7, "value": 1}',
    b'{"key": "b"}',
    b'{"key": "b", "value": NaN}',
    b'{"key": "b", "value": 1e999}',
    b'{"key": "b", "value": ' + b"[" * 100_000 + b"}",
    b'{"key": "b", "value": ' + b"9" * 5000 + b"}",
    b'{"key": "\xff", "value": 1}',
    b"\x00",
]


@pytest.mark.parametrize("line", DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_lines_are_passed_over(line, tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"key": "a", "value": 1}\n' + line)
    journal = Journal(path)
    assert journal.known == {"a": 1}
    journal.settle()
    assert Journal(path).known == {"a": 1}


def test_a_journal_without_end_and_a_pipe_are_refused_in_one_diagnostic(tmp_path, monkeypatch):
    monkeypatch.setattr("colsynth.jobs.journal.JOURNAL", replace(JOURNAL, most=10))
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"\n" * 11)
    with pytest.raises(InputError, match="CS125"):
        Journal(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(InputError, match="CS215"):
        Journal(path)
