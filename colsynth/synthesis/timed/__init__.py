"""Time-expanded-network matching: chunks are matched to links step by step (arXiv 2304.05301)."""
