"""Everything that colsynth writes to disk: files and folders, whole or not at all.

- `write_files` writes files. A draft is completed elsewhere and then put in its place, so a
  place holds the old file or the new one, never a part.
- `write_folder` does the same for a folder; one that stands there is swapped in one step.
- `stage` gives both a private folder for drafts. It has a random name, stands outside the folder
  that is written to, and is locked while its owner lives. So the next run can tell and remove
  what a killed process left.
- `claimed` keeps a second process away from a file that the first goes on writing to.

Runtimes read every file of a schedule directory (contract 1.2), hidden ones too. So no draft
ever lies in one.
"""

from colsynth.writing.claim import append, claimed, discard
from colsynth.writing.files import put, write_files
from colsynth.writing.folders import write_folder
from colsynth.writing.refusals import advice_on, exists, unwritable
from colsynth.writing.stage import stage
from colsynth.writing.streams import descriptor_of, require_open

__all__ = [
    "advice_on",
    "append",
    "claimed",
    "descriptor_of",
    "discard",
    "exists",
    "put",
    "require_open",
    "stage",
    "unwritable",
    "write_files",
    "write_folder",
]
