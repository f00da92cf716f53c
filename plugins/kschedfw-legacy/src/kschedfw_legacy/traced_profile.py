"""Profiles made from a Policy or an algorithm provider, which record why each plugin is enabled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kschedfw import Profile, ProfileError, Registry
from kschedfw.api import EMPTY


class UnavailablePluginsError(ProfileError):
    """A profile needs plugins that aren't available. The message names each of them and its provenance."""

    def __init__(self, reasons: Mapping[str, Sequence[str]]) -> None:
        super().__init__(reasons)
        self.reasons = reasons

    def __str__(self) -> str:
        needed = ", ".join(f"{name} ({', '.join(asked)})" for name, asked in self.reasons.items())
        return f"no installed distribution offers these plugins: {needed}"


@attrs.frozen
class TracedProfile(Profile):
    """A profile with `provenance`: the reasons why each plugin is enabled, such as `predicate PodFitsResources`."""

    provenance: Mapping[str, tuple[str, ...]] = EMPTY

    def unavailable(self, registry: Registry) -> Mapping[str, tuple[str, ...]]:
        """Return the plugins that the registry doesn't offer, with their provenance."""
        offered = set(registry.names())
        return {name: self.provenance.get(name, ()) for name in self.plugin_names if name not in offered}

    def check_available(self, registry: Registry) -> None:
        """Raise an error if plugins are missing. A framework's error names one plugin; this one names all of them.

        Raises:
            UnavailablePluginsError: the registry doesn't offer some of the plugins.
        """
        if missing := self.unavailable(registry):
            raise UnavailablePluginsError(missing)

    def only_available(self, registry: Registry) -> TracedProfile:
        """Return the profile without the plugins that the registry doesn't offer."""
        missing = self.unavailable(registry)
        return attrs.evolve(
            self,
            multi_point=tuple(plugin for plugin in self.multi_point if plugin.name not in missing),
            points={
                point: tuple(plugin for plugin in plugins if plugin.name not in missing)
                for point, plugins in self.points.items()
            },
            args={name: args for name, args in self.args.items() if name not in missing},
            provenance={name: asked for name, asked in self.provenance.items() if name not in missing},
        )
