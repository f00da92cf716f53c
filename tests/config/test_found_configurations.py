"""Configurations found in the wild are accepted, expanded and refused as kube-scheduler v1.36 does.

They aren't part of the project; where they are missing, these tests are skipped.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kschedfw import Plugin, Registry, hookimpl
from kschedfw.config import (
    ConfigurationError,
    SchedulerConfiguration,
    load_configuration,
    parse_configuration,
)
from kschedfw.config.document import read_document
from kschedfw.config.effective import plain, settings_of
from kschedfw.config.loading import VERSIONS
from kschedfw.framework.hookspecs import bind, queue_sort
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import ExtensionPoint
from tests.conformance.compare import same_reason

pytestmark = pytest.mark.slow

SharedData = Callable[[str], Path]

# Texts in which values are spelled as Go's structs are.
SPELLED_OTHERWISE = {'[{"Utilization":0,"Score":0},{"Utilization":100,"Score":10}]'}


@pytest.fixture(scope="module")
def files(shared_data: SharedData) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shared_data("configs/expected-k8s136.json").read_text())["files"]
    return found


@pytest.fixture(scope="module")
def directory(shared_data: SharedData) -> Path:
    return shared_data("configs/expected-k8s136.json").parent.parent


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


def is_beta(file: dict[str, Any]) -> bool:
    """Whether kube-scheduler refuses the file for a version that kschedfw still reads."""
    return any(f'version "{version}" in scheme' in file.get("decodeError", "") for version in VERSIONS)


def plugin_class(name: str, hooks: Iterable[str]) -> type[AnyPlugin]:
    def make() -> object:
        return hookimpl(lambda *_arguments: None)

    return type(name, (Plugin,), {"name": name, **{each: make() for each in hooks}})


EVERYWHERE = (
    "pre_enqueue",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "post_bind",
)
"""What the stand-ins implement with which the lists were recorded; queue_sort and bind only where they are wanted."""


def without_args(content: Mapping[str, Any], plugins: Iterable[str]) -> dict[str, Any]:
    """The document without arguments for plugins whose stand-ins take none."""
    stripped = copy.deepcopy(dict(content))
    for profile in stripped["profiles"]:
        configs = profile.get("pluginConfig") or ()
        profile["pluginConfig"] = [config for config in configs if config["name"] not in plugins]
    return stripped


def with_stand_ins(file: dict[str, Any]) -> Registry:
    registry = Registry()
    for name in file.get("dummyPlugins", ()):
        extra = []
        if file.get("dummiesImplementQueueSort") or name in recorded_at(file, "QueueSort"):
            extra.append(queue_sort.__name__)
        if name in recorded_at(file, "Bind"):
            extra.append(bind.__name__)
        registry.register(plugin_class(name, (*EVERYWHERE, *extra)))
    return registry


def recorded_plugins(file: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    recorded: dict[str, dict[str, list[Any]]] = file.get("plugins") or file["pluginsWithDummies"]
    return recorded


def recorded_at(file: dict[str, Any], point: str) -> set[str]:
    return {name for profile in recorded_plugins(file).values() for name in profile.get(point, ())}


def recorded_lists(profile: dict[str, list[Any]]) -> dict[str, list[Any]]:
    points = {str(point): point for point in ExtensionPoint}
    lists = {name[0].lower() + name[1:]: plugins for name, plugins in profile.items()}
    return {point: plugins for point, plugins in lists.items() if plugins and point in points}


def our_lists(configuration: SchedulerConfiguration) -> dict[str, dict[str, list[Any]]]:
    return {
        profile.scheduler_name: {
            str(point): [
                [plugin.name, plugin.weight] if point is ExtensionPoint.SCORE else plugin.name
                for plugin in plugins
            ]
            for point, plugins in profile.points.items()
            if plugins
        }
        for profile in configuration.profiles
    }


def as_written(value: Any) -> Any:
    """What Go's structs hold, as a configuration spells it."""
    if isinstance(value, dict):
        found = {key[0].lower() + key[1:]: as_written(content) for key, content in value.items()}
        return {key: content for key, content in found.items() if content not in (None, [], {}, "")}
    return [as_written(item) for item in value] if isinstance(value, list) else value


def test_every_accepted_one_is_accepted_with_the_same_plugins_and_arguments(
    files: list[dict[str, Any]], directory: Path, registry: Registry
) -> None:
    checked = 0
    for file in files:
        if file["verdict"] == "accepted":
            configuration = load_configuration(directory / file["file"], registry)
            assert_same(configuration, file)
            checked += 1
    assert checked == 31


def test_those_with_plugins_that_are_not_installed_are_the_same_once_they_are(
    files: list[dict[str, Any]], directory: Path
) -> None:
    checked = 0
    for file in files:
        if file.get("pluginsWithDummies"):
            content = without_args(read_document(directory / file["file"]).content, file["dummyPlugins"])
            assert_same(parse_configuration(content, registry=with_stand_ins(file)), file)
            checked += 1
    assert checked == 53


def assert_same(configuration: SchedulerConfiguration, file: dict[str, Any]) -> None:
    recorded = {name: recorded_lists(profile) for name, profile in recorded_plugins(file).items()}
    assert our_lists(configuration) == recorded, file["file"]
    stand_ins = set(file.get("dummyPlugins", ()))
    for profile, theirs in zip(configuration.profiles, file["profiles"], strict=True):
        assert profile.scheduler_name == theirs["schedulerName"]
        assert profile.percentage_of_nodes_to_score == theirs["percentageOfNodesToScore"]
        ours = {name: as_written(plain(args)) for name, args in profile.args.items() if name not in stand_ins}
        assert ours == {
            entry["Name"]: as_written(entry["Args"])
            for entry in theirs["pluginConfig"]
            if entry["Name"] in profile.args and entry["Name"] not in stand_ins
        }, file["file"]
    assert_same_settings(configuration, file["top"])


def assert_same_settings(configuration: SchedulerConfiguration, recorded: dict[str, Any]) -> None:
    extenders = recorded.pop("extenders") or ()
    election, connection = configuration.leader_election, configuration.client_connection
    assert recorded == {
        "burst": connection.burst,
        "qps": connection.qps,
        "leaderElect": election.leader_elect,
        "resourceName": election.resource_name,
        **{key: value for key, value in settings_of(configuration).items() if key in recorded},
    }
    assert [extender.url_prefix for extender in configuration.extenders] == [
        extender["URLPrefix"] for extender in extenders
    ]
    for ours, theirs in zip(configuration.extenders, extenders, strict=True):
        assert (
            ours.filter_verb,
            ours.prioritize_verb,
            ours.preempt_verb,
            ours.bind_verb,
            ours.weight,
        ) == tuple(
            theirs[key] for key in ("FilterVerb", "PrioritizeVerb", "PreemptVerb", "BindVerb", "Weight")
        )
        assert f"{ours.timeout:g}s" == theirs["HTTPTimeout"]


def test_every_refused_one_is_refused_for_the_same_reason(
    files: list[dict[str, Any]], directory: Path, registry: Registry
) -> None:
    checked: Counter[str] = Counter()
    for file in files:
        if file["verdict"] == "accepted" or is_beta(file):
            continue
        with pytest.raises(ConfigurationError) as caught:
            load_configuration(directory / file["file"], registry)
        recorded = file.get("validationErrors") or [file.get("decodeError") or file["newSchedulerError"]]
        for reason in recorded:
            if not any(spelling in reason for spelling in SPELLED_OTHERWISE):
                assert same_reason(reason, caught.value.errors), (file["file"], reason, str(caught.value))
        checked[file["verdict"]] += 1
    assert checked == {"decodeError": 19, "validationErrors": 6, "newSchedulerError": 53}


def test_each_missing_plugin_is_named_with_its_profile_and_points(
    files: list[dict[str, Any]], directory: Path, registry: Registry
) -> None:
    for file in files:
        if missing := file.get("dummyPlugins"):
            with pytest.raises(ConfigurationError) as caught:
                load_configuration(directory / file["file"], registry)
            for name in missing:
                (error,) = [
                    each for each in caught.value.errors if f'plugin "{name}" does not' in each.detail
                ]
                assert "wants it at " in error.detail
                assert error.path.startswith("profiles[")


def test_older_versions_are_read_or_refused_for_what_they_say(
    files: list[dict[str, Any]], directory: Path, registry: Registry
) -> None:
    outcomes: Counter[str] = Counter()
    for file in filter(is_beta, files):
        outcomes[outcome(directory / file["file"], registry)] += 1
    assert outcomes == {"read as v1": 14, "refused": 29}


def outcome(path: Path, registry: Registry) -> str:
    try:
        configuration = load_configuration(path, registry)
    except ConfigurationError as error:
        return "refused for its version" if is_about_version(error) else "refused"
    return "read as v1" if any("is read as v1" in each for each in configuration.warnings) else "read"


def is_about_version(error: ConfigurationError) -> bool:
    return "is registered for version" in str(error)


def test_other_kinds_of_files_are_refused(directory: Path, registry: Registry) -> None:
    others = sorted((directory / "configs/foreign").iterdir())
    assert len(others) == 8
    for path in others:
        with pytest.raises(ConfigurationError):
            load_configuration(path, registry)
