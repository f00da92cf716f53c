"""The extenders of a Policy, as an old scheduler read them.

Their keys may be written in any case, keys that mean nothing are passed over, and `httpTimeout` counts nanoseconds.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kschedfw.api.convert import json_name, structure
from kschedfw.api.field_errors import FieldError, FieldErrors
from kschedfw.api.scalars import read_integer, wrong
from kschedfw.config.extenders import ExtenderConfig, ExtenderManagedResource, ExtenderTLSConfig

_NANOSECONDS = 1_000_000_000


def read_extender(given: object) -> ExtenderConfig:
    """One entry of `extenders`.

    Raises:
        FieldErrors: a value has the wrong type; names all of them, by the keys as they ought to be written.
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
    return attrs.evolve(config, http_timeout=timeout / _NANOSECONDS)


def _respelt(given: Mapping[str, object], cls: type[attrs.AttrsInstance]) -> dict[str, object]:
    """What the class has fields for, under the fields' own keys; null stands for nothing."""
    keys = {json_name(field).lower(): json_name(field) for field in attrs.fields(cls)}
    return {
        keys[str(key).lower()]: value
        for key, value in given.items()
        if str(key).lower() in keys and value is not None
    }
