"""What can go wrong between a profile and running plugins."""

from __future__ import annotations

from kschedfw.api.errors import KschedfwError

HOOK_FAILURES = (Exception, SystemExit)
"""What costs one attempt of one pod where a hook raises it.

`sys.exit` in a plugin, or in a library that it calls, isn't meant for the whole process. KeyboardInterrupt is, and goes
on, after what was reserved is given back.
"""


class PluginError(KschedfwError):
    """A plugin can't be used; names the plugin and, where it came from an entry point, its distribution."""

    def __init__(self, plugin: str, message: str, distribution: str | None = None) -> None:
        super().__init__(plugin, message, distribution)
        self.plugin = plugin
        self.message = message
        self.distribution = distribution

    def __str__(self) -> str:
        source = f" (from distribution {self.distribution})" if self.distribution else ""
        return f"plugin {self.plugin!r}{source}: {self.message}"


class PluginNotFoundError(PluginError):
    """No installed distribution and no registration offers a plugin of this name."""


class PluginLoadError(PluginError):
    """The plugin was found, but importing or making it failed, or what came of it is no plugin."""


class HookError(PluginError):
    """A hookimpl doesn't fit the hookspecs: an unknown hook, or an argument that the hook hasn't got."""


class ProfileError(KschedfwError):
    """A profile that can't work, whatever its plugins do."""


class IncompleteClusterError(KschedfwError, TypeError):
    """What was given as a cluster lacks methods; says which."""
