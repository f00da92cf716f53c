"""The scheduler as a process: what `kschedfw run` runs, and its endpoints for health, metrics and debugging."""
