"""Allreduce beyond reduce-scatter and allgather: roots with shares of their own.

`whole` makes whole trees of what `bounds.allreduce` proves, `pack` makes the forest.
"""
