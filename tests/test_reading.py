"""No reader takes more than its limit, whatever a path names."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from colsynth import reading
from colsynth.errors import InputError
from colsynth.reading import JOURNAL, SCHEDULE, read_whole

SMALL = replace(SCHEDULE, most=1000)


def refusal(path, kind=SMALL):
    with pytest.raises(InputError) as caught:
        read_whole(path, kind, "CS502")
    return caught.value.diagnostic


def test_a_file_at_the_limit_is_read_and_one_beyond_is_not(tmp_path):
    path = tmp_path / "a.xml"
    path.write_bytes(bytes(1000))
    assert read_whole(path, SMALL, "CS502") == bytes(1000)
    path.write_bytes(bytes(1001))
    found = refusal(path)
    assert found.code == "CS125"
    assert "1000 bytes" in found.notes[0]
    assert "1001 bytes" in found.notes[0]


def test_a_device_that_never_ends_is_read_up_to_one_byte_beyond_the_limit():
    class Counted:
        taken = 0

        def fileno(self):
            raise OSError

        def read(self, most):
            self.taken += most
            return bytes(most)

    stream = Counted()
    with pytest.raises(InputError, match="goes on"):
        reading.read_stream(stream, SMALL, "-")
    assert stream.taken == 1001
    assert refusal(Path("/dev/zero")).code == "CS125"


def test_a_pipe_is_read_where_streams_serve_and_refused_unopened_elsewhere(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert refusal(path, JOURNAL).code == "CS502"  # nobody writes: opening it would wait
    writer = threading.Thread(target=path.write_bytes, args=(b"text",))
    writer.start()
    assert read_whole(path, SMALL, "CS502") == b"text"
    writer.join()


def test_what_cannot_be_opened_is_one_diagnostic_with_the_code_asked_for(tmp_path):
    assert refusal(tmp_path / "none").code == "CS502"
    assert refusal(tmp_path).code == "CS502"
