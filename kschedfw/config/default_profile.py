"""kube-scheduler's default profile."""

from __future__ import annotations

from collections.abc import Mapping

from kschedfw.api.frozendict import EMPTY
from kschedfw.config.in_tree import ABSENT, DEFAULT_PLUGINS
from kschedfw.framework.profile import Profile


def default_profile(args: Mapping[str, object] = EMPTY) -> Profile:
    """The default profile as far as its plugins are here, with arguments for some of them (see `Profile.args`)."""
    return Profile(multi_point=[plugin for plugin in DEFAULT_PLUGINS if plugin.name not in ABSENT], args=args)
