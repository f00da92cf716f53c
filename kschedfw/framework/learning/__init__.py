"""What a pure hook reads of its arguments, learned while it runs, and its answers kept by the values that it read."""
