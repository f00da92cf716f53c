"""Answers of the filters and scores of a profile about nodes: asked one by one or together, kept, and combined."""
