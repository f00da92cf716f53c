"""What a profile's filters and scores answer about nodes: plans of steps, and one pass over the columns."""
