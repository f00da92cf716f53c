"""A profile's answers about nodes: plans of steps, and one pass over the columns."""
