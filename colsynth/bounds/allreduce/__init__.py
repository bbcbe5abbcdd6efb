"""Allreduce: what free roots reach (`rooted`), and what no allreduce can beat (`limits`)."""
