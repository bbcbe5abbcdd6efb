"""Writes schedules for simulators of others."""
