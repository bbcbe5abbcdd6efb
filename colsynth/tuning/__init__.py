"""Which schedule is best for which message size, by the predictions of the simulator.

``knobs.yaml`` says what is tried. `search` looks for the fastest candidates at each size,
`plan_ranges` turns them into byte ranges under a runtime's rules, `tune` compiles the files of
a bundle, `publish` writes it, `compare` sets algorithms beside each other and the bound.
"""

from colsynth.tuning.bundle import Bundle, tune
from colsynth.tuning.candidates import Candidate
from colsynth.tuning.compare import Comparison, compare
from colsynth.tuning.evaluate import Case, Measured, usable_sizes
from colsynth.tuning.publish import forget, journal_of, publish, refuse_to_replace
from colsynth.tuning.ranges import Segment, plan_ranges
from colsynth.tuning.search import Means, choose, search

__all__ = [
    "Bundle",
    "Candidate",
    "Case",
    "Comparison",
    "Means",
    "Measured",
    "Segment",
    "choose",
    "compare",
    "forget",
    "journal_of",
    "plan_ranges",
    "publish",
    "refuse_to_replace",
    "search",
    "tune",
    "usable_sizes",
]
