"""The configurations of a sweep: documents, and the changes that factors make to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import attrs

from kschedfw import ConfigurationError, KschedfwError, Registry, SchedulerConfiguration
from kschedfw.api.reading import shown
from kschedfw.config import (
    DEFAULT,
    DEFAULT_GATES,
    FeatureGates,
    NamedConfiguration,
    UnknownConfigurationError,
    document_of,
    parse_configuration,
    preset_configuration,
    read_document,
)
from kschedfw_lab.compare import Setup
from kschedfw_lab.sweep.errors import SweepError, one_line, similar
from kschedfw_lab.sweep.paths import set_at

_EMPTY: Final = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_KEYS: Final = ("name", "document", "profile")
_KEPT: Final = 64
"""The number of parsed configurations that a process keeps."""


@attrs.frozen
class Configuration:
    """A configuration: its document as JSON (empty for an algorithm provider), and the only profile to run, if any.

    `version` is the version of Kubernetes whose defaults of feature gates apply. `source` is its name in errors.
    """

    label: str
    document: str = ""
    profile: str | None = None
    provider: str | None = None
    source: str = ""
    version: str | None = None

    def changed(self, changes: Iterable[Change]) -> Configuration:
        """Return the configuration with these changes.

        Raises:
            SweepError: the document has no place for a change.
        """
        changes = tuple(changes)
        if not changes:
            return self
        if self.provider is not None:
            raise SweepError(
                f"{self.provider} is an algorithm provider, which has no document to change; give a file"
            )
        content = json.loads(self.document)
        for change in changes:
            change.apply(content)
        what = ", ".join(map(str, changes))
        return attrs.evolve(self, document=_canonical(content), source=f"{self.source} with {what}")

    def to_json(self) -> dict[str, object]:
        """Return the content without its location, so that equal contents have equal keys."""
        versioned = {} if self.version is None else {"version": self.version}
        return {"document": self.document, "profile": self.profile, "provider": self.provider, **versioned}


@attrs.frozen
class PathChange:
    """A change that sets the value at a path in the document, or deletes it if the value is None."""

    path: str
    value: object

    def __str__(self) -> str:
        return f"{self.path}={shown(self.value)}"

    def apply(self, content: dict[str, Any]) -> None:
        set_at(content, self.path, self.value)


@attrs.frozen
class PluginChange:
    """A change of a plugin in every profile.

    The value is the plugin's weight. 0 disables the plugin, True enables it, None leaves it unchanged.
    """

    plugin: str
    value: int | bool | None

    def __str__(self) -> str:
        return f"plugins.{self.plugin}={shown(self.value)}"

    def apply(self, content: dict[str, Any]) -> None:
        if self.value is None:
            return
        # Without profiles, kube-scheduler has one with its defaults.
        profiles = content.get("profiles") or [{}]
        content["profiles"] = profiles
        for index, profile in enumerate(profiles):
            if not isinstance(profile, dict):
                raise SweepError(f"profiles[{index}] is no object in the document")
            if not isinstance(profile.get("plugins"), dict):
                profile["plugins"] = {}
            self._apply_to(profile["plugins"])

    def _apply_to(self, plugins: dict[str, Any]) -> None:
        is_wanted = bool(self.value)
        found = False
        for point, listed in plugins.items():
            if not isinstance(listed, dict):
                continue
            disabled = [each for each in listed.get("disabled") or () if not self._is_named(each)]
            enabled = [
                self._weighted(each, point) if self._is_named(each) else each
                for each in listed.get("enabled") or ()
                if is_wanted or not self._is_named(each)
            ]
            found = found or any(map(self._is_named, enabled))
            listed.update({"enabled": enabled, "disabled": disabled})
        if not is_wanted:
            # No point enables it by name any more, so it is enough to keep it out of the defaults.
            _append(plugins, "multiPoint", "disabled", {"name": self.plugin})
        elif not found:
            # A point that disables all plugins doesn't get those that multiPoint enables.
            has_all_disabled = {"name": "*"} in (plugins.get("score") or {}).get("disabled", ())
            point = "score" if has_all_disabled else "multiPoint"
            _append(plugins, point, "enabled", self._weighted({"name": self.plugin}, point))

    def _is_named(self, entry: object) -> bool:
        return isinstance(entry, dict) and entry.get("name") == self.plugin

    def _weighted(self, entry: dict[str, Any], point: str) -> dict[str, Any]:
        # Only scores have weights, and multiPoint passes its weight on to score.
        if isinstance(self.value, bool) or point not in ("score", "multiPoint"):
            return entry
        return {**entry, "weight": self.value}


def _append(plugins: dict[str, Any], point: str, key: str, entry: dict[str, Any]) -> None:
    if not isinstance(plugins.get(point), dict):
        plugins[point] = {}
    plugins[point][key] = [*(plugins[point].get(key) or ()), entry]


Change = PathChange | PluginChange


def _source(name: str) -> str:
    return f"configuration {name}"


def read_given(given: object, folder: Path) -> Configuration:
    """Return the configuration for a value of the factor `configuration`.

    The value is a name as for `kschedfw compare --profile`, with paths relative to the folder; or a mapping with
    `name`, `document` and optionally `profile`.

    Raises:
        SweepError: the value is no configuration, or the file can't be read.
    """
    if isinstance(given, Mapping):
        return _inline(given)
    if not isinstance(given, (str, Path)):
        raise SweepError(f"expected a name or a file, found {shown(given)}")
    text = str(given)
    try:
        named = NamedConfiguration.of(text, folder)
        if named.file is None:
            document = "" if named.provider else _canonical(_EMPTY)
            return Configuration(
                text, document, provider=named.provider, source=_source(text), version=named.version
            )
        read = read_document(named.file)
    except UnknownConfigurationError as error:
        raise SweepError(f"{text}: {error}") from None
    except (ConfigurationError, OSError) as error:
        raise SweepError(one_line(error)) from None
    return Configuration(
        text, _canonical(read.content), named.profile, source=_source(text), version=named.version
    )


DEFAULT_CONFIGURATION: Final = Configuration(
    DEFAULT, json.dumps(_EMPTY, sort_keys=True), source=_source(DEFAULT)
)


def _inline(given: Mapping[str, object]) -> Configuration:
    for key in given:
        if key not in _KEYS:
            raise SweepError.at(str(key), f"unknown field; {similar(str(key), _KEYS)}")
    name, document, profile = (given.get(key) for key in _KEYS)
    if not isinstance(name, str) or not name:
        raise SweepError.at("name", f"expected a text, found {shown(name)}")
    if not isinstance(document, Mapping):
        raise SweepError.at("document", f"expected a configuration, found {shown(document)}")
    if profile is not None and not isinstance(profile, str):
        raise SweepError.at("profile", f"expected a text, found {shown(profile)}")
    try:
        return Configuration(
            name, _canonical(document_of(document, name).content), profile, source=_source(name)
        )
    except (ConfigurationError, TypeError, ValueError) as error:
        raise SweepError.at("document", one_line(error)) from None


def _canonical(content: Mapping[str, object]) -> str:
    # Sorted, since runs are known by the hash of their content.
    return json.dumps(content, sort_keys=True, allow_nan=False)


# --- Candidates --------------------------------------------------------------------------------------------------


@cache
def registry() -> Registry:
    """Return the registry of the installed plugins. All runs of a process share it."""
    return Registry()


@attrs.frozen
class Runnable:
    """A configuration that can run: its candidate, its plugins' distributions with versions, sorted, and warnings."""

    candidate: Setup
    distributions: Sequence[str]
    warnings: Sequence[str]


@lru_cache(maxsize=_KEPT)
def runnable(configuration: Configuration) -> Runnable:
    """Parse the configuration, or return it if this process has parsed it already.

    Raises:
        SweepError: the configuration is invalid.
    """
    try:
        gates = (
            DEFAULT_GATES if configuration.version is None else FeatureGates(version=configuration.version)
        )
        if configuration.provider is not None:
            parsed = preset_configuration(configuration.provider, gates, registry())
        else:
            content = json.loads(configuration.document)
            parsed = parse_configuration(content, configuration.source, registry(), gates=gates)
        candidate = Setup.of(configuration.label, parsed, configuration.profile)
    except KschedfwError as error:
        raise SweepError(one_line(error)) from None
    warnings = [f"{configuration.source}: warning: {each}" for each in (*parsed.warnings, *candidate.notes)]
    return Runnable(candidate, _distributions(parsed), warnings)


def _distributions(parsed: SchedulerConfiguration) -> Sequence[str]:
    plugins = (plugin for profile in parsed.profiles for plugin in profile.listed)
    return sorted({plugin.distribution for plugin in plugins if plugin.distribution is not None})
