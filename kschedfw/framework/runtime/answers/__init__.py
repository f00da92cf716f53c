"""What the filters and scores of a profile answer about nodes: asked one by one or together, kept, and combined."""
