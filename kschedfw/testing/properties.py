"""Hypothesis' settings for suites of distributions: how many examples a property tries, and no limit of time.

Few examples by default, and the same ones each time: a test fails for everyone or for no one. The profile nightly tries
many, drawn anew; what it finds is kept by an `@example`. pytest registers the profiles where its configuration says
`kschedfw_profiles = true`.
"""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, settings

__all__ = ["examples", "register_profiles"]

_NIGHTLY: Final = 100
_USUAL: Final = 12
"""Enough to notice a property that no longer holds at all; what only rare examples show is for the nightly run."""

# A slow machine is no failure. By default an example may take 200 ms, and drawing ten of them a second.
_SPEED_IS_NO_VERDICT: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def register_profiles() -> None:
    """Register the profiles nightly and default, and load the default one."""
    # In CI, Hypothesis' own settings, which ours inherit, draw the same examples each time.
    settings.register_profile("nightly", _SPEED_IS_NO_VERDICT, derandomize=False, max_examples=_NIGHTLY)
    settings.register_profile("default", _SPEED_IS_NO_VERDICT, derandomize=True, max_examples=_USUAL)
    settings.load_profile("default")


def examples(nightly: int, *, usual: int | None = None) -> int:
    """Return the number of examples for a property whose examples cost more, or less, than others'.

    It follows from the loaded profile.

    Args:
        nightly: the number under the profile nightly, where a property tries 100 unless it says otherwise.
        usual: the number under the default profile, for a property that has to stand many cases; by default an eighth.
    """
    of_profile = settings().max_examples
    if usual is not None and of_profile == _USUAL:
        return usual
    return -(-nightly * of_profile // _NIGHTLY)
