"""Work on several processes, and a journal of its results, so that it can be resumed."""
