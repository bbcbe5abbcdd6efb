"""Allreduce beyond reduce-scatter and allgather: roots with shares of their own.

`rooted` says what that can gain and proves it, `limits` what no allreduce can beat,
`pack` makes the forest.
"""
