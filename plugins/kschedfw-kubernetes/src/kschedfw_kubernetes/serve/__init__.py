"""The scheduler process of `kschedfw run`, and its endpoints for health, metrics and debugging."""
