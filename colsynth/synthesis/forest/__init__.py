"""Throughput-optimal spanning-tree forests.

Method: exact rate from cuts (`rate`), switches replaced by logical arcs that keep the
rate (`switches`), arborescences packed into what results, between clusters of GPUs and
inside them (`nested`, `pack_trees`). After Zhao et al., ForestColl (arXiv 2402.06787).
"""

from colsynth.synthesis.forest.rate import candidates

__all__ = ["candidates"]
