"""The provenance of plugins in profiles of a Policy or an algorithm provider, and the plugins that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kschedfw import Profile, ProfileError, Registry


class UnavailablePluginsError(ProfileError):
    """A profile needs plugins that aren't available. The message names each of them and its provenance."""

    def __init__(self, reasons: Mapping[str, Sequence[str]]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        needed = ", ".join(f"{name} ({', '.join(asked)})" for name, asked in self.reasons.items())
        return f"no installed distribution offers these plugins: {needed}"


def provenance(profile: Profile) -> Mapping[str, tuple[str, ...]]:
    """Return the reasons why each plugin is enabled, such as `predicate PodFitsResources`, by the plugin's name."""
    return {plugin.name: plugin.asked_by for plugin in profile.listed}


def unavailable(profile: Profile, registry: Registry) -> Mapping[str, tuple[str, ...]]:
    """Return the plugins that the registry doesn't offer, with their provenance."""
    offered = set(registry.names())
    reasons = provenance(profile)
    return {name: reasons[name] for name in profile.plugin_names if name not in offered}


def check_available(profile: Profile, registry: Registry) -> None:
    """Raise an error if plugins are missing. A framework's error names one plugin; this one names all of them.

    Raises:
        UnavailablePluginsError: the registry doesn't offer some of the plugins.
    """
    if missing := unavailable(profile, registry):
        raise UnavailablePluginsError(missing)


def only_available(profile: Profile, registry: Registry) -> Profile:
    """Return the profile without the plugins that the registry doesn't offer."""
    missing = unavailable(profile, registry)
    return attrs.evolve(
        profile,
        multi_point=tuple(plugin for plugin in profile.multi_point if plugin.name not in missing),
        points={
            point: tuple(plugin for plugin in plugins if plugin.name not in missing)
            for point, plugins in profile.points.items()
        },
        args={name: args for name, args in profile.args.items() if name not in missing},
    )
