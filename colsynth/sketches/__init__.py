"""Sketches: files that say which ways data may take, checked against a topology."""
