"""Errors of profiles and plugins, and those of a cluster that plugins have to know."""

from __future__ import annotations

from kschedfw.api.errors import KschedfwError
from kschedfw.api.meta import Named
from kschedfw.api.records import define

HOOK_FAILURES = (Exception, SystemExit)
"""Exceptions that fail only one attempt of one pod when a hook raises them.

`sys.exit` in a plugin, or in a library that it calls, isn't meant for the whole process. KeyboardInterrupt is: it is
raised again after the reservations are undone.
"""


@define(eq=False)
class PluginError(KschedfwError):
    """The error of an unusable plugin. Names the plugin and, if it came from an entry point, its distribution."""

    plugin: str
    message: str
    distribution: str | None = None

    def __str__(self) -> str:
        source = f" (from distribution {self.distribution})" if self.distribution else ""
        return f"plugin {self.plugin!r}{source}: {self.message}"


class PluginNotFoundError(PluginError):
    """The error of a plugin's name that no installed distribution and no registration offers."""


class PluginLoadError(PluginError):
    """The error of a plugin that was found, but can't be used.

    Its import, its constructor or the validation of its arguments failed, it is no Plugin, or its `args_type` isn't an
    attrs class whose fields can be read from a configuration.
    """


class HookError(PluginError):
    """The error of a hookimpl that doesn't fit the hookspecs: the hook is unknown, or lacks one of the arguments."""


class ProfileError(KschedfwError):
    """The error of an invalid profile, whatever its plugins do."""


class IncompleteClusterError(KschedfwError, TypeError):
    """The error of an object that lacks methods of a cluster. Its text names them."""


class ClusterError(KschedfwError):
    """The error of a request that a cluster refused. Nothing was changed."""


class NotFoundError(ClusterError):
    """The error of an object that doesn't exist (HTTP 404 at the API server), whatever its watch has told so far."""


class ConflictError(ClusterError):
    """The error of a request made for another state of the object than the present one (HTTP 409 Conflict).

    `present` is the state that an update has met, if the cluster tells it: `Cluster.get` may not have it yet.
    """

    present: Named | None = None
