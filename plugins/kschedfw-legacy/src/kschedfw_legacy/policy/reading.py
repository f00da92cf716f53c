"""Reads Policies, and reports all errors at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from kschedfw.api import FieldError, FieldErrors
from kschedfw.api.reading import at, json_name, read_integer, structure, unknown_fields, wrong
from kschedfw.config import (
    ConfigurationDocument,
    ConfigurationError,
    Content,
    ExtenderConfig,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    document_of,
    parse_document,
    read_document,
)
from kschedfw_legacy.policy.model import Policy
from kschedfw_legacy.policy.validation import policy_errors

KIND = "Policy"
KINDS = (KIND, "ConfigMap")
VERSIONS = ("v1", "kubescheduler.config.k8s.io/v1")
CONFIG_MAP_KEY = "policy.cfg"
"""The key of the Policy in a ConfigMap, as in kube-scheduler."""


def load_policy(path: Path | str) -> Policy:
    """Read the Policy in a file, JSON or YAML, or the one in a ConfigMap's manifest.

    Raises:
        ConfigurationError: the Policy is invalid. The message lists all errors.
    """
    return policy_of(read_document(path))


def parse_policy(given: str | Content, source: str = KIND) -> Policy:
    """Read a Policy from a text or from parsed content. `source` is its name in errors.

    Raises:
        ConfigurationError: the Policy is invalid. The message lists all errors.
    """
    return policy_of(parse_document(given, source) if isinstance(given, str) else document_of(given, source))


def policy_of(document: ConfigurationDocument) -> Policy:
    """Return the Policy in a parsed document; see `load_policy`."""
    if (document.kind, document.api_version) == ("ConfigMap", "v1"):
        document = _in_config_map(document)
    if document.kind != KIND or document.api_version not in VERSIONS:
        what = f'no kind "{document.kind}" is registered for version "{document.api_version}"'
        supported = f"supported are {KIND} in {' and '.join(VERSIONS)}, and a ConfigMap with one"
        raise ConfigurationError(document.source, [FieldError("", f"{what}; {supported}")])
    content = {key: value for key, value in document.content.items() if key not in ("apiVersion", "kind")}
    extenders, errors = _extenders(content.pop("extenders", None))
    # Extenders are read separately: only their keys may have any case, and unknown ones are ignored there.
    errors += unknown_fields(content, Policy)
    try:
        policy = attrs.evolve(structure(content, Policy), extenders=extenders)
    except FieldErrors as error:
        errors += error.errors
    else:
        errors += policy_errors(policy)
        if not errors:
            return policy
    raise ConfigurationError(document.source, errors)


def _in_config_map(document: ConfigurationDocument) -> ConfigurationDocument:
    data, path = document.content.get("data"), at("data", CONFIG_MAP_KEY)
    text = data.get(CONFIG_MAP_KEY) if isinstance(data, Mapping) else None
    if not isinstance(text, str):
        raise ConfigurationError(document.source, [FieldError.required(path, f"the text of a {KIND}")])
    return parse_document(text, f"{document.source}: {path}")


def _extenders(given: object) -> tuple[tuple[ExtenderConfig, ...], list[FieldError]]:
    if given is None:
        return (), []
    if not isinstance(given, list):
        return (), [FieldError.invalid("extenders", given, "must be a list")]
    found: list[ExtenderConfig] = []
    errors: list[FieldError] = []
    for index, item in enumerate(given):
        try:
            found.append(read_extender(item))
        except FieldErrors as error:
            errors += [problem.inside(f"extenders[{index}]") for problem in error.errors]
    return tuple(found), errors


_NANOSECONDS = 1_000_000_000


def read_extender(given: object) -> ExtenderConfig:
    """Return the extender in an entry of `extenders`.

    Raises:
        FieldErrors: values have the wrong type. It names all of them, with the keys in their proper case.
    """
    if not isinstance(given, Mapping):
        raise wrong(given, "an object")
    content = _respelt(given, ExtenderConfig)
    if isinstance(tls := content.get("tlsConfig"), Mapping):
        content["tlsConfig"] = _respelt(tls, ExtenderTLSConfig)
    if isinstance(managed := content.get("managedResources"), list):
        content["managedResources"] = [
            _respelt(item, ExtenderManagedResource) if isinstance(item, Mapping) else item for item in managed
        ]
    errors: list[FieldError] = []
    nanoseconds, timeout = content.pop("httpTimeout", 0), 0
    try:
        timeout = read_integer(nanoseconds, int)
    except FieldErrors:
        why = "must be a whole number, of nanoseconds"
        errors.append(FieldError.invalid("httpTimeout", nanoseconds, why))
    try:
        config = structure(content, ExtenderConfig)
    except FieldErrors as error:
        errors += error.errors
    if errors:
        raise FieldErrors(errors)
    # A Policy writes Go's Duration as a number, a KubeSchedulerConfiguration as a text.
    return attrs.evolve(config, http_timeout=timeout / _NANOSECONDS)


def _respelt(given: Mapping[str, object], cls: type[attrs.AttrsInstance]) -> dict[str, object]:
    """Return the items for which the class has fields, with the keys in their proper case.

    Items with null are left out.
    """
    # kube-scheduler decodes extenders with encoding/json, which ignores the case of keys.
    keys = {json_name(field).lower(): json_name(field) for field in attrs.fields(cls)}
    return {
        keys[str(key).lower()]: value
        for key, value in given.items()
        if str(key).lower() in keys and value is not None
    }
