"""colsynth: compile a cluster's topology into verified collective schedules.

The public functions live in :mod:`colsynth.api`; the architecture is described
in ``colsynth/ARCHITECTURE.md``. Importing this package loads nothing heavy.
"""

__version__ = "0.1.0"
