"""The builders make what the same manifest in a file would make."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from kschedfw import make_claim, make_node, make_pod, make_pod_group
from kschedfw.api import NodeBuilder, PodBuilder
from kschedfw.api.affinity import TolerationOperator, UnsatisfiableAction
from kschedfw.api.containers import Protocol
from kschedfw.api.manifests import ManifestError, node_from_manifest, pod_from_manifest
from kschedfw.api.node import TaintEffect

POD_BUILDERS = [
    make_pod("p"),
    make_pod("p").namespace("shop").labels({"a/b": "c"}, app="web").annotations({"d": "e"}).uid("u"),
    make_pod("p")
    .requests(cpu="500m")
    .limits({"nvidia.com/gpu": 1})
    .image("web:1")
    .host_port(80, host_ip="10.0.0.1"),
    make_pod("p").container("a").requests(cpu=1).container("b", image="db:2").requests(memory="1Gi"),
    make_pod("p")
    .init_container("i", requests={"cpu": 2})
    .init_container("s", sidecar=True)
    .overhead(cpu="10m"),
    make_pod("p").node("n").priority(7).scheduler_name("gpu"),
    make_pod("p").nominated_node("n").scheduling_gate("g1", "g2"),
    make_pod("p").node_selector(disk="ssd").node_affinity_in("zone", "a", "b").node_affinity_in("zone", "c"),
    make_pod("p")
    .prefer_node(5, "zone", "a")
    .pod_affinity("zone", {"a": "b"})
    .pod_affinity("zone", {"a": "c"}, weight=3),
    make_pod("p").pod_anti_affinity("zone", {"a": "b"}).pod_anti_affinity("zone", {"a": "c"}, weight=3),
    make_pod("p").spread("zone", {"a": "b"}, max_skew=2, min_domains=3).spread("host", {}, hard=False),
    make_pod("p").toleration("a").toleration("b", value="c", effect="NoExecute").toleration(),
]


@pytest.mark.parametrize("builder", POD_BUILDERS)
def test_a_pod_is_what_its_manifest_loads_as(builder: PodBuilder) -> None:
    pod = builder.build()
    assert pod == pod_from_manifest(builder.manifest())
    assert pod == builder.build()
    assert pod.name == "p"


class TestPod:
    def test_it_has_one_container_unless_it_is_given_others(self) -> None:
        assert [container.name for container in make_pod().build().spec.containers] == ["main"]
        assert [container.name for container in make_pod().requests(cpu=1).build().spec.containers] == [
            "main"
        ]
        pod = make_pod().container("a").container("b").build()
        assert [container.name for container in pod.spec.containers] == ["a", "b"]

    def test_api_defaults_are_filled_in(self) -> None:
        pod = make_pod().host_port(80).limits(cpu="2").build()
        assert pod.namespace == "default"
        assert pod.uid
        assert pod.spec.containers[0].ports[0].protocol is Protocol.TCP
        assert pod.requests.amounts.milli_cpu == 2000

    def test_container_details_go_to_the_last_container(self) -> None:
        pod = (
            make_pod()
            .container("a")
            .container("b")
            .requests(cpu=1)
            .image("x:1")
            .host_port(80, protocol="UDP")
            .build()
        )
        first, second = pod.spec.containers
        assert (first.image, first.ports) == ("registry.example/app:1", ())
        assert second.image == "x:1"
        assert second.ports[0].host_port == 80
        assert second.ports[0].protocol is Protocol.UDP

    def test_several_node_affinity_terms_are_alternatives(self) -> None:
        required = (
            make_pod()
            .node_affinity_in("zone", "a", "b")
            .node_affinity_in("disk", "ssd")
            .build()
            .spec.affinity
        )
        assert required.node_affinity is not None
        selector = required.node_affinity.required
        assert selector is not None
        assert selector.matches({"zone": "b"}, "n")
        assert selector.matches({"disk": "ssd"}, "n")
        assert not selector.matches({"zone": "c"}, "n")

    def test_a_preferred_term_has_its_weight(self) -> None:
        affinity = make_pod().prefer_node(5, "zone", "a").build().spec.affinity.node_affinity
        assert affinity is not None
        assert [term.weight for term in affinity.preferred] == [5]

    def test_pod_affinity_is_required_without_a_weight_and_preferred_with_one(self) -> None:
        affinity = (
            make_pod()
            .pod_affinity("z", {"a": "b"})
            .pod_anti_affinity("z", {"a": "b"}, weight=9)
            .build()
            .spec.affinity
        )
        assert affinity.pod_affinity is not None
        assert affinity.pod_anti_affinity is not None
        assert len(affinity.pod_affinity.required) == 1
        assert [term.weight for term in affinity.pod_anti_affinity.preferred] == [9]

    def test_spread_is_hard_unless_it_is_said_otherwise(self) -> None:
        hard, soft = (
            make_pod()
            .spread("zone", {}, min_domains=2)
            .spread("host", {}, hard=False)
            .build()
            .spec.topology_spread_constraints
        )
        assert (hard.when_unsatisfiable, hard.min_domains) == (UnsatisfiableAction.DO_NOT_SCHEDULE, 2)
        assert (soft.when_unsatisfiable, soft.min_domains) == (UnsatisfiableAction.SCHEDULE_ANYWAY, None)

    @pytest.mark.parametrize(
        ("builder", "operator"),
        [
            (make_pod().toleration("a"), TolerationOperator.EXISTS),
            (make_pod().toleration("a", value="b"), TolerationOperator.EQUAL),
            (make_pod().toleration("a", value="1", operator="Equal"), TolerationOperator.EQUAL),
        ],
    )
    def test_a_toleration_without_a_value_tolerates_any(
        self, builder: PodBuilder, operator: TolerationOperator
    ) -> None:
        assert [toleration.operator for toleration in builder.build().spec.tolerations] == [operator]

    def test_what_makes_no_valid_pod_is_refused(self) -> None:
        with pytest.raises(ManifestError, match="cpu"):
            make_pod("web").requests(cpu="lots").build()


NODE_BUILDERS = [
    make_node("n"),
    make_node("n").labels(rack="r1").annotations({"a": "b"}).uid("u").zone("z").unschedulable(),
    make_node("n").capacity({"nvidia.com/gpu": 8}, cpu=4, memory="8Gi").image("a:1", "a@sha256:1", size=7),
    make_node("n").taint("a").taint("b", value="c", effect="NoExecute"),
]


@pytest.mark.parametrize("builder", NODE_BUILDERS)
def test_a_node_is_what_its_manifest_loads_as(builder: NodeBuilder) -> None:
    assert builder.build() == node_from_manifest(builder.manifest())
    assert builder.build().name == "n"


class TestNode:
    def test_it_has_its_hostname_label_and_room_for_110_pods(self) -> None:
        node = make_node("n").build()
        assert node.labels == {"kubernetes.io/hostname": "n"}
        assert {name: amount.value() for name, amount in node.status.allocatable.items()} == {"pods": 110}

    def test_capacity_is_allocatable_too_and_may_be_given_bit_by_bit(self) -> None:
        node = make_node().capacity(cpu=4).capacity({"nvidia.com/gpu": 8}, pods=7).build()
        expected = {"pods": 7, "cpu": 4, "nvidia.com/gpu": 8}
        assert {name: amount.value() for name, amount in node.status.allocatable.items()} == expected
        assert {name: amount.value() for name, amount in node.status.capacity.items()} == expected

    def test_zone_taints_and_images(self) -> None:
        node = (
            make_node()
            .zone("z")
            .taint("a")
            .taint("b", value="c", effect="NoExecute")
            .image("x:1", size=7)
            .build()
        )
        assert node.labels["topology.kubernetes.io/zone"] == "z"
        assert [(taint.key, taint.value, taint.effect) for taint in node.spec.taints] == [
            ("a", "", TaintEffect.NO_SCHEDULE),
            ("b", "c", TaintEffect.NO_EXECUTE),
        ]
        assert [(image.names, image.size_bytes) for image in node.status.images] == [(("x:1",), 7)]

    def test_what_makes_no_valid_node_is_refused(self) -> None:
        with pytest.raises(ManifestError, match="cpu"):
            make_node("n").capacity(cpu="lots").build()


@pytest.mark.parametrize(
    "when", ["2026-01-31T12:00:00Z", datetime(2026, 1, 31, 13, tzinfo=timezone(timedelta(hours=1)))]
)
def test_every_object_can_say_when_it_was_created(when: datetime | str) -> None:
    builders = (make_pod(), make_node(), make_pod_group(), make_claim().requests("1Gi"))
    for builder in builders:
        made = builder.creation_timestamp(when).build()
        assert made.metadata.creation_timestamp == datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ManifestError, match="creationTimestamp"):
        make_pod().creation_timestamp(datetime(2026, 1, 31)).build()  # noqa: DTZ001  # what is refused


def test_a_manifest_that_was_handed_out_can_be_changed_freely() -> None:
    builder = make_pod("p").labels(app="web")
    builder.manifest()["metadata"] = {}
    assert builder.build().labels == {"app": "web"}


def test_what_can_not_be_overcommitted_becomes_a_limit_too() -> None:
    resources = make_pod().requests({"nvidia.com/gpu": 2}, cpu=1).build().spec.containers[0].resources
    assert resources.requests.keys() == {"nvidia.com/gpu", "cpu"}
    assert resources.limits.keys() == {"nvidia.com/gpu"}


def test_without_a_check_what_the_api_refuses_can_be_made() -> None:
    with pytest.raises(ManifestError):
        make_node("Not_A_Name").build()
    assert make_node("Not_A_Name").build(check=False).name == "Not_A_Name"
    assert make_pod().prefer_node(0, "a", "b").build(check=False).spec.affinity.node_affinity is not None
