"""Hypothesis with the same examples each time, and without limits of time: a slow machine is no failure."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "kschedfw-capacity", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("kschedfw-capacity")
