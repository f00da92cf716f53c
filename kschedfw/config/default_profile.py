"""kube-scheduler's default profile."""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw.api.frozendict import EMPTY
from kschedfw.config.in_tree import DEFAULT_PLUGINS
from kschedfw.framework.profile import Profile


def default_profile(args: Mapping[str, object] = EMPTY) -> Profile:
    """The default profile, with arguments for some of its plugins (see `Profile.args`)."""
    return Profile(multi_point=DEFAULT_PLUGINS, args=args)
