"""NodePreferAvoidPods: nodes that ask not to be given the pods of some controller."""

from __future__ import annotations

import json

import pytest
from kschedfw_legacy.plugins.node_prefer_avoid_pods import ANNOTATION, NodePreferAvoidPods
from legacy_objects import pod_of

from kschedfw import make_node, make_pod
from kschedfw.api.pod import Pod
from kschedfw.testing import FrameworkHarness


def avoiding(kind: str, uid: str) -> str:
    return json.dumps({"preferAvoidPods": [{"podSignature": {"podController": {"kind": kind, "uid": uid}}}]})


NODES = [
    make_node("rc").annotations({ANNOTATION: avoiding("ReplicationController", "abc")}).build(),
    make_node("rs").annotations({ANNOTATION: avoiding("ReplicaSet", "def")}).build(),
    make_node("plain").build(),
]


def avoided(pod: Pod) -> set[str]:
    scores = FrameworkHarness(NodePreferAvoidPods, nodes=NODES).score(pod)
    assert set(scores.values()) <= {0, 100}
    return {name for name, score in scores.items() if score == 0}


@pytest.mark.parametrize(
    ("pod", "nodes"),
    [
        (pod_of("ReplicationController", "foo", api_version="v1", uid="abc"), {"rc"}),
        (pod_of("ReplicaSet", "foo", uid="def"), {"rs"}),
        (pod_of("ReplicationController", "foo", api_version="v1", uid="other"), set()),
        (pod_of("ReplicaSet", "foo", uid="abc"), set()),
        (pod_of("StatefulSet", "foo", uid="abc"), set()),
        (make_pod().build(), set()),
    ],
)
def test_a_node_avoids_the_controller_of_this_kind_and_uid(pod: Pod, nodes: set[str]) -> None:
    assert avoided(pod) == nodes


@pytest.mark.parametrize(
    "annotation", ["", "{", "[]", "null", '{"preferAvoidPods": 1}', '{"preferAvoidPods": [1]}']
)
def test_an_annotation_that_can_not_be_read_avoids_nobody(annotation: str) -> None:
    nodes = [make_node("n").annotations({ANNOTATION: annotation}).build()]
    pod = pod_of("ReplicaSet", "foo", uid="def")
    assert FrameworkHarness(NodePreferAvoidPods, nodes=nodes).score(pod) == {"n": 100}


def test_an_entry_without_a_signature_leaves_the_others_alone() -> None:
    entries = [{}, *json.loads(avoiding("ReplicaSet", "def"))["preferAvoidPods"]]
    nodes = [make_node("n").annotations({ANNOTATION: json.dumps({"preferAvoidPods": entries})}).build()]
    pod = pod_of("ReplicaSet", "foo", uid="def")
    assert FrameworkHarness(NodePreferAvoidPods, nodes=nodes).score(pod) == {"n": 0}
