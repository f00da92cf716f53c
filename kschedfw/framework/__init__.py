"""What a plugin sees (the modules here, `nodes`), what runs it (`runtime`), and `preemption`, which asks it “what if”.

Plugins import from `kschedfw`, which has the public names.
"""
