"""Behind every refusal are the numbers and the objects that made it; kube-scheduler's text stays what it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings

from kschedfw import make_node, make_pod
from kschedfw.api.manifests import object_from_manifest, pod_from_manifest
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.explain import Evidence, Explanation, explain_pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.status import Status
from kschedfw.plugins.volume_binding import VolumeBinding
from kschedfw.testing import decide
from kschedfw.testing.decisions import as_text
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters
from tests.explain.test_faithful import in_memory, simulated

pytestmark = pytest.mark.slow

ZONE = "topology.kubernetes.io/zone"


def node(name: str, zone: str = "a", **capacity: str | int) -> Node:
    return make_node(name).labels({ZONE: zone}).capacity(**{"cpu": 4, "memory": "8Gi", **capacity}).build()


def texts(explanation: Explanation, node_name: str, plugin: str) -> list[str]:
    return [str(each) for each in explanation.of(node_name).evidence.get(plugin, ())]


def decided(pod: Pod, nodes: Iterable[Node], *bound: Pod) -> Explanation:
    return decide(pod, nodes=nodes, pods=bound)


class TestResources:
    def test_requested_free_allocatable_and_what_is_short(self) -> None:
        taken = make_pod("taken").requests(cpu="2080m").node("n").build()
        explanation = decided(make_pod("web").requests(cpu=2).build(), [node("n")], taken)
        (cpu,) = explanation.of("n").evidence["NodeResourcesFit"]
        assert str(cpu) == "cpu: 2 requested; 1920m free of 4 allocatable, 80m short"
        assert cpu.values == {
            "resource": "cpu",
            "requested": 2000,
            "free": 1920,
            "allocatable": 4000,
            "short": 80,
        }
        assert cpu.gap == pytest.approx(0.04)
        assert explanation.message.startswith("0/1 nodes are available: 1 Insufficient cpu. ")

    def test_every_resource_that_is_short_has_its_own(self) -> None:
        pod = make_pod("web").requests({"cpu": "5", "memory": "8704Mi", "example.com/gpu": "1"}).build()
        assert texts(decided(pod, [node("n")]), "n", "NodeResourcesFit") == [
            "cpu: 5 requested; 4 free of 4 allocatable, 1 short",
            "memory: 8.5Gi requested; 8Gi free of 8Gi allocatable, 512Mi short",
            "example.com/gpu: 1 requested; 0 free of 0 allocatable, 1 short",
        ]

    def test_the_closest_nodes_come_first_and_those_that_refuse_for_good_last(self) -> None:
        nodes = [
            node("far", cpu=1),
            make_node("tainted").capacity(cpu="3950m", memory="8Gi").taint("dedicated", value="ml").build(),
            node("near", cpu="3920m"),
            node("nearer", cpu="3960m"),
        ]
        explanation = decided(make_pod("web").requests(cpu=4).build(), nodes)
        assert [each.node for each in explanation.closest()] == ["nearer", "near", "far", "tainted"]
        few = explanation.closest_by_requirement(2)
        assert [each.node for each in few] == ["nearer", "near", "tainted"]
        text = as_text(explanation)
        assert "near     cpu: 4 requested; 3920m free of 3920m allocatable, 80m short" in text
        assert "Why no node would do" in text
        assert "Why not the others" not in text

    def test_nodes_of_which_nothing_is_known_but_the_refusal_count_as_one_step_away(self) -> None:
        nodes = [
            make_node("two").capacity(cpu=4).taint("a").taint("b").build(),
            make_node("one").capacity(cpu=4).unschedulable().build(),
            node("none", cpu=1),
        ]
        pod = make_pod("web").requests(cpu=2).build()
        explanation = decided(pod, nodes)
        assert [each.node for each in explanation.closest()] == ["none", "one", "two"]
        assert "one   node(s) were unschedulable" in as_text(explanation)

    def test_room_that_is_kept_for_a_nominated_pod_counts_as_taken(self) -> None:
        ahead = make_pod("ahead").requests(cpu=3).priority(10).nominated_node("n").build()
        explanation = decided(make_pod("web").requests(cpu=2).build(), [node("n")], ahead)
        assert texts(explanation, "n", "NodeResourcesFit") == [
            "cpu: 2 requested; 1 free of 4 allocatable, 1 short"
        ]


def test_the_taint_is_named() -> None:
    tainted = make_node("n").capacity(cpu=4).taint("dedicated", value="ml").build()
    assert texts(decided(make_pod("web").build(), [tainted]), "n", "TaintToleration") == [
        "taint dedicated=ml:NoSchedule"
    ]


def test_the_holder_of_the_port_is_named() -> None:
    holder = make_pod("holder").host_port(8080).node("n").build()
    explanation = decided(make_pod("web").host_port(8080).build(), [node("n")], holder)
    assert texts(explanation, "n", "NodePorts") == ["hostPort 8080/TCP; held by default/holder"]


class TestNodeAffinity:
    def test_the_label_that_is_asked_for_and_the_one_that_is_there(self) -> None:
        explanation = decided(make_pod("web").node_selector({ZONE: "b", "gpu": "yes"}).build(), [node("n")])
        assert texts(explanation, "n", "NodeAffinity") == [
            f"nodeSelector {ZONE}=b; {ZONE}=a",
            "nodeSelector gpu=yes; no label gpu",
        ]

    def test_each_term_says_what_did_not_match(self) -> None:
        pod = make_pod("web").node_affinity_in(ZONE, "b").node_affinity_in("disk", "ssd", "nvme").build()
        assert texts(decided(pod, [node("n")]), "n", "NodeAffinity") == [
            f"nodeAffinity term 1 of 2: {ZONE}=b; {ZONE}=a",
            "nodeAffinity term 2 of 2: disk in (ssd,nvme); no label disk",
        ]


class TestSpread:
    NODES = (node("a1", "a"), node("b1", "b"), make_node("nowhere").capacity(cpu=4).build())
    SEATED = tuple(make_pod(f"web-{i}").labels(app="web").node("a1").build() for i in range(2))
    POD = make_pod("web").labels(app="web").node_selector({ZONE: "a"}).spread(ZONE, {"app": "web"}).build()

    def test_skew_and_counts(self) -> None:
        nodes = [*self.NODES[:2]]
        full = make_pod("full").requests(cpu=4).node("b1").build()
        pod = make_pod("web").labels(app="web").requests(cpu=1).spread(ZONE, {"app": "web"}).build()
        explanation = decided(pod, nodes, *self.SEATED, full)
        assert texts(explanation, "a1", "PodTopologySpread") == [
            (
                f"spread over {ZONE}, maxSkew 1, of pods with app=web; "
                "2 of them in a, 0 in the emptiest domain: the skew would be 3"
            )
        ]

    @pytest.mark.parametrize(
        ("min_domains", "on_b", "why"),
        [
            (3, 1, "; the minimum counts as 0 with 2 of the 3 domains of minDomains: the skew would be 3"),
            (3, 0, ", 0 in the emptiest domain: the skew would be 3"),
            (2, 0, ", 0 in the emptiest domain: the skew would be 3"),
        ],
    )
    def test_fewer_domains_than_min_domains_are_named_where_they_make_the_minimum_0(
        self, min_domains: int, on_b: int, why: str
    ) -> None:
        others = [make_pod(f"b-{i}").labels(app="web").node("b1").build() for i in range(on_b)]
        full = make_pod("full").requests(cpu=4).node("b1").build()
        pod = make_pod("web").labels(app="web").requests(cpu=1)
        pod = pod.spread(ZONE, {"app": "web"}, min_domains=min_domains)
        explanation = decided(pod.build(), self.NODES[:2], *self.SEATED, *others, full)
        (text,) = texts(explanation, "a1", "PodTopologySpread")
        assert text == f"spread over {ZONE}, maxSkew 1, of pods with app=web; 2 of them in a{why}"

    def test_a_node_without_the_label_is_said_to_be_without(self) -> None:
        pod = make_pod("web").labels(app="web").spread(ZONE, {"app": "web"}).build()
        assert texts(decided(pod, self.NODES), "nowhere", "PodTopologySpread") == [
            f"spread over {ZONE}, maxSkew 1, of pods with app=web; no label {ZONE}"
        ]


class TestPodAffinity:
    NODES = (node("a1", "a"), node("a2", "a"))

    def test_the_term_that_finds_no_company(self) -> None:
        pod = make_pod("web").pod_affinity(ZONE, {"app": "db"}).build()
        assert texts(decided(pod, self.NODES), "a1", "InterPodAffinity") == [
            f"podAffinity on {ZONE} to pods with app=db in namespace default; no such pod in a"
        ]

    def test_the_pods_that_it_avoids_wherever_in_the_domain(self) -> None:
        others = [make_pod(f"db-{i}").labels(app="db").node("a2").build() for i in range(5)]
        pod = make_pod("web").pod_anti_affinity(ZONE, {"app": "db"}).build()
        assert texts(decided(pod, self.NODES, *others), "a1", "InterPodAffinity") == [
            (
                f"podAntiAffinity on {ZONE} to pods with app=db in namespace default; "
                "a has default/db-0, default/db-1, default/db-2 and 2 more"
            )
        ]

    def test_a_negative_namespace_selector_that_selects_every_namespace(self) -> None:
        other = make_pod("db").labels(app="db").node("a2").build()
        but_default = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}
        term = {
            "topologyKey": ZONE,
            "labelSelector": {"matchLabels": {"app": "db"}},
            "namespaceSelector": {"matchExpressions": [but_default]},
        }
        pod = pod_from_manifest(
            {
                "metadata": {"name": "web"},
                "spec": {
                    "containers": [{"name": "main"}],
                    "affinity": {
                        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
                    },
                },
            }
        )
        assert texts(decided(pod, self.NODES, other), "a1", "InterPodAffinity") == [
            (
                f"podAntiAffinity on {ZONE} to pods with app=db in any namespace (kube-scheduler v1.36 matches "
                "kubernetes.io/metadata.name!=default with no labels); a has default/db"
            )
        ]

    def test_the_pods_that_mind_it(self) -> None:
        shy = make_pod("shy").pod_anti_affinity(ZONE, {"app": "web"}).node("a2").build()
        pod = make_pod("web").labels(app="web").build()
        assert texts(decided(pod, self.NODES, shy), "a1", "InterPodAffinity") == [
            f"podAntiAffinity of existing pods on {ZONE}; a has default/shy"
        ]


class TestPluginsOfOnesOwn:
    def test_give_evidence_by_a_method_of_that_name(self) -> None:
        class Rack(Plugin):
            name = "Rack"

            @hookimpl
            def filter(self) -> Status:
                return Status.unschedulable("wrong rack")

            def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterator[Evidence]:
                yield Evidence("rack r1", f"rack r{len(node_info.name)}", values={"rack": "r1"})

        explanation = decide(make_pod("web").build(), Rack, nodes=[node("n")])
        assert texts(explanation, "n", "Rack") == ["rack r1; rack r1"]

    def test_one_that_fails_to_say_does_no_harm_and_is_named(self) -> None:
        class Mute(Plugin):
            name = "Mute"

            @hookimpl
            def filter(self) -> Status:
                return Status.unschedulable("no")

            def evidence(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterator[Evidence]:
                raise RuntimeError("out of words")

        explanation = decide(make_pod("web").build(), Mute, nodes=[node("n")])
        assert texts(explanation, "n", "Mute") == [
            "Mute can't say what lies behind it; RuntimeError: out of words"
        ]


def claimed(volume: str = "", **spec: object) -> list[Named]:
    """A pod's claim of a class that waits for its consumer, bound to the volume if there is one."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    manifests: list[dict[str, object]] = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "annotations": annotations},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "disk",
                "volumeName": volume,
            },
        },
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "disk"},
            "provisioner": "csi.example",
            "volumeBindingMode": "WaitForFirstConsumer",
            **spec,
        },
    ]
    return [object_from_manifest(each) for each in manifests]


def volume(name: str, zone: str, **labels: str) -> Named:
    required = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    }
    return object_from_manifest(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"},
                "csi": {"driver": "csi.example", "volumeHandle": name},
                "nodeAffinity": {"required": required},
                "storageClassName": "disk",
            },
        }
    )


class TestVolumes:
    """The claim, its volume and what the volume requires of nodes."""

    POD = make_pod("web").claim("data").build()

    def explained(self, *objects: Named) -> Explanation:
        return explain_pod(InMemoryCluster([node("n", "b"), *objects]), self.POD)

    def test_the_claim_the_volume_and_the_zone_that_the_node_is_not_in(self) -> None:
        explanation = self.explained(*claimed("pv"), volume("pv", "a"))
        (found,) = explanation.of("n").evidence["VolumeBinding"]
        assert str(found) == f"claim default/data, volume pv: {ZONE}=a; {ZONE}=b"
        assert (found.values["claim"], found.values["volume"]) == ("default/data", "pv")

    def test_the_zone_that_a_label_of_the_volume_names(self) -> None:
        explanation = self.explained(*claimed("pv"), volume("pv", "b", **{ZONE: "a"}))
        assert texts(explanation, "n", "VolumeZone") == [f"claim default/data, volume pv: {ZONE}=a; {ZONE}=b"]

    def test_a_volume_that_is_gone(self) -> None:
        explanation = decide(self.POD, VolumeBinding, nodes=[node("n")], objects=claimed("pv"))
        assert texts(explanation, "n", "VolumeBinding") == [
            "claim default/data, volume pv; the volume isn't there"
        ]

    def test_the_class_that_makes_no_volume_for_the_node(self) -> None:
        topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}]
        explanation = self.explained(*claimed(allowedTopologies=topologies))
        assert texts(explanation, "n", "VolumeBinding") == [
            "claim default/data, StorageClass disk; node(s) didn't find available persistent volumes to bind"
        ]

    def test_how_many_volumes_of_a_driver_are_attached_and_may_be(self) -> None:
        driver = {"name": "csi.example", "nodeID": "n", "allocatable": {"count": 0}}
        csi_node = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": "n"},
            "spec": {"drivers": [driver]},
        }
        explanation = self.explained(*claimed("pv"), volume("pv", "b"), object_from_manifest(csi_node))
        assert texts(explanation, "n", "NodeVolumeLimits") == [
            "1 more volume of csi.example; 0 of at most 0 attached"
        ]


ABLE = {
    "InterPodAffinity",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "NodeVolumeLimits",
    "PodTopologySpread",
    "TaintToleration",
    "VolumeBinding",
    "VolumeZone",
}


@settings(max_examples=examples(25))
@given(clusters(most_nodes=6, most_bound=8, most_pending=4))
def test_each_refusal_of_the_plugins_that_can_say_has_evidence_with_one_gap_per_shortage(
    cluster: DrawnCluster,
) -> None:
    _, found = simulated(in_memory(cluster), explained=True, beyond=True)
    for explanation in found:
        for row in explanation.rows():
            refused_by = {status.plugin for status in row.also_refused_by.values()}
            if row.refusal is not None and explanation.beyond is not None:
                refused_by.add(row.refusal.plugin)
            assert refused_by & ABLE == row.evidence.keys() & ABLE
            for each in (piece for pieces in row.evidence.values() for piece in pieces):
                assert each.asked
                assert each.gap is None or each.gap > 0


@settings(max_examples=examples(25))
@given(clusters(most_nodes=12, most_bound=8, most_pending=4))
def test_filters_that_are_asked_about_all_nodes_at_once_say_what_they_say_about_each(
    cluster: DrawnCluster,
) -> None:
    objects = in_memory(cluster)
    for pod in cluster.pending:
        together = explain_pod(objects, pod)
        one_by_one = explain_pod(objects, pod, evaluation=Evaluation.SCALAR)
        assert list(together.rows()) == list(one_by_one.rows())


def test_an_explanation_that_asks_no_more_than_the_decision_has_none() -> None:
    explanation = explain_pod(
        InMemoryCluster([node("n")]), make_pod("web").requests(cpu=9).build(), beyond=False
    )
    assert not any(row.evidence for row in explanation.rows())
