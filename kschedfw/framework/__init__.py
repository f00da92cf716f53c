"""The plugins' interface (modules here, `nodes`), the engine that calls plugins (`runtime`), and preemption.

Plugins import from `kschedfw`, which has the public names.
"""
