"""Hypothesis with the same examples each time, and without deadlines: a slow example isn't a wrong one."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kschedfw-capacity", deadline=None, derandomize=True)
settings.load_profile("kschedfw-capacity")
