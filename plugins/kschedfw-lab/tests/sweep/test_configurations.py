"""Configurations of a sweep, and what factors change in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from compare.scenes import CONFIGURATION
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_lab import SweepError
from kschedfw_lab.sweep.configurations import (
    DEFAULT_CONFIGURATION,
    Change,
    PathChange,
    PluginChange,
    read_given,
    runnable,
)

from kschedfw.config import default_profile
from kschedfw.framework.profile import ExtensionPoint, Profile

WEIGHTS = {plugin.name: plugin.weight for plugin in default_profile().multi_point if plugin.weight}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conf.yaml").write_text(CONFIGURATION)
    return tmp_path


def profiles(configuration: object, folder: Path, *changes: Change) -> tuple[Profile, ...]:
    return runnable(read_given(configuration, folder).changed(changes)).candidate.profiles


def profile(*changes: Change) -> Profile:
    (only,) = runnable(DEFAULT_CONFIGURATION.changed(changes)).candidate.profiles
    return only


def weights(of: Profile) -> dict[str, int]:
    return {plugin.name: plugin.weight for plugin in of.points[ExtensionPoint.SCORE]}


class TestPlugins:
    @given(name=st.sampled_from(sorted(WEIGHTS)), weight=st.integers(1, 1000))
    def test_a_weight_is_that_of_the_score_and_changes_nothing_else(self, name: str, weight: int) -> None:
        default, changed = weights(profile()), weights(profile(PluginChange(name, weight)))
        assert changed == {**default, name: weight}

    @given(name=st.sampled_from(sorted(WEIGHTS)))
    def test_a_disabled_plugin_is_at_no_point(self, name: str) -> None:
        changed = profile(PluginChange(name, 0))
        assert not [
            point for point, listed in changed.points.items() if name in {each.name for each in listed}
        ]

    def test_one_that_is_not_among_the_default_ones_is_enabled_with_true(self) -> None:
        assert weights(profile(PluginChange("NodePreferAvoidPods", True)))["NodePreferAvoidPods"] == 1

    def test_none_leaves_it_as_it_is(self) -> None:
        assert profile(PluginChange("ImageLocality", None)) == profile()

    def test_where_a_point_enables_it_that_is_its_weight(self, folder: Path) -> None:
        spreading, packing = profiles("conf.yaml", folder, PluginChange("NodeResourcesFit", 7))
        assert weights(spreading)["NodeResourcesFit"] == weights(packing)["NodeResourcesFit"] == 7

    def test_where_a_point_enables_it_it_is_disabled(self, folder: Path) -> None:
        for each in profiles("conf.yaml", folder, PluginChange("NodeResourcesFit", 0)):
            assert "NodeResourcesFit" not in weights(each)

    def test_where_scoring_has_all_plugins_disabled_a_weight_is_that_of_scoring(self) -> None:
        nothing = PathChange("profiles[0].plugins.score.disabled", [{"name": "*"}])
        assert weights(profile(nothing, PluginChange("ImageLocality", 3))) == {"ImageLocality": 3}

    def test_an_empty_part_of_the_document_is_as_if_it_were_not_there(self) -> None:
        for path in ("profiles[0].plugins", "profiles[0].plugins[multiPoint]", "profiles[0].plugins[score]"):
            empty = PathChange(path, {})
            assert weights(profile(empty, PluginChange("ImageLocality", 3)))["ImageLocality"] == 3
            assert "ImageLocality" not in weights(profile(empty, PluginChange("ImageLocality", 0)))

    def test_disabled_and_enabled_again_it_has_its_weight(self) -> None:
        twice = (PluginChange("ImageLocality", 0), PluginChange("ImageLocality", 3))
        assert weights(profile(*twice))["ImageLocality"] == 3


def test_a_path_changes_an_argument() -> None:
    path = "profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.type"
    args: Any = profile(PathChange(path, "MostAllocated")).args["NodeResourcesFit"]
    assert args.scoring_strategy.type == "MostAllocated"


def test_the_document_itself_does_not_change(folder: Path) -> None:
    before = read_given("conf.yaml", folder)
    after = before.changed([PathChange("podMaxBackoffSeconds", 5)])
    assert runnable(before).candidate.configuration.pod_max_backoff_seconds == 30
    assert runnable(after).candidate.configuration.pod_max_backoff_seconds == 5


def test_one_profile_of_a_file_takes_every_pod(folder: Path) -> None:
    candidate = runnable(read_given("conf.yaml#packing", folder)).candidate
    assert [each.scheduler_name for each in candidate.profiles] == ["packing"]
    assert candidate.takes_every_pod


def test_a_document_can_be_in_the_specification() -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    given_here = read_given({"name": "mine", "document": {**document, "podMaxBackoffSeconds": 3}}, Path())
    assert (given_here.label, runnable(given_here).candidate.configuration.pod_max_backoff_seconds) == (
        "mine",
        3,
    )


def test_the_plugins_distributions_are_told_with_versions() -> None:
    own, devices = runnable(DEFAULT_CONFIGURATION).distributions
    assert own.startswith("kschedfw ")
    assert devices.startswith("kschedfw-devices ")


def test_a_version_of_kubernetes_is_a_part_of_what_a_configuration_is(folder: Path) -> None:
    names = ("conf.yaml", "conf.yaml@1.35", "default", "default@1.35")
    given = [read_given(name, folder) for name in names]
    assert [each.label for each in given] == list(names)
    versions = [runnable(each).candidate.configuration.gates.version for each in given]
    assert versions == ["1.36", "1.35", "1.36", "1.35"]
    assert given[0].to_json() | {"version": "1.35"} == given[1].to_json() != given[0].to_json()
    changed = given[1].changed([PluginChange("ImageLocality", 0)])
    assert runnable(changed).candidate.configuration.gates.version == "1.35"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("DefaultProvider@1.35", "DefaultProvider is of v1.20; a version goes with default and files"),
        ("default@1.20", "default@1.20: there are no defaults of version 1.20; known: 1.34, 1.35"),
        ("nosuch.yaml", "nosuch.yaml: no such file; give a configuration file, FILE#PROFILE, default"),
        ("conf.yaml#nosuch", "no profile 'nosuch'; there are default-scheduler, packing"),
        (3, "expected a name or a file, found 3"),
        ({"name": "x"}, "document: expected a configuration, found null"),
        ({"document": {}}, "name: expected a text, found null"),
        ({"name": "x", "document": {"kind": "Pod"}}, "document: x: apiVersion: Required value"),
        ({"name": "x", "documnt": {}}, "documnt: unknown field; did you mean document?"),
        ({"name": "x", "document": {}, "profile": 3}, "profile: expected a text, found 3"),
    ],
)
def test_wrong_configurations_are_refused(wrong: object, why: str, folder: Path) -> None:
    with pytest.raises(SweepError) as caught:
        runnable(read_given(wrong, folder))
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_providers_profile_can_not_be_changed() -> None:
    with pytest.raises(SweepError, match="has no document to change; give a file"):
        read_given("DefaultProvider", Path()).changed([PluginChange("ImageLocality", 0)])
