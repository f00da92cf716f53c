"""Replays recorded decisions of kube-scheduler and compares: `python -m kschedfw.testing.conformance check FILE...`."""
