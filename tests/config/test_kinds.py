"""Kinds of documents that another distribution brings, by an entry point of the group `kschedfw.configurations`."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import attrs
import pytest

from kschedfw import ExtensionPoint, NodeInfo, Plugin, Registry, Status, hookimpl
from kschedfw.config import (
    CONFIGURATION_KINDS,
    ConfigurationDocument,
    ConfigurationError,
    ConfigurationKind,
    FeatureGates,
    PluginCatalog,
    SchedulerConfiguration,
    parse_configuration,
)


class Rack(Plugin):
    """A filter that only this process has."""

    name = "Rack"

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return None if "rack" in node_info.node.labels else Status.unschedulable("no rack")


def read(
    document: ConfigurationDocument, catalog: PluginCatalog, gates: FeatureGates
) -> SchedulerConfiguration:
    """The default profile with the one plugin that the document names."""
    enabled = {"multiPoint": {"enabled": [{"name": document.content["plugin"]}]}}
    return parse_configuration(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": enabled}],
        },
        document.source,
        catalog.registry,
        gates=gates,
    )


ONE_PLUGIN = ConfigurationKind(("racks.example.com/v1",), read)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    offer = EntryPoint("OnePlugin", f"{__name__}:ONE_PLUGIN", "kschedfw.configurations")
    monkeypatch.setattr("kschedfw.api.extensions.entry_points_of", lambda _groups: [offer])
    monkeypatch.setattr("kschedfw.config.loading.CONFIGURATION_KINDS", attrs.evolve(CONFIGURATION_KINDS))


def test_a_document_of_the_kind_is_read_with_the_callers_plugins() -> None:
    registry = Registry()
    registry.register(Rack)
    document = {"apiVersion": "racks.example.com/v1", "kind": "OnePlugin", "plugin": "Rack"}
    (profile,) = parse_configuration(document, registry=registry).profiles
    assert "Rack" in [plugin.name for plugin in profile.points[ExtensionPoint.FILTER]]


def test_its_problems_are_those_of_the_document_that_was_given() -> None:
    document = {"apiVersion": "racks.example.com/v1", "kind": "OnePlugin", "plugin": "Rack"}
    with pytest.raises(ConfigurationError, match=r'^one\.yaml: .*plugin "Rack" does not exist'):
        parse_configuration(document, "one.yaml")


def test_another_version_of_it_is_refused_with_those_that_are_read() -> None:
    document = {"apiVersion": "racks.example.com/v2", "kind": "OnePlugin", "plugin": "Rack"}
    with pytest.raises(ConfigurationError, match=r"and OnePlugin in racks\.example\.com/v1$"):
        parse_configuration(document)
