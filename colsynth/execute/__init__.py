"""Executes schedule files on real data: one process per rank, messages over a real transport."""
