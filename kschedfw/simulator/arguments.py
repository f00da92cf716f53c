"""Checks of the arguments of a simulation, and what a configuration stands for among them."""

from __future__ import annotations

from collections.abc import Sequence

from kschedfw.api.words import with_article
from kschedfw.config import SchedulerConfiguration
from kschedfw.framework.extender import Extender
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.profile import Profile
from kschedfw.scheduler.setup import Setup
from kschedfw.simulator.arrivals import Arrivals

LONGEST_ATTEMPT = 3600.0
"""Seconds that an attempt may take at most."""


def check_types(cluster: object, profiles: object, arrivals: object, seed: object) -> None:
    """Raise TypeError for arguments that are easily mixed up, and would fail far from here, or not at all."""
    if not (hasattr(cluster, "watch") and hasattr(cluster, "list")):
        found = with_article(type(cluster).__name__)
        raise TypeError(f"cluster: expected a Cluster such as InMemoryCluster(objects), found {found}")
    if profiles is not None and not (
        isinstance(profiles, Sequence) and all(isinstance(profile, Profile) for profile in profiles)
    ):
        hint = "; put it in a list" if isinstance(profiles, Profile) else ""
        raise TypeError(f"profiles: expected a sequence of Profile, found {_shown(profiles)}{hint}")
    if arrivals is not None and not isinstance(arrivals, Arrivals):
        raise TypeError(f"arrivals: expected Arrivals or None, found {_shown(arrivals)}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed: expected an integer, found {_shown(seed)}")


def setup_of(
    configuration: object,
    profiles: Sequence[Profile] | None,
    extenders: Sequence[Extender],
    percentage_of_nodes_to_score: int,
    feature_gates: FeatureGates,
) -> Setup:
    """Return the set-up that a configuration stands for; a set-up stands for itself.

    Raises:
        TypeError: it is neither.
        ValueError: another argument says what the configuration says.
    """
    if not isinstance(configuration, SchedulerConfiguration | Setup):
        hint = "; load_configuration reads files"
        raise TypeError(
            f"configuration: expected a SchedulerConfiguration, found {_shown(configuration)}{hint}"
        )
    given = {
        "profiles": profiles is not None,
        "extenders": bool(extenders),
        "percentage_of_nodes_to_score": percentage_of_nodes_to_score != 0,
        "feature_gates": feature_gates is not DEFAULT_GATES,
    }
    if twice := [name for name, is_given in given.items() if is_given]:
        name = configuration.label if isinstance(configuration, Setup) else configuration.source
        raise ValueError(f"{twice[0]}: the configuration {name} has its own; give one or the other")
    if isinstance(configuration, Setup):
        return configuration
    return Setup.of(configuration.source, configuration)


def check_attempt_time(seconds: float) -> None:
    if not 0 <= seconds <= LONGEST_ATTEMPT:
        raise ValueError(f"attempt_time: expected seconds from 0 to {LONGEST_ATTEMPT:g}, found {seconds:g}")


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, (str, int, float)) else with_article(type(value).__name__)
