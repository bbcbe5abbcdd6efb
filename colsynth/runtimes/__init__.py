"""The runtimes as data, and what reads and writes their files.

``profiles.yaml`` says what each runtime accepts; `write` spells a program in its
dialect, `read` takes a file as the runtime's own parser would, `variables` says which make a job
use it.
"""

from colsynth.runtimes.catalog import profile, profiles
from colsynth.runtimes.environment import exports, range_notes, require_listable, variables
from colsynth.runtimes.files import read_file
from colsynth.runtimes.profile import Profile
from colsynth.runtimes.reader import Reading
from colsynth.runtimes.schedules import read, write
from colsynth.runtimes.selection import TakenSizes, taken_sizes
from colsynth.runtimes.target import Target

__all__ = [
    "Profile",
    "Reading",
    "TakenSizes",
    "Target",
    "exports",
    "profile",
    "profiles",
    "range_notes",
    "read",
    "read_file",
    "require_listable",
    "taken_sizes",
    "variables",
    "write",
]
