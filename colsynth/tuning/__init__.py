"""The files of a job, tuned by message size, and algorithms beside each other and the bound.

`plan_ranges` turns what the search found into byte ranges under a runtime's rules, `tune` compiles
the files of a bundle, `publish` writes it, `compare` sets algorithms beside each other.
"""

from colsynth.search.case import Case, usable_sizes
from colsynth.search.means import Means
from colsynth.search.measured import Measured
from colsynth.tuning.bundle import Bundle, tune
from colsynth.tuning.compare import Comparison, compare
from colsynth.tuning.publish import forget, journal_of, publish, refuse_to_replace
from colsynth.tuning.ranges import Segment, plan_ranges

__all__ = [
    "Bundle",
    "Case",
    "Comparison",
    "Means",
    "Measured",
    "Segment",
    "compare",
    "forget",
    "journal_of",
    "plan_ranges",
    "publish",
    "refuse_to_replace",
    "tune",
    "usable_sizes",
]
