"""Configurations for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kschedfw import ConfigurationError, Plugin, Registry, SchedulerConfiguration, hookimpl
from kschedfw.config import parse_configuration
from kschedfw.framework.plugin import AnyPlugin

V1 = "kubescheduler.config.k8s.io/v1"
REGISTRY = Registry()
"""What is installed; shared, since a registry without registrations doesn't change."""


def document(api_version: str = V1, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": "KubeSchedulerConfiguration", **fields}


def one_profile(api_version: str = V1, **fields: Any) -> dict[str, Any]:
    return document(api_version, profiles=[fields])


def loaded(content: str | dict[str, Any], *plugins: type[AnyPlugin]) -> SchedulerConfiguration:
    return parse_configuration(content, "c.yaml", registry_with(plugins))


def refused(content: str | dict[str, Any], *plugins: type[AnyPlugin]) -> list[str]:
    """Everything that is wrong with it."""
    with pytest.raises(ConfigurationError) as caught:
        loaded(content, *plugins)
    errors = [str(error) for error in caught.value.errors]
    assert str(caught.value) == "\n".join(f"c.yaml: {error}" for error in errors)
    return errors


def registry_with(plugins: Iterable[type[AnyPlugin]]) -> Registry:
    if not plugins:
        return REGISTRY
    registry = Registry()
    for plugin in plugins:
        registry.register(plugin)
    return registry


def plugin_with_hooks(name: str, *hooks: str) -> type[AnyPlugin]:
    """A plugin that has these hooks, of which none does anything."""

    def make() -> object:
        return hookimpl(lambda self: None)

    return type(name, (Plugin,), {"name": name, **{hook: make() for hook in hooks}})
