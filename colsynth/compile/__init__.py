"""From a request to verified files: the search for a plan, call modes, results, groups."""
