"""How often plugins were asked, and what kept their answers from being used again."""

from __future__ import annotations

import time
from zlib import crc32

import attrs
import pytest
from bench.plugins import Choosy, Fickle, Open, Silent
from kschedfw_lab.bench.measure import measure
from kschedfw_lab.bench.memo import PluginUse, together
from kschedfw_lab.bench.results import Part
from kschedfw_lab.bench.stage import Case

from kschedfw import Evaluation, NodeInfo, Plugin, Pod, Profile, Registry, hookimpl
from kschedfw.framework.plugin import AnyPlugin

NODES = 20
PODS = 5


def used(
    *plugins: type[AnyPlugin], part: Part = Part.ALGORITHM, evaluation: Evaluation = Evaluation.MEMO
) -> dict[str, PluginUse]:
    """By name, how often the plugins were asked. Without one that scores, one feasible node is enough."""
    registry = Registry()
    for plugin in plugins:
        registry.register(plugin)
    profile = Profile(["PrioritySort", "DefaultBinder", *(plugin.name for plugin in plugins)])
    case = Case("basic", NODES, 10, PODS, part, profile=profile, evaluation=evaluation)
    return {use.plugin: use for use in measure(case, time.perf_counter, registry=registry).plugins}


def test_a_plugin_that_promises_nothing_is_asked_about_every_node_for_every_pod() -> None:
    silent = used(Silent, Open)["Silent"]
    assert silent.to_json() == {
        "plugin": "Silent",
        "points": ["filter"],
        "reads": None,
        "batch": False,
        "rowsAskedPerAttempt": NODES,
        "spared": 0.0,
        "whyNot": "it isn't pure",
        "repeated": 1.0,
        "suggestion": "100% of its answers about a node were those for the pod before: if they depend on the arguments "
        "alone, `pure = True` saves these calls",
    }


def test_it_is_said_of_a_pure_plugin_why_it_is_not_learned() -> None:
    class Learned(Plugin):
        name = "Learned"
        pure = True

        @hookimpl
        def filter(self, node_info: NodeInfo) -> None:
            node_info.node.labels.get("rack")

    class Curious(Plugin):
        name = "Curious"
        pure = True

        @hookimpl
        def filter(self, node_info: NodeInfo) -> None:
            for number in range(65):
                node_info.node.labels.get(f"label-{number}")

    class Scattered(Plugin):
        name = "Scattered"
        pure = True

        @hookimpl
        def score(self, pod: Pod, node_info: NodeInfo) -> int:
            return crc32(f"{pod.name} {node_info.name}".encode()) % 101

    plugins = used(Learned, Curious, Scattered)
    assert (plugins["Learned"].why_not, plugins["Learned"].batch) == ("", True)
    assert not plugins["Learned"].suggestion
    expected = "what filter reads can't be learned: it reads more than 64 different things"
    assert plugins["Curious"].why_not == expected
    expected = "the answers of score seldom repeat, so that learning paused"
    assert plugins["Scattered"].why_not == expected


def test_keeping_answers_is_suggested_to_plugins_that_repeat_themselves_alone() -> None:
    plugins = used(Silent, Fickle, Open)
    assert plugins["Silent"].suggestion
    repeated = plugins["Fickle"].repeated
    assert repeated is not None
    assert repeated < 0.9
    assert not plugins["Fickle"].suggestion
    assert plugins["Open"].repeated is None
    assert not plugins["Open"].suggestion


@pytest.mark.slow
def test_they_are_listened_to_in_a_run_of_its_own() -> None:
    for part in Part:
        silent = used(Silent, Open, part=part)["Silent"]
        assert (silent.rows_asked, silent.repeated) == (PODS * NODES, 1.0)
    assert used(Silent, Open, evaluation=Evaluation.SCALAR)["Silent"].repeated is None


def test_one_that_promises_all_is_hardly_asked() -> None:
    for part in Part:
        open_ = used(Open, part=part)["Open"]
        # the pods before have warmed it up
        assert (open_.rows_asked, open_.spared, open_.why_not, open_.batch) == (0, 1.0, "", True)


def test_without_the_memo_it_is_asked_like_any_other() -> None:
    assert used(Open, evaluation=Evaluation.SCALAR)["Open"].rows_per_attempt == NODES


def test_pods_without_signature_are_told() -> None:
    choosy = used(Choosy, Open)["Choosy"]
    assert choosy.rows_per_attempt == NODES
    assert choosy.why_not == "no signature for 1 of 2 kinds of pods"


def test_only_plugins_that_filter_or_score_in_the_profile_s_order() -> None:
    assert list(used(Open, Silent, Choosy)) == ["Open", "Silent", "Choosy"]


def test_measurements_are_added_up_by_plugin() -> None:
    first, other = used(Open, Silent), used(Open, Silent)
    silent = attrs.evolve(other["Silent"], attempts=15, rows_asked=0, rows_in_question=15 * NODES)
    open_, summed = together([*first.values(), other["Open"], silent])
    assert open_.plugin == "Open"
    assert (summed.attempts, summed.rows_per_attempt, summed.spared) == (20, 5.0, 0.75)
    assert summed.why_not == "it isn't pure"
