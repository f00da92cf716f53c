"""ServiceAffinity: pods of a service on nodes with equal labels, or spread over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest
from kschedfw_legacy.plugins.service_affinity import ServiceAffinity
from legacy_objects import service

from kschedfw import Code, PodInfo, make_node, make_pod
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.testing import FrameworkHarness

REGIONS = {"a": ("r1", "z11"), "b": ("r1", "z12"), "c": ("r2", "z21"), "d": ("r2", "z22"), "e": ("r2", "z22")}
NODES = [make_node(name).labels(region=region, zone=zone).build() for name, (region, zone) in REGIONS.items()]

FOO = make_pod().labels(foo="bar").build()


def sibling(node: str, name: str = "other", namespace: str = "default", **labels: str) -> Pod:
    return make_pod(name).namespace(namespace).labels(labels or {"foo": "bar"}).node(node).build()


def fits(
    pod: Pod, labels: Sequence[str], pods: Iterable[Pod] = (), services: Iterable[Named] = ()
) -> list[str]:
    args = {"ServiceAffinity": {"affinityLabels": list(labels)}}
    harness = FrameworkHarness(ServiceAffinity, nodes=NODES, pods=pods, objects=services, args=args)
    verdicts = harness.filter(pod)
    refused = [status for status in verdicts.values() if not status.is_success]
    assert all(status.code is Code.UNSCHEDULABLE for status in refused)
    assert {status.message for status in refused} <= {"node(s) didn't match service affinity"}
    return [name for name, status in verdicts.items() if status.is_success]


class TestFilter:
    def test_a_pod_without_siblings_fits_everywhere(self) -> None:
        assert fits(make_pod().build(), ["region"]) == list(REGIONS)
        assert fits(FOO, ["region"], services=[service("s", foo="bar")]) == list(REGIONS)

    def test_its_node_selector_says_the_value(self) -> None:
        assert fits(make_pod().node_selector(region="r1").build(), ["region"]) == ["a", "b"]

    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            (["region"], ["c", "d", "e"]),
            (["region", "zone"], ["d", "e"]),
            (["zone"], ["d", "e"]),
            ([], [*"abcde"]),
        ],
    )
    def test_it_follows_its_siblings(self, labels: list[str], expected: list[str]) -> None:
        assert fits(FOO, labels, [sibling("e")], [service("s", foo="bar")]) == expected

    def test_what_its_node_selector_says_goes_before_what_the_sibling_has(self) -> None:
        pod = make_pod().labels(foo="bar").node_selector(region="r1").build()
        assert fits(pod, ["region"], [sibling("e")], [service("s", foo="bar")]) == ["a", "b"]
        assert fits(pod, ["region", "zone"], [sibling("e")], [service("s", foo="bar")]) == []

    def test_of_several_siblings_the_first_ones_node_counts(self) -> None:
        pods = [sibling("e", "one"), sibling("b", "two")]
        assert fits(FOO, ["region"], pods, [service("s", foo="bar")]) == ["a", "b"]

    def test_siblings_matter_in_a_service_alone(self) -> None:
        assert fits(FOO, ["region"], [sibling("e")]) == list(REGIONS)
        assert fits(FOO, ["region"], [sibling("e")], [service("s")]) == list(REGIONS)
        assert fits(FOO, ["region"], [sibling("e")], [service("s", foo="other")]) == list(REGIONS)

    def test_and_in_the_pods_own_namespace(self) -> None:
        elsewhere = service("s", "ns1", foo="bar")
        assert fits(FOO, ["region"], [sibling("e")], [elsewhere]) == list(REGIONS)
        others = [sibling("e", namespace="ns1")]
        assert fits(FOO, ["region"], others, [service("s", foo="bar")]) == list(REGIONS)

    def test_a_label_that_the_siblings_node_has_not_got_is_no_matter(self) -> None:
        assert fits(FOO, ["rack"], [sibling("e")], [service("s", foo="bar")]) == list(REGIONS)

    def test_what_if_a_sibling_went_or_came(self) -> None:
        args = {"ServiceAffinity": {"affinityLabels": ["region"]}}
        harness = FrameworkHarness(
            ServiceAffinity,
            nodes=NODES,
            pods=[sibling("e")],
            objects=[service("s", foo="bar")],
            args=args,
        )
        framework, snapshot = harness.framework, harness.snapshot
        harness.pre_filter(FOO)
        (other,) = snapshot.get("e").pods

        def verdicts() -> list[str]:
            return [
                info.name
                for info in snapshot.node_infos
                if framework.run_filter_plugins(state, FOO, info).is_success
            ]

        state = harness.state.clone()
        assert verdicts() == ["c", "d", "e"]
        assert framework.run_pre_filter_remove_pod(state, FOO, other, snapshot.get("e")).is_success
        assert verdicts() == list(REGIONS)
        assert framework.run_pre_filter_add_pod(state, FOO, PodInfo.of(FOO), snapshot.get("a")).is_success
        assert verdicts() == ["a", "b"]
        stranger = PodInfo.of(make_pod("stranger").labels(foo="else").build())
        assert framework.run_pre_filter_add_pod(state, FOO, stranger, snapshot.get("c")).is_success
        assert verdicts() == ["a", "b"]


ZONES: dict[str, Mapping[str, str]] = {
    "01": {},
    "02": {},
    "11": {"zone": "z1", "rack": "r1"},
    "12": {"zone": "z1", "rack": "r2"},
    "21": {"zone": "z2", "rack": "r1"},
    "22": {"zone": "z2", "rack": "r1"},
}
LABELS = {"foo": "bar", "baz": "blah"}
OTHERS = {"bar": "foo", "baz": "blah"}


def spread(
    *pods: tuple[str, Mapping[str, str]],
    selector: Mapping[str, str] | None,
    labels: Sequence[str] = ("zone",),
    namespaces: Sequence[str] = (),
) -> dict[str, int]:
    nodes: list[Node] = [make_node(name).labels(own).build() for name, own in ZONES.items()]
    placed = [
        make_pod(f"p{index}")
        .namespace(namespaces[index] if namespaces else "default")
        .labels(own)
        .node(node)
        .build()
        for index, (node, own) in enumerate(pods)
    ]
    harness = FrameworkHarness(
        ServiceAffinity,
        nodes=nodes,
        pods=placed,
        objects=[] if selector is None else [service("s", **selector)],
        args={"ServiceAffinity": {"antiAffinityLabelsPreference": list(labels)}},
    )
    return harness.score(make_pod().labels(LABELS).build())


def scores(unlabelled: int, *others: int) -> dict[str, int]:
    return dict(zip(ZONES, (unlabelled, unlabelled, *others), strict=True))


class TestScore:
    """Nodes without the label get nothing; in every case there are two of them."""

    @pytest.mark.parametrize("selector", [None, {"key": "value"}])
    def test_without_a_service_all_values_are_equal(self, selector: Mapping[str, str] | None) -> None:
        assert spread(("11", OTHERS), selector=selector) == scores(0, 100, 100, 100, 100)

    def test_the_share_of_the_services_pods_elsewhere_counts(self) -> None:
        assert spread(("01", OTHERS), ("11", OTHERS), ("21", LABELS), selector=LABELS) == scores(
            0, 100, 100, 0, 0
        )
        assert spread(("11", LABELS), ("21", LABELS), selector=LABELS) == scores(0, 50, 50, 50, 50)
        assert spread(("11", LABELS), ("21", LABELS), ("21", LABELS), selector=LABELS) == scores(
            0, 66, 66, 33, 33
        )

    def test_other_namespaces_do_not_count(self) -> None:
        pods = [("11", LABELS), ("11", LABELS), ("21", LABELS)]
        assert spread(*pods, selector=LABELS, namespaces=["default", "ns1", "ns1"]) == scores(
            0, 0, 0, 100, 100
        )

    def test_a_service_may_select_by_some_of_the_labels(self) -> None:
        pods = [("11", OTHERS), ("11", LABELS), ("21", LABELS)]
        assert spread(*pods, selector={"baz": "blah"}) == scores(0, 33, 33, 66, 66)

    def test_pods_on_nodes_without_the_label_count_among_all(self) -> None:
        pods = [("01", LABELS), ("11", LABELS), ("21", LABELS), ("21", LABELS)]
        assert spread(*pods, selector=LABELS) == scores(0, 75, 75, 50, 50)

    def test_several_labels_share_the_score(self) -> None:
        pods = [("11", LABELS), ("21", LABELS)]
        assert spread(*pods, selector=LABELS, labels=["zone", "rack"]) == scores(0, 25, 75, 25, 25)

    def test_without_labels_all_nodes_get_0(self) -> None:
        assert spread(("11", LABELS), selector=LABELS, labels=()) == scores(0, 0, 0, 0, 0)
