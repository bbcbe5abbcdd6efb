"""What no schedule can beat, and what proves it: cuts, flows, prices, times."""
