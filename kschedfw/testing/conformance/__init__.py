"""Replays of kube-scheduler's recorded decisions: `python -m kschedfw.testing.conformance decide FILE`."""
