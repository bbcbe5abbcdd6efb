"""Process groups: bounds on a group's own machine, told of the whole; several at a time."""
