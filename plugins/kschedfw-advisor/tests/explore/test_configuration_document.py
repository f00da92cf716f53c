"""Editing a configuration: what is put back is as it was."""

from __future__ import annotations

import copy

import pytest
from explore.clusters import PROFILE, default_configuration
from kschedfw_advisor.explore.configuration_document import ConfigurationDocument, ConfigurationEditError

from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.runtime.registry import Registry


@pytest.fixture
def document() -> ConfigurationDocument:
    return ConfigurationDocument(default_configuration(), Registry())


def scored(document: ConfigurationDocument) -> dict[str, int]:
    listed = document.configuration().profiles[0].points[ExtensionPoint.SCORE]
    return {plugin.name: plugin.weight for plugin in listed}


def test_a_weight_is_set(document: ConfigurationDocument) -> None:
    document.set_weight(PROFILE, "NodeResourcesFit", 9)
    assert scored(document)["NodeResourcesFit"] == 9


def test_a_weight_of_nothing_takes_the_plugin_out_of_scoring_alone(document: ConfigurationDocument) -> None:
    document.set_weight(PROFILE, "NodeResourcesFit", 0)
    assert "NodeResourcesFit" not in scored(document)
    filters = document.configuration().profiles[0].points[ExtensionPoint.FILTER]
    assert "NodeResourcesFit" in [plugin.name for plugin in filters]
    document.set_weight(PROFILE, "NodeResourcesFit", 1)
    default = ConfigurationDocument(default_configuration(), Registry())
    assert document.content == default.content


@pytest.mark.parametrize(
    "plugin", ["NodeResourcesFit", "TaintToleration", "SchedulingGates", "ImageLocality"]
)
def test_a_plugin_that_is_off_and_on_again_is_where_it_was(
    document: ConfigurationDocument, plugin: str
) -> None:
    before = copy.deepcopy(document.content)
    document.switch(PROFILE, plugin, enabled=False)
    points = document.content["profiles"][0]["plugins"].values()
    assert not any(plugin == each["name"] for point in points for each in point["enabled"])
    document.switch(PROFILE, plugin, enabled=True)
    assert document.content == before


def test_a_new_plugin_comes_last_at_all_points_that_it_has(document: ConfigurationDocument) -> None:
    document.switch(PROFILE, "NodeResourcesMostAllocated", enabled=True)
    assert list(scored(document))[-1] == "NodeResourcesMostAllocated"


def test_arguments_replace_the_former_ones(document: ConfigurationDocument) -> None:
    document.set_arguments(PROFILE, "InterPodAffinity", {"hardPodAffinityWeight": 30})
    args = document.configuration().profiles[0].args["InterPodAffinity"]
    assert getattr(args, "hard_pod_affinity_weight") == 30  # noqa: B009  # the arguments' class is the plugin's own


def test_unknown_names(document: ConfigurationDocument) -> None:
    with pytest.raises(
        ConfigurationEditError, match="there is no profile 'other'; there is default-scheduler"
    ):
        document.set_weight("other", "NodeResourcesFit", 1)
    with pytest.raises(ConfigurationEditError, match="there is no plugin 'Nothing'"):
        document.switch(PROFILE, "Nothing", enabled=True)
