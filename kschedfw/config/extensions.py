"""Kinds of configuration documents of other distributions, and ready-made configurations by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from kschedfw.api.extensions import Extensions
from kschedfw.config.catalog import PluginCatalog
from kschedfw.config.configuration import SchedulerConfiguration
from kschedfw.config.document import ConfigurationDocument
from kschedfw.framework.gates import FeatureGates


@attrs.frozen
class ConfigurationKind:
    """A kind of configuration document beside KubeSchedulerConfiguration.

    An entry point of the group `kschedfw.configurations` has the document's `kind` as its name and refers to a
    ConfigurationKind. `versions` are the values of `apiVersion` that `read` accepts. `read` returns the
    configuration or raises ConfigurationError with all errors. A ConfigMap with the key `config_map_key` has a
    document in it.
    """

    versions: tuple[str, ...]
    read: Callable[[ConfigurationDocument, PluginCatalog, FeatureGates], SchedulerConfiguration]
    config_map_key: str = ""


@attrs.frozen
class Preset:
    """A ready-made configuration that commands take by name, as algorithm providers were.

    An entry point of the group `kschedfw.presets` has the name and refers to a Preset. `make` returns the
    configuration with the plugins of the catalog.
    """

    make: Callable[[PluginCatalog, FeatureGates], SchedulerConfiguration]


LEGACY: Final = "kschedfw-legacy"
"""The distribution with what kube-scheduler had until v1.22."""

CONFIGURATION_KINDS: Final = Extensions(
    "kschedfw.configurations", "configuration kind", ConfigurationKind, {"Policy": LEGACY}
)
PRESETS: Final = Extensions(
    "kschedfw.presets",
    "algorithm provider",
    Preset,
    dict.fromkeys(("DefaultProvider", "ClusterAutoscalerProvider"), LEGACY),
)
