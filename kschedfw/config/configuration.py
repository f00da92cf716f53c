"""An effective configuration: defaults filled in, plugins expanded, arguments structured."""

from __future__ import annotations

from kschedfw.api.records import frozen
from kschedfw.config.schema import Settings
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGates
from kschedfw.framework.profile import Profile


@frozen(kw_only=True)
class SchedulerConfiguration(Settings):
    """A whole configuration. `source` is its file or another description of its origin; `warnings` are for its user.

    Profiles that are read from a document list their plugins per extension point. Their `args` have an instance of the
    arguments class for each enabled plugin that has one, and for the in-tree plugins for which the configuration has
    arguments. `api_version` is empty if the configuration wasn't made from a document.
    """

    source: str = "configuration"
    api_version: str = ""
    profiles: tuple[Profile, ...]
    warnings: tuple[str, ...] = ()
    gates: FeatureGates = DEFAULT_GATES
