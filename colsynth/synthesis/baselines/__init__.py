"""The algorithms that collective libraries use, as synthesizers to measure others against."""
