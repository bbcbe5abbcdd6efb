"""Work on several cores, and the memory of what was done: evaluations that can be resumed."""
