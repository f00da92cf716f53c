"""Configurations: KubeSchedulerConfiguration documents, the default profile, feature gates, and what extends them."""

from kschedfw.config.catalog import PluginCatalog
from kschedfw.config.configuration import SchedulerConfiguration
from kschedfw.config.default_profile import DEFAULT_PLUGINS, default_profile
from kschedfw.config.document import (
    ConfigurationDocument,
    Content,
    document_of,
    parse_document,
    read_document,
)
from kschedfw.config.effective import effective, plain
from kschedfw.config.errors import ConfigurationError, ExtenderConfigError
from kschedfw.config.extenders import (
    ExtenderConfig,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    check_extenders,
    conflict_errors,
    with_ignored_resources,
    without_password,
)
from kschedfw.config.extensions import (
    CONFIGURATION_KINDS,
    DEFAULT,
    PRESETS,
    WHAT_THERE_IS,
    ConfigurationKind,
    NamedConfiguration,
    Preset,
    UnknownConfigurationError,
    short_labels,
)
from kschedfw.config.loading import load_configuration, parse_configuration, preset_configuration
from kschedfw.config.schema import KubeSchedulerConfiguration
from kschedfw.config.writing import overridden, written
from kschedfw.framework.gate_table import (
    FEATURE_GATES,
    GENERIC_WORKLOAD,
    FeatureGate,
    GateState,
    Stage,
)
from kschedfw.framework.gates import BOOLEANS, DEFAULT_GATES, FeatureGateError, FeatureGates
from kschedfw.framework.profile import Origin
from kschedfw.framework.versions import REFERENCE, VERSIONS, VersionChange

__all__ = [
    "BOOLEANS",
    "CONFIGURATION_KINDS",
    "DEFAULT",
    "DEFAULT_GATES",
    "DEFAULT_PLUGINS",
    "FEATURE_GATES",
    "GENERIC_WORKLOAD",
    "PRESETS",
    "REFERENCE",
    "VERSIONS",
    "WHAT_THERE_IS",
    "ConfigurationDocument",
    "ConfigurationError",
    "ConfigurationKind",
    "Content",
    "ExtenderConfig",
    "ExtenderConfigError",
    "ExtenderManagedResource",
    "ExtenderTLSConfig",
    "FeatureGate",
    "FeatureGateError",
    "FeatureGates",
    "GateState",
    "KubeSchedulerConfiguration",
    "NamedConfiguration",
    "Origin",
    "PluginCatalog",
    "Preset",
    "SchedulerConfiguration",
    "Stage",
    "UnknownConfigurationError",
    "VersionChange",
    "check_extenders",
    "conflict_errors",
    "default_profile",
    "document_of",
    "effective",
    "load_configuration",
    "overridden",
    "parse_configuration",
    "parse_document",
    "plain",
    "preset_configuration",
    "read_document",
    "short_labels",
    "with_ignored_resources",
    "without_password",
    "written",
]
