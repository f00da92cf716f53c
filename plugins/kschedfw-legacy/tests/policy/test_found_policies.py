"""Policies from kube-scheduler's own tests and from elsewhere become the plugins that v1.20 made of them.

They aren't part of the project; where they are missing, these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kschedfw_legacy import load_policy, only_available, policy_profile

from kschedfw import Framework, InMemoryCluster, Parts, Registry
from kschedfw.config import ConfigurationError

SharedData = Callable[[str], Path]

REFUSED = {
    "k120-policytest-kubescheduler.config.k8s.io-vunknown.yaml": ["no kind"],
    "k120-sched-0.json": ["PredicateOne", "PredicateTwo", "PriorityOne", "PriorityTwo"],
    "k120-sched-1.yaml": ["PredicateOne", "PredicateTwo", "PriorityOne", "PriorityTwo"],
    "tke-floatingip-builtin-extenders.json": ["builtin_extenders", "PodFitsLocalDisk"],
}
"""What is refused, and a word of each line of the error."""


@pytest.fixture(scope="module")
def found(shared_data: SharedData) -> dict[Path, Mapping[str, Any]]:
    """Every Policy with what is expected of it."""
    index = shared_data("configs/index.json")
    entries = json.loads(index.read_text())
    return {
        index.parent.parent / entry["file"]: entry.get("expected", {})
        for entry in entries
        if entry["file"].startswith("configs/policy/")
    }


def test_they_stand_for_the_plugins_that_kube_scheduler_ran(found: Mapping[Path, Mapping[str, Any]]) -> None:
    compared = 0
    for path, expected in found.items():
        if "wantPlugins" not in expected:
            continue
        made = policy_profile(load_policy(path))
        wanted = {
            point[0].lower() + point[1:].removesuffix("Plugin"): [
                (plugin["name"], plugin.get("weight", 0)) for plugin in plugins
            ]
            for point, plugins in expected["wantPlugins"].items()
        }
        listed = {
            str(point): [(plugin.name, plugin.weight) for plugin in plugins]
            for point, plugins in made.points.items()
        }
        assert listed == wanted, path.name
        compared += 1
    assert compared == 21


def test_the_others_are_accepted_or_refused_as_by_kube_scheduler(
    found: Mapping[Path, Mapping[str, Any]],
) -> None:
    assert len(found) == 36
    refused = {}
    for path in found:
        try:
            load_policy(path)
        except ConfigurationError as error:
            refused[path.name] = str(error).splitlines()
    assert refused.keys() == REFUSED.keys()
    for name, words in REFUSED.items():
        assert len(refused[name]) == len(words)
        assert all(word in line for word, line in zip(words, refused[name], strict=True))


def test_all_that_are_accepted_run_as_far_as_their_plugins_are_there(
    found: Mapping[Path, Mapping[str, Any]],
) -> None:
    registry = Registry()
    for path in found:
        if path.name not in REFUSED:
            made = only_available(policy_profile(load_policy(path)), registry)
            framework = Framework(registry, made, Parts(InMemoryCluster()))
            assert {point: framework.plugins_at(point) for point in made.points} == {
                point: tuple(plugin.name for plugin in plugins) for point, plugins in made.points.items()
            }
