"""Configurations by name: files, profiles of files and presets, and other distributions' kinds of documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from kschedfw.api.errors import KschedfwError
from kschedfw.api.extensions import Extensions
from kschedfw.api.records import frozen
from kschedfw.config.catalog import PluginCatalog
from kschedfw.config.configuration import SchedulerConfiguration
from kschedfw.config.document import ConfigurationDocument
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.versions import VERSIONS


@frozen
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


@frozen
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


DEFAULT: Final = "default"
_OTHERS = ("a configuration file, FILE#PROFILE", DEFAULT, *PRESETS.names())
WHAT_THERE_IS: Final = f"{', '.join(_OTHERS[:-1])} or {_OTHERS[-1]}"
_VERSIONED: Final = re.compile(r"(.+)@(1\.\d+)")


class UnknownConfigurationError(KschedfwError, ValueError):
    """The error of a text that names no configuration; says what would."""


@frozen
class NamedConfiguration:
    """A configuration file and perhaps a profile in it, or the name of a built-in configuration.

    `version` is that of Kubernetes whose feature gates are the defaults; None for v1.36.
    """

    text: str
    file: Path | None = None
    profile: str | None = None
    version: str | None = None

    @classmethod
    def of(cls, text: str, folder: Path = Path()) -> NamedConfiguration:
        """Return the configuration of this name; files are looked for in the folder.

        Raises:
            UnknownConfigurationError: there is no such file, or no such version.
        """
        # Before files, so that a name means the same in every folder; a file called default is ./default.
        if text == DEFAULT or text in PRESETS.names():
            return cls(text)
        # Before `#` and `@` are looked for, which the name of a file may contain, too.
        if (folder / text).is_file():
            return cls(text, folder / text)
        if (versioned := _VERSIONED.fullmatch(text)) is not None:
            if (version := versioned[2]) not in VERSIONS:
                known = ", ".join(VERSIONS)
                raise UnknownConfigurationError(f"there are no defaults of version {version}; known: {known}")
            if (named := cls.of(versioned[1], folder)).provider is not None:
                raise UnknownConfigurationError(
                    f"{named.text} is of v1.20; a version goes with default and files"
                )
            return attrs.evolve(named, text=text, version=version)
        file, separator, profile = text.rpartition("#")
        if separator and profile and (folder / file).is_file():
            return cls(text, folder / file, profile)
        raise UnknownConfigurationError(f"no such file; give {WHAT_THERE_IS}")

    @property
    def provider(self) -> str | None:
        """The name of the algorithm provider; None if the name is no provider's."""
        return self.text if self.text in PRESETS.names() else None

    @property
    def labels(self) -> tuple[str, str, str]:
        """Possible labels, from the shortest one to a unique one."""
        if self.file is None:
            return (self.text, self.text, self.text)
        suffix = ("" if self.profile is None else f"#{self.profile}") + self._version
        return (f"{self.profile or self.file.stem}{self._version}", f"{self.file.name}{suffix}", self.text)

    @property
    def _version(self) -> str:
        return "" if self.version is None else f"@{self.version}"


def short_labels(named: Sequence[NamedConfiguration]) -> list[str]:
    """Return the shortest labels that are all different."""
    lengths = [0] * len(named)
    # This ends if the texts differ: they are the last labels.
    while True:
        labels = [each.labels[length] for each, length in zip(named, lengths, strict=True)]
        counts = Counter(labels)
        if len(counts) == len(labels):
            return labels
        lengths = [
            min(length + (counts[label] > 1), 2) for length, label in zip(lengths, labels, strict=True)
        ]
