"""An effective configuration as plain data, for `kschedfw config show` and tests."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Set
from enum import Enum
from typing import get_type_hints

import attrs

from kschedfw.api.convert import json_name
from kschedfw.api.quantity import Quantity
from kschedfw.api.scalars import Duration
from kschedfw.config.configuration import SchedulerConfiguration
from kschedfw.config.schema import Settings
from kschedfw.framework.clock import format_duration
from kschedfw.framework.profile import Profile

SECRET = "…"


def plain(value: object, *, conceal: bool = True) -> object:
    """Return a value with all its defaults, as in a configuration; without fields that are null or empty.

    Fields that kube-scheduler's arguments don't have (by their metadata) are omitted, too, if they have their
    defaults. Keys and passwords are concealed unless `conceal` is false.
    """
    if isinstance(value, Quantity):
        return str(value)
    cls = type(value)
    if attrs.has(cls):
        found = _fields(value, cls, conceal=conceal)
        # Zeros and False stay: a field's default may be another value.
        return {key: content for key, content in found.items() if content not in (None, [], {}, "")}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        if not conceal:
            return base64.b64encode(value).decode()
        return SECRET if value else None
    if isinstance(value, Mapping):
        return {str(key): plain(content, conceal=conceal) for key, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, conceal=conceal) for item in value]
    if isinstance(value, Set):
        # Sorted, since a set's order differs from run to run.
        return sorted((plain(item, conceal=conceal) for item in value), key=repr)
    return value


def _fields(value: object, cls: type[attrs.AttrsInstance], *, conceal: bool) -> dict[str, object]:
    """Return the fields of the class, by their names in JSON; without those that are left out."""
    hints = get_type_hints(cls, include_extras=True)
    found: dict[str, object] = {}
    for field in attrs.fields(cls):
        content = getattr(value, field.name)
        if field.metadata.get("beyond_kube_scheduler") and content == field.default:
            continue
        if conceal and (shown := field.metadata.get("shown")) is not None:
            content = shown(content)
        is_duration = hints[field.name] == Duration and isinstance(content, float)
        found[json_name(field)] = format_duration(content) if is_duration else plain(content, conceal=conceal)
    return found


def settings_of(configuration: SchedulerConfiguration, *, conceal: bool = True) -> dict[str, object]:
    """Return all settings except the profiles; feature gates that were given, if any."""
    gates = dict(sorted(configuration.gates.given.items()))
    settings = _fields(configuration, Settings, conceal=conceal)
    return {**settings, "featureGates": gates} if gates else settings


def profile_of(profile: Profile) -> dict[str, object]:
    """Return a profile with its plugins per extension point; points without any are omitted."""
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "runAllFilters": profile.run_all_filters,
        "plugins": {
            str(point): [plain(plugin) for plugin in listed]
            for point, listed in profile.points.items()
            if listed
        },
        "args": {name: plain(args) for name, args in profile.args.items()},
    }


def effective(configuration: SchedulerConfiguration) -> dict[str, object]:
    """Return the whole configuration, as it is written in JSON."""
    return {
        "apiVersion": configuration.api_version,
        **settings_of(configuration),
        "profiles": [profile_of(profile) for profile in configuration.profiles],
        "warnings": list(configuration.warnings),
    }
