"""Loading of configurations: from documents to `SchedulerConfiguration`, with all errors at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs

from kschedfw.api.convert import json_name, structure
from kschedfw.api.extensions import how_to_install
from kschedfw.api.field_errors import FieldError, FieldErrors, at
from kschedfw.api.pod import DEFAULT_SCHEDULER_NAME
from kschedfw.api.removed_versions import removal_of, removed_in
from kschedfw.api.strict import unknown_fields, without_unset
from kschedfw.api.words import with_article
from kschedfw.config.catalog import PluginCatalog
from kschedfw.config.configuration import SchedulerConfiguration
from kschedfw.config.document import (
    ConfigurationDocument,
    Content,
    document_of,
    parse_document,
    read_document,
)
from kschedfw.config.errors import ConfigurationError
from kschedfw.config.extensions import CONFIGURATION_KINDS, PRESETS
from kschedfw.config.profiles import GROUP, read_profile, useless_entries
from kschedfw.config.schema import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    Settings,
    is_in_version,
)
from kschedfw.config.validation import V1, settings_errors
from kschedfw.framework.gate_table import DECLARED_GATES, FEATURE_GATES
from kschedfw.framework.gates import DEFAULT_GATES, FeatureGateError, FeatureGates
from kschedfw.framework.profile import ExtensionPoint, Profile
from kschedfw.framework.runtime.registry import Registry

KIND = "KubeSchedulerConfiguration"
VERSIONS = tuple(f"{GROUP}/{version}" for version in ("v1", "v1beta3", "v1beta2", "v1beta1"))
"""The versions that are read, the newest first; kube-scheduler v1.36 reads V1 alone."""


def load_configuration(
    path: Path | str,
    registry: Registry | None = None,
    *,
    gates: FeatureGates = DEFAULT_GATES,
    versions: Sequence[str] = VERSIONS,
) -> SchedulerConfiguration:
    """Read the configuration in a file, or in the only key of a ConfigMap; `-` is the standard input.

    `registry` offers its plugins (by default: everything installed). `gates` take precedence over those that
    the configuration gives in `featureGates`. A KubeSchedulerConfiguration refuses gates that only Policies
    heed. `versions` are the versions of KubeSchedulerConfiguration that are read: by default also those before v1,
    with a warning; `V1` alone is what kube-scheduler v1.36 reads.

    Raises:
        ConfigurationError: the configuration has errors; names all of them.
        OSError: the file can't be read.
    """
    return _configuration(read_document(path), registry, gates, versions)


def parse_configuration(
    given: str | Content,
    source: str = "configuration",
    registry: Registry | None = None,
    *,
    gates: FeatureGates = DEFAULT_GATES,
) -> SchedulerConfiguration:
    """Read a configuration from a text, or from parsed content; `source` is its name in errors.

    For feature gates see `load_configuration`.

    Raises:
        ConfigurationError: the configuration has errors; names all of them.
    """
    document = parse_document(given, source) if isinstance(given, str) else document_of(given, source)
    return _configuration(document, registry, gates, VERSIONS)


def _configuration(
    document: ConfigurationDocument,
    registry: Registry | None,
    gates: FeatureGates,
    versions: Sequence[str],
) -> SchedulerConfiguration:
    catalog = PluginCatalog(Registry() if registry is None else registry)
    if (document.kind, document.api_version) == ("ConfigMap", "v1"):
        document = _mounted(document)
    if document.kind in CONFIGURATION_KINDS.names():
        kind = CONFIGURATION_KINDS.load(document.kind)
        if document.api_version in kind.versions:
            with CONFIGURATION_KINDS.calling(document.kind):
                return kind.read(document, catalog, gates)
    if document.kind != KIND or document.api_version not in versions:
        raise ConfigurationError(document.source, [FieldError("", _not_registered(document, versions))])
    written, errors = _decoded(document, gates.version)
    gates = _merged(gates, written, errors)
    errors += settings_errors(written, document.api_version)
    makers: list[Callable[[], Profile]] = []
    warnings = [*document.warnings, *_version_warning(document), *gates.notes, *_own_fields(document)]
    for index, profile in enumerate(written.profiles):
        make, wrong = read_profile(profile, catalog, document.api_version, gates)
        makers.append(make)
        errors += [error.inside(f"profiles[{index}]") for error in wrong]
        warnings += [f"profiles[{index}].{warning}" for warning in useless_entries(profile, catalog)]
    profiles: list[Profile] = []
    if not errors:
        profiles = [make() for make in makers]
        # Without errors every profile has exactly one queue sort plugin.
        errors += _different_queue_sorts(profiles)
    if errors:
        raise ConfigurationError(document.source, errors, warnings)
    settings = {field.name: getattr(written, field.name) for field in attrs.fields(Settings)}
    return SchedulerConfiguration(
        source=document.source,
        api_version=document.api_version,
        profiles=tuple(profiles),
        warnings=tuple(warnings),
        gates=gates,
        **settings,
    )


def preset_configuration(
    name: str, gates: FeatureGates = DEFAULT_GATES, registry: Registry | None = None
) -> SchedulerConfiguration:
    """Return the ready-made configuration of this name; plugins that aren't available are omitted, with a warning.

    Raises:
        ExtensionError: no installed distribution has one of this name.
        ConfigurationError: plugins refuse their arguments.
    """
    preset = PRESETS.load(name)
    with PRESETS.calling(name):
        return preset.make(PluginCatalog(Registry() if registry is None else registry), gates)


def _merged(
    gates: FeatureGates, written: KubeSchedulerConfiguration, errors: list[FieldError]
) -> FeatureGates:
    """Return the gates with those of the document that aren't given; add the errors of both."""
    try:
        merged = attrs.evolve(gates, given={**written.feature_gates, **gates.given})
    except FeatureGateError as error:
        # The rest of the document is checked all the same, with the gates that were given.
        errors += [FieldError("featureGates", problem) for problem in error.problems]
        return gates
    errors += [error for name in merged.given for error in _only_for_policies(name, merged.version)]
    return merged


def _only_for_policies(name: str, version: str) -> Sequence[FieldError]:
    if name in FEATURE_GATES:
        return ()
    gate = DECLARED_GATES.load(name)
    if gate.at(version) is not None:
        return ()
    instead = gate.instead and f"; {gate.instead}"
    why = f"only Policies and algorithm providers heed it{instead}"
    return (FieldError.forbidden(f"featureGates.{name}", why),)


def _not_registered(document: ConfigurationDocument, versions: Sequence[str]) -> str:
    supported = {KIND: versions}
    for name in CONFIGURATION_KINDS.names():
        supported[name] = CONFIGURATION_KINDS.load(name).versions
    listed = ", and ".join(f"{kind} in {', '.join(versions)}" for kind, versions in supported.items())
    home = CONFIGURATION_KINDS.homes.get(document.kind)
    hint = ""
    if home is not None and document.kind not in supported:
        hint = f"; {document.kind} is in the distribution {home}: {how_to_install(home)}"
    hint += removal_of(document.api_version, document.kind)
    return f'no kind "{document.kind}" is registered for version "{document.api_version}"; supported are {listed}{hint}'


def _mounted(document: ConfigurationDocument) -> ConfigurationDocument:
    """Return the document in a ConfigMap: that of a key of a configuration kind, or else that of the only key.

    Raises:
        ConfigurationError: the ConfigMap has no document, or several.
    """
    data = document.content.get("data")
    texts = {str(key): text for key, text in data.items()} if isinstance(data, Mapping) else {}
    keys = {CONFIGURATION_KINDS.load(name).config_map_key: name for name in CONFIGURATION_KINDS.names()}
    named = [key for key in keys if key in texts]
    if len(named or texts) != 1:
        found = ", ".join(texts) or "none"
        others = "".join(f"{with_article(kind)} in {key}, or " for key, kind in keys.items() if key)
        expected = f"{others}a configuration in the only key"
        raise ConfigurationError(
            document.source, [FieldError("data", f"a ConfigMap must have {expected}; its keys: {found}")]
        )
    (key,) = named or texts
    text = texts[key]
    if not isinstance(text, str):
        raise ConfigurationError(
            document.source, [FieldError.invalid(at("data", key), text, "must be a string")]
        )
    return parse_document(text, f"{document.source}: {at('data', key)}")


def _decoded(
    document: ConfigurationDocument, version: str
) -> tuple[KubeSchedulerConfiguration, list[FieldError]]:
    """Return the document with its defaults, and the fields that this version of Kubernetes doesn't know.

    Raises:
        ConfigurationError: a field has the wrong type, so that nothing else can be checked.
    """
    content = {key: value for key, value in document.content.items() if key not in ("apiVersion", "kind")}
    known = partial(is_in_version, version=version)
    unknown = list(unknown_fields(content, KubeSchedulerConfiguration, is_known=known))
    try:
        written = structure(without_unset(content, KubeSchedulerConfiguration), KubeSchedulerConfiguration)
    except FieldErrors as error:
        raise ConfigurationError(document.source, (*unknown, *error.errors)) from None
    profiles = written.profiles or (KubeSchedulerProfile(),)
    # kube-scheduler gives the default name to a single profile only: several without names would have the same.
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        profiles = (attrs.evolve(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    return attrs.evolve(written, profiles=profiles), unknown


def _own_fields(document: ConfigurationDocument) -> list[str]:
    own = [
        json_name(field) for field in attrs.fields(Settings) if field.metadata.get("beyond_kube_scheduler")
    ]
    return [
        f"{name}: kschedfw run has it; kube-scheduler refuses a file with it"
        for name in own
        if name in document.content
    ]


def _version_warning(document: ConfigurationDocument) -> list[str]:
    if document.api_version == V1:
        return []
    read_as = "it is read as v1, with v1's default plugins and weights"
    removed = removed_in(document.api_version, document.kind)
    return [f"kube-scheduler reads {document.api_version} no longer since v{removed}; {read_as}"]


def _different_queue_sorts(profiles: Sequence[Profile]) -> list[FieldError]:
    """Return errors if profiles differ in their queue sort plugin, multiPoint included: they share one queue."""
    point = ExtensionPoint.QUEUE_SORT
    first = profiles[0].points[point][0].name
    return [
        FieldError.invalid(
            f"profiles[{index}].plugins.queueSort",
            name,
            f'must be the same for all profiles, first: "{first}"',
        )
        for index, profile in enumerate(profiles)
        if (name := profile.points[point][0].name) != first
    ]
