"""Throughput-optimal spanning-tree forests.

Method: exact rate from cuts (`rate`), switches replaced by logical arcs that keep the
rate (`switches`), arborescences packed into what results, between clusters of GPUs and
inside them (`nested`, `pack`). After Zhao et al., ForestColl (arXiv 2402.06787).
"""
