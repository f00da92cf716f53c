"""SelectorSpread: pods of a service or controller apart from each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_legacy.plugins.selector_spread import DefaultPodTopologySpread, SelectorSpread
from legacy_objects import pod_of, service

from kschedfw import make_node, make_pod
from kschedfw.api.meta import Named
from kschedfw.api.objects import object_from_manifest, pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.testing import FrameworkHarness

LABELS = {"foo": "bar", "baz": "blah"}
OTHERS = {"bar": "foo", "baz": "blah"}
POD = make_pod().labels(LABELS).build()


def scores(
    pod: Pod,
    *pods: tuple[str, Mapping[str, str]],
    objects: Iterable[Named] = (),
    zones: Mapping[str, str] | None = None,
    plugin: type[SelectorSpread] = SelectorSpread,
) -> dict[str, int]:
    """With nodes n1 and n2, or those of `zones`; pods are given by node and labels."""
    nodes = [
        make_node(name).labels({"topology.kubernetes.io/zone": zone} if zone else {}).build()
        for name, zone in (zones or {"n1": "", "n2": ""}).items()
    ]
    placed = [make_pod(f"p{i}").labels(own).node(node).build() for i, (node, own) in enumerate(pods)]
    return FrameworkHarness(plugin, nodes=nodes, pods=placed, objects=objects).score(pod)


def controller(kind: str, name: str, **labels: str) -> Named:
    selector: object = labels if kind == "ReplicationController" else {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    spec = {"selector": selector, "template": template, "serviceName": "s"}
    return object_from_manifest({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, kind)


@pytest.mark.parametrize("objects", [[], [service("s", key="value")]])
def test_without_a_service_of_its_own_all_nodes_are_equal(objects: list[Named]) -> None:
    assert scores(POD, ("n1", LABELS), objects=objects) == {"n1": 100, "n2": 100}


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([("n1", OTHERS), ("n2", LABELS)], (100, 0)),
        ([("n1", OTHERS), ("n1", LABELS), ("n2", LABELS)], (0, 0)),
        ([("n1", OTHERS), ("n1", LABELS), ("n2", LABELS), ("n2", LABELS)], (50, 0)),
    ],
)
def test_the_fewer_pods_of_the_service_the_better(
    pods: list[tuple[str, Mapping[str, str]]], expected: tuple[int, int]
) -> None:
    found = scores(POD, *pods, objects=[service("s", **LABELS)])
    assert tuple(found.values()) == expected


def test_a_service_may_select_by_some_of_the_labels() -> None:
    pods = [("n1", OTHERS), ("n1", LABELS), ("n2", LABELS)]
    assert scores(POD, *pods, objects=[service("s", baz="blah")]) == {"n1": 0, "n2": 50}


@pytest.mark.parametrize(
    ("kind", "version"),
    [("ReplicationController", "v1"), ("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1")],
)
def test_service_and_controller_must_both_select_what_counts(kind: str, version: str) -> None:
    pods = [("n1", OTHERS), ("n1", LABELS), ("n2", LABELS)]
    pod = pod_of(kind, "c", LABELS, api_version=version)
    objects = [service("s", baz="blah"), controller(kind, "c", foo="bar")]
    assert scores(pod, *pods, objects=objects) == {"n1": 0, "n2": 0}
    # the controller alone
    assert scores(pod, *pods, objects=[controller(kind, "c", baz="blah")]) == {"n1": 0, "n2": 50}
    # together they select nothing that is there
    pod = pod_of(kind, "c", {"foo": "bar", "bar": "foo"}, api_version=version)
    objects = [service("s", bar="foo"), controller(kind, "c", foo="bar")]
    assert scores(pod, *pods, objects=objects) == {"n1": 100, "n2": 100}


def test_pods_of_other_namespaces_and_those_being_deleted_do_not_count() -> None:
    elsewhere = make_pod("e").namespace("ns1").labels(LABELS).node("n1").build()
    leaving = pod_from_manifest(
        {
            "metadata": {"name": "l", "labels": LABELS, "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "app:1"}]},
        }
    )
    nodes = [make_node("n1").build(), make_node("n2").build()]
    harness = FrameworkHarness(
        SelectorSpread, nodes=nodes, pods=[elsewhere, leaving], objects=[service("s", **LABELS)]
    )
    assert harness.score(POD) == {"n1": 100, "n2": 100}


class TestZones:
    ZONES = {"n1": "z1", "n2": "z2", "n3": "z2", "n4": "z3", "n5": "z3", "n6": "z3"}  # noqa: RUF012  # never changed

    @pytest.mark.parametrize(
        ("nodes", "expected"),
        [
            ("", (100, 100, 100, 100, 100, 100)),
            # the node counts a third, its zone two thirds
            ("2", (100, 0, 33, 100, 100, 100)),
            ("11112", (0, 75, 83, 100, 100, 100)),
            ("123", (33, 0, 0, 100, 100, 100)),
            ("124", (0, 0, 33, 0, 33, 33)),
        ],
    )
    def test_zones_with_fewer_pods_are_better(self, nodes: str, expected: tuple[int, ...]) -> None:
        pods = [(f"n{number}", LABELS) for number in nodes]
        found = scores(POD, *pods, objects=[service("s", **LABELS)], zones=self.ZONES)
        assert tuple(found.values()) == expected

    def test_nodes_without_a_zone_have_their_own_count_alone(self) -> None:
        zones = {"n1": "", "n2": "z1"}
        pods = [("n1", LABELS), ("n1", LABELS), ("n2", LABELS)]
        # n2: half of n1's pods gives 50 for the node, and its zone is the fullest
        assert scores(POD, *pods, objects=[service("s", **LABELS)], zones=zones) == {"n1": 0, "n2": 16}

    def test_the_old_label_goes_before_the_new_one(self) -> None:
        old, new = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"
        nodes = [
            make_node("n1").labels({old: "a"}).build(),
            make_node("n2").labels({old: "a", new: "b"}).build(),
            make_node("n3").labels({new: "b"}).build(),
        ]
        placed = [make_pod("p").labels(LABELS).node("n1").build()]
        harness = FrameworkHarness(SelectorSpread, nodes=nodes, pods=placed, objects=[service("s", **LABELS)])
        assert harness.score(POD) == {"n1": 0, "n2": 33, "n3": 100}


def test_a_pod_with_spread_constraints_of_its_own_is_left_alone() -> None:
    pod = make_pod().labels(LABELS).spread("zone", LABELS).build()
    harness = FrameworkHarness(
        SelectorSpread,
        nodes=[make_node("n1").build()],
        pods=[make_pod("p").labels(LABELS).node("n1").build()],
        objects=[service("s", **LABELS)],
    )
    assert harness.score(pod) == {"n1": 0}
    assert harness.state.skip_score_plugins == {"SelectorSpread"}


def test_its_older_name_does_the_same() -> None:
    pods = [("n1", LABELS)]
    objects = [service("s", **LABELS)]
    assert scores(POD, *pods, objects=objects, plugin=DefaultPodTopologySpread) == scores(
        POD, *pods, objects=objects
    )


def test_the_selector_is_the_signature() -> None:
    plugin = FrameworkHarness(SelectorSpread, objects=[service("s", foo="bar")]).framework.plugins[
        "SelectorSpread"
    ]
    assert plugin.sign(POD) == plugin.sign(make_pod("other").labels(foo="bar", more="labels").build())
    assert plugin.sign(POD) != plugin.sign(make_pod().labels(foo="else").build())


@given(st.lists(st.integers(1, 6), max_size=12))
def test_scores_are_within_bounds(nodes: list[int]) -> None:
    pods = [(f"n{number}", LABELS) for number in nodes]
    found = scores(POD, *pods, objects=[service("s", **LABELS)], zones=TestZones.ZONES)
    assert all(0 <= score <= 100 for score in found.values())
