"""Profiles: the default one, and (later) those read from configuration documents."""

from kschedfw.config.default_profile import DEFAULT_PLUGINS, default_profile

__all__ = ["DEFAULT_PLUGINS", "default_profile"]
