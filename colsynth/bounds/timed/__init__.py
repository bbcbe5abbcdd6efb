"""Times that no timed schedule can beat, in whole ticks."""
