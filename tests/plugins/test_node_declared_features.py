"""NodeDeclaredFeatures: nodes whose kubelet has the features that a pod needs."""

from __future__ import annotations

from typing import Any

import pytest

from kschedfw import make_node
from kschedfw.api.manifests import pod_from_manifest
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.status import Code
from kschedfw.plugins.node_declared_features import NodeDeclaredFeatures, required_features
from kschedfw.testing import FrameworkHarness, decide

RESTART_ALL = "RestartAllContainersOnContainerExits"
OWN_USERS = "UserNamespacesHostNetworkSupport"


def rule(action: str) -> dict[str, Any]:
    return {"action": action, "exitCodes": {"operator": "In", "values": [42]}}


def container(*actions: str, name: str = "main") -> dict[str, Any]:
    return {"name": name, "restartPolicy": "Never", "restartPolicyRules": [*map(rule, actions)]}


def pod(*containers: dict[str, Any], name: str = "pod", **spec: Any) -> Pod:
    written = {"containers": list(containers) or [container()], **spec}
    return pod_from_manifest({"metadata": {"name": name}, "spec": written})


def node(*features: str) -> Node:
    return make_node().declared_features(*features).build()


NEEDS_NOTHING = pod()
NEEDS_RESTART = pod(container("Restart", "RestartAllContainers"))
NEEDS_BOTH = pod(container("RestartAllContainers"), hostNetwork=True, hostUsers=False)


@pytest.mark.parametrize(
    ("pod", "required"),
    [
        (NEEDS_NOTHING, set()),
        (pod(container("Restart")), set()),
        (NEEDS_RESTART, {RESTART_ALL}),
        (pod(container(), container("RestartAllContainers", name="second")), {RESTART_ALL}),
        (pod(initContainers=[container("RestartAllContainers", name="init")]), {RESTART_ALL}),
        (pod(hostNetwork=True), set()),
        (pod(hostUsers=False), set()),
        (pod(hostNetwork=True, hostUsers=True), set()),
        (pod(hostNetwork=True, hostUsers=False), {OWN_USERS}),
        (NEEDS_BOTH, {RESTART_ALL, OWN_USERS}),
    ],
)
def test_what_a_pod_needs_follows_from_its_spec(pod: Pod, required: set[str]) -> None:
    assert required_features(pod) == required


def test_a_pod_that_needs_nothing_skips_it() -> None:
    harness = FrameworkHarness(NodeDeclaredFeatures, nodes=[node()])
    state = CycleState()
    harness.framework.run_pre_filter_plugins(state, NEEDS_NOTHING)
    assert state.skip_filter_plugins == {"NodeDeclaredFeatures"}
    assert harness.filter(NEEDS_NOTHING)["node"].is_success


@pytest.mark.parametrize(
    ("features", "fits"),
    [
        ((), False),
        ((RESTART_ALL,), False),
        ((OWN_USERS, "SomethingNewer"), False),
        ((RESTART_ALL, OWN_USERS), True),
        (("ExtendWebSocketsToKubelet", RESTART_ALL, "SomethingNewer", OWN_USERS), True),
    ],
)
def test_a_node_must_declare_all_of_it(features: tuple[str, ...], fits: bool) -> None:
    status = FrameworkHarness(NodeDeclaredFeatures, nodes=[node(*features)]).filter(NEEDS_BOTH)["node"]
    assert status.is_success is fits
    if not fits:
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        assert status.reasons == ("node(s) didn't match Pod's required features",)


def test_the_explanation_names_what_is_missing() -> None:
    explanation = decide(NEEDS_BOTH, nodes=[node(RESTART_ALL)])
    evidence = explanation.of("node").evidence["NodeDeclaredFeatures"]
    assert [str(each) for each in evidence] == [f"feature {OWN_USERS}; not declared"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, node(), QueueingHint.QUEUE),
        (node(), node("Any"), QueueingHint.QUEUE),
        (node(RESTART_ALL), node(), QueueingHint.QUEUE),
        (node("Any"), make_node().declared_features("Any").labels(a="b").build(), QueueingHint.SKIP),
        (node("Any"), None, QueueingHint.SKIP),
    ],
)
def test_a_new_node_may_help_and_one_that_declares_something_else(
    old: Node | None, new: Node | None, expected: QueueingHint
) -> None:
    assert FrameworkHarness(NodeDeclaredFeatures).hint(NEEDS_RESTART, old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (NEEDS_RESTART, NEEDS_NOTHING, QueueingHint.QUEUE),
        (NEEDS_NOTHING, NEEDS_RESTART, QueueingHint.QUEUE),
        (NEEDS_RESTART, pod(container("RestartAllContainers"), priority=3), QueueingHint.SKIP),
        (pod(container("RestartAllContainers"), name="other"), pod(name="other"), QueueingHint.SKIP),
    ],
)
def test_a_change_of_the_pod_helps_where_it_needs_other_features(
    old: Pod, new: Pod, expected: QueueingHint
) -> None:
    assert FrameworkHarness(NodeDeclaredFeatures).hint(NEEDS_RESTART, old, new) is expected
