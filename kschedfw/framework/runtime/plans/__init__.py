"""Plans for pods of one shape, and the compiled loops that place pods by them."""
