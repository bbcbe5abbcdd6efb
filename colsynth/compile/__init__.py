"""From a request to verified files: the search for a plan, modes of the call, results, groups."""
