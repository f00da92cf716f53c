"""kube-scheduler's default profile."""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw.api.frozendict import EMPTY
from kschedfw.config.in_tree import default_plugins
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.profile import Profile


def default_profile(
    args: Mapping[str, object] = EMPTY, feature_gates: FeatureGates = DEFAULT_GATES
) -> Profile:
    """Return the default profile with these gates, with arguments for some of its plugins (see `Profile.args`)."""
    return Profile(multi_point=default_plugins(feature_gates), args=args)
