"""What is said about places that cannot be written to."""

import errno
import os
from pathlib import Path

from colsynth.writing import unwritable


def test_every_refusal_says_why_and_what_to_do():
    faults = [OSError(number, os.strerror(number)) for number in errno.errorcode]
    for reason in (*faults, OSError("odd"), "it is a directory"):
        found = unwritable(Path("a"), reason).diagnostic
        assert found.code == "CS208"
        assert all(found.notes)
        assert found.help
