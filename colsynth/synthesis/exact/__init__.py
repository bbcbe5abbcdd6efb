"""Optimal schedules in few synchronous steps, by a constraint solver (CP-SAT)."""
