"""What is said to help was tried, and helps; what doesn't isn't said."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given, settings
from kschedfw_advisor.cluster_changes import AddNodes, DeletePod
from kschedfw_advisor.node_groups import NodeGroup, node_shapes
from kschedfw_advisor.readmission import Readmission
from kschedfw_advisor.remedies import Remedy, find_remedies
from kschedfw_advisor.request_changes import EnlargeNode
from kschedfw_advisor.sizes import offered
from small_clusters import REGISTRY, ending, node, owned, running, what_if

from kschedfw import (
    InMemoryCluster,
    Node,
    Pod,
    Profile,
    Scheduler,
    Transaction,
    default_profile,
    make_node,
    make_pod,
)
from kschedfw.api import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    Operator,
    PreemptionPolicy,
    PriorityClass,
    Requirement,
    object_from_manifest,
)
from kschedfw.api.builders import NodeBuilder, PodBuilder
from kschedfw.framework.clock import VirtualClock
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters
from kschedfw.what_if import Schedule
from kschedfw.what_if.what_if import WhatIf


def remedies(*objects: Node | Pod | NodeBuilder, pod: PodBuilder | Pod) -> list[str]:
    """What would help the pod in a cluster of these objects."""
    built = [each.build() if isinstance(each, NodeBuilder) else each for each in objects]
    cluster = what_if(built, pod if isinstance(pod, Pod) else pod.build())
    shapes = node_shapes(cluster.nodes)
    additions = [AddNodes(shape, exists=True) for shape in shapes]
    found = find_remedies(cluster, cluster.pending, additions)
    return [str(remedy) for remedy in found.remedies]


class TestEachSortOfChange:
    """Each is found where it is what it takes."""

    def test_a_label_or_no_selector(self) -> None:
        found = remedies(node("n1"), pod=make_pod("p").node_selector(disk="ssd"))
        assert found == ["drop disk=ssd from the pod's nodeSelector", "label node n1 disk=ssd"]

    def test_a_label_that_states_a_fact_is_left_as_it_is(self) -> None:
        found = remedies(
            node("n1").zone("a"), pod=make_pod("p").node_affinity_in("topology.kubernetes.io/zone", "b")
        )
        assert found == ["drop topology.kubernetes.io/zone=b from the pod's required node affinity"]

    def test_labels_for_node_affinity(self) -> None:
        found = remedies(node("n1"), pod=make_pod("p").node_affinity_in("disk", "ssd", "nvme"))
        assert found == [
            "drop disk in (ssd,nvme) from the pod's required node affinity",
            "label node n1 disk=ssd",
        ]

    def test_a_toleration(self) -> None:
        found = remedies(node("n1").taint("gpu", value="yes"), pod=make_pod("p"))
        assert found == ["tolerate gpu=yes:NoSchedule"]

    def test_a_node_that_is_well_again(self) -> None:
        found = remedies(node("n1").taint("node.kubernetes.io/not-ready"), pod=make_pod("p"))
        assert found[0] == "repair node n1, so that its taint node.kubernetes.io/not-ready:NoSchedule goes"
        assert not any("tolerate" in each for each in found)

    def test_no_cordon(self) -> None:
        cordoned = node("n1").unschedulable().taint("node.kubernetes.io/unschedulable")
        assert remedies(cordoned, pod=make_pod("p"))[0] == "uncordon node n1"

    def test_a_smaller_request_a_larger_node_another_pod_or_a_new_node(self) -> None:
        web = running("web-1", "n1", cpu="1500m")
        found = remedies(node("n1"), web, pod=make_pod("p").requests(cpu=3))
        assert found == [
            "request 2500m of cpu instead of 3",
            "500m more cpu on node n1",
            "1 more node like n1",
            # Deleting a pod comes last, since it gains nothing: that pod is as important and finds no other place.
            "delete pod default/web-1 from node n1",
        ]

    def test_amounts_of_memory_are_such_that_they_suffice(self) -> None:
        web = owned(make_pod("web-1").requests(memory="3000000001").node("n1"))
        found = remedies(node("n1"), web, pod=make_pod("p").requests(memory="6000000001"))
        assert found[:2] == ["request 5330Mi of memory instead of 6000000001", "392Mi more memory on node n1"]

    def test_another_holder_of_a_port(self) -> None:
        web = owned(make_pod("web-1").host_port(80).node("n1"))
        assert remedies(node("n1"), web, pod=make_pod("p").host_port(80)) == [
            "drop hostPort 80/TCP, which other pods hold",
            "1 more node like n1",
            "delete pod default/web-1 from node n1",
        ]

    def test_a_more_important_holder_stays(self) -> None:
        web = owned(make_pod("web-1").host_port(80).priority(5).node("n1"))
        assert remedies(node("n1"), web, pod=make_pod("p").host_port(80)) == [
            "drop hostPort 80/TCP, which other pods hold",
            "1 more node like n1",
        ]

    def test_a_port_of_the_nodes_own_network_is_not_given_up(self) -> None:
        daemon = owned(make_pod("edge-1").host_port(80).node("n1"), "edge", "DaemonSet")
        plain = make_pod("p").host_port(80).build()
        pod = attrs.evolve(plain, spec=attrs.evolve(plain.spec, host_network=True))
        assert remedies(node("n1"), daemon, pod=pod) == ["1 more node like n1"]

    def test_tolerations_of_a_pool_that_the_pod_names_come_before_giving_the_pool_up(self) -> None:
        locked = node("n1").labels(pool="locked").taint("quiet").taint("tenant", value="blue")
        found = remedies(locked, node("n2"), pod=make_pod("p").node_selector(pool="locked"))
        assert found[0] == "tolerate quiet:NoSchedule, and tolerate tenant=blue:NoSchedule"
        assert "drop pool=locked from the pod's nodeSelector" in found

    def test_a_cordoned_node_that_is_meant_is_found_among_many_pools_with_taints_of_their_own(self) -> None:
        edge = node("edge").labels(site="oslo").unschedulable().taint("node.kubernetes.io/unschedulable")
        pools = [node(f"n{number}").taint(f"pool-{number}") for number in range(12)]
        found = remedies(*pools, edge, pod=make_pod("p").node_selector(site="oslo"))
        assert found[0] == "uncordon node edge"

    def test_pods_of_the_only_other_namespace_that_has_such(self) -> None:
        vault = owned(make_pod("vault-1").namespace("infra").labels(app="vault").node("n1"), "vault")
        pod = make_pod("p").pod_affinity("kubernetes.io/hostname", {"app": "vault"})
        assert remedies(node("n1"), vault, pod=pod)[0].startswith("look for app=vault in namespace infra")

    def test_pods_of_other_namespaces_are_not_meant_if_several_have_such(self) -> None:
        vaults = [
            owned(make_pod("vault-1").namespace(space).labels(app="vault").node("n1"), "vault")
            for space in ("infra", "tools")
        ]
        pod = make_pod("p").pod_affinity("kubernetes.io/hostname", {"app": "vault"})
        assert not any("look for" in each for each in remedies(node("n1"), *vaults, pod=pod))

    def test_a_greater_skew(self) -> None:
        nodes = [node("n1", cpu=1).zone("a"), node("n2").zone("b")]
        pods = [running("web-1", "n1"), running("web-2", "n2")]
        pod = make_pod("p").labels(app="web").requests(cpu=1)
        pod = pod.spread("topology.kubernetes.io/zone", {"app": "web"}, max_skew=1)
        found = remedies(*nodes, *pods, running("web-3", "n2"), pod=pod)
        assert "maxSkew 2 for the spread over topology.kubernetes.io/zone" in found

    def test_fewer_domains_where_min_domains_makes_the_minimum_0(self) -> None:
        zone = "topology.kubernetes.io/zone"
        nodes = [node("n1").zone("a"), node("n2").zone("b")]
        pods = [running("web-1", "n1"), running("web-2", "n2")]
        pod = make_pod("p").labels(app="web").spread(zone, {"app": "web"}, max_skew=1, min_domains=3)
        assert remedies(*nodes, *pods, pod=pod)[:2] == [
            f"minDomains 2 for the spread over {zone}",
            f"maxSkew 2 for the spread over {zone}",
        ]

    def test_a_preferred_spread_says_that_min_domains_goes(self) -> None:
        zone = "topology.kubernetes.io/zone"
        pending = [
            make_pod(f"p{i}")
            .labels(app="web")
            .spread(zone, {"app": "web"}, max_skew=1, min_domains=9)
            .build()
            for i in range(4)
        ]
        nodes = [node("n1").zone("a"), node("n2").zone("b")]
        pods = [running("web-1", "n1"), running("web-2", "n2")]
        cluster = what_if([*(each.build() for each in nodes), *pods], *pending)
        found = [str(remedy) for remedy in find_remedies(cluster, cluster.pending, []).remedies]
        assert f"whenUnsatisfiable: ScheduleAnyway and no minDomains for the spread over {zone}" in found

    def test_no_rule_to_be_apart_or_a_zone_more(self) -> None:
        zone = "topology.kubernetes.io/zone"
        pod = make_pod("p").pod_anti_affinity(zone, {"app": "web"})
        found = remedies(node("n1").zone("a"), running("web-1", "n1"), pod=pod)
        assert found == [
            f"prefer the podAntiAffinity over {zone} instead of requiring it",
            f"1 more node like n1 with a {zone} of its own",
            "delete pod default/web-1 from node n1",
        ]

    def test_a_rack_of_its_own_is_told_in_english(self) -> None:
        rack = "example.org/rack"
        pod = make_pod("p").pod_anti_affinity(rack, {"app": "web"})
        found = remedies(node("n1").labels({rack: "r1"}), running("web-1", "n1"), pod=pod)
        assert f"1 more node like n1 with an {rack} of its own" in found

    def test_no_rule_to_be_together(self) -> None:
        pod = make_pod("p").pod_affinity("kubernetes.io/hostname", {"app": "absent"})
        assert remedies(node("n1"), pod=pod) == [
            "prefer the podAffinity over kubernetes.io/hostname instead of requiring it"
        ]

    def test_another_pod_on_the_node_for_what_no_other_change_is_known(self) -> None:
        disk = {"gcePersistentDisk": {"pdName": "disk"}}
        web = owned(make_pod("web-1").volume("disk", disk).node("n1"))
        idle = owned(make_pod("idle").node("n1"), "idle")
        assert remedies(node("n1"), web, idle, pod=make_pod("p").volume("disk", disk)) == [
            "1 more node like n1",
            "delete pod default/web-1 from node n1",
        ]

    def test_a_less_important_pod_is_deleted_before_a_node_is_added(self) -> None:
        low = owned(make_pod("low").requests(cpu=4).priority(-1).node("n1"), "low")
        never = make_pod("p").requests(cpu=4).build()
        pod = attrs.evolve(never, spec=attrs.evolve(never.spec, preemption_policy=PreemptionPolicy.NEVER))
        found = remedies(node("n1"), low, pod=pod)
        assert found.index("delete pod default/low from node n1") < found.index("1 more node like n1")

    def test_several_effects_of_one_taint_are_one_change(self) -> None:
        both = node("n1").taint("team", value="red").taint("team", value="red", effect="NoExecute")
        assert remedies(both, pod=make_pod("p")) == ["tolerate team=red:NoSchedule and NoExecute"]
        key = "node.kubernetes.io/unreachable"
        lost = node("n1").taint(key).taint(key, effect="NoExecute")
        assert (
            remedies(lost, pod=make_pod("p"))[0] == f"repair node n1, so that its taint {key}:NoSchedule goes"
        )

    def test_a_node_that_is_not_there_is_dropped_from_the_affinity(self) -> None:
        term = NodeSelectorTerm(match_fields=(Requirement("metadata.name", Operator.IN, ("gone",)),))
        affinity = Affinity(node_affinity=NodeAffinity(NodeSelector((term,))))
        pod = make_pod("p").build()
        pod = attrs.evolve(pod, spec=attrs.evolve(pod.spec, affinity=affinity))
        assert (
            remedies(node("n1"), pod=pod)[0]
            == "drop metadata.name=gone from the pod's required node affinity"
        )

    def test_several_changes_where_one_is_not_enough(self) -> None:
        tainted = node("n1").taint("gpu")
        found = remedies(tainted, pod=make_pod("p").node_selector(disk="ssd"))
        assert found == [
            "tolerate gpu:NoSchedule, and drop disk=ssd from the pod's nodeSelector",
            "tolerate gpu:NoSchedule, and label node n1 disk=ssd",
        ]


class TestRequirements:
    """Each requirement that keeps the pod off some nodes is looked at, however many nodes fail another one."""

    def test_a_selector_entry_is_dropped_though_more_and_closer_nodes_fail_another_one(self) -> None:
        arch, many = (
            "kubernetes.io/arch",
            [node(f"a{n}").labels({"kubernetes.io/arch": "amd64", "zone": "c"}) for n in range(3)],
        )
        other = node("z1").labels({arch: "arm64", "zone": "a"})
        found = remedies(*many, other, pod=make_pod("p").node_selector({arch: "arm64", "zone": "c"}))
        assert found == [
            "drop zone=c from the pod's nodeSelector",
            "label node z1 zone=c",
            f"drop {arch}=arm64 from the pod's nodeSelector; its image may not run on another platform",
        ]

    def test_the_control_planes_taint_is_tolerated_first_by_a_pod_that_asks_for_its_nodes(self) -> None:
        control = "node-role.kubernetes.io/control-plane"
        nodes = [node("cp").labels({control: ""}).taint(control), node("n1")]
        assert remedies(*nodes, pod=make_pod("p").node_selector({control: ""}))[:2] == [
            f"tolerate {control}:NoSchedule; such nodes are kept for the control plane",
            f"drop {control}= from the pod's nodeSelector",
        ]

    def test_each_taint_is_offered(self) -> None:
        nodes = [node("a1").taint("batch"), node("a2").taint("batch"), node("z1").taint("spot")]
        assert remedies(*nodes, pod=make_pod("p")) == [
            "tolerate batch:NoSchedule",
            "tolerate spot:NoSchedule",
        ]

    def test_nodes_with_devices_that_the_pod_does_not_request_come_last(self) -> None:
        gpu = (
            make_node("a1")
            .capacity({"cpu": "64", "pods": "10", "nvidia.com/gpu": "8"})
            .taint("dedicated", value="ml")
        )
        assert remedies(gpu, node("z1").taint("spot"), pod=make_pod("p").requests(cpu=1)) == [
            "tolerate spot:NoSchedule",
            "tolerate dedicated=ml:NoSchedule; such nodes offer nvidia.com/gpu, which the pod doesn't request",
        ]


class TestAmounts:
    """Requests are judged against what the nodes that the pod may use have when empty."""

    @pytest.mark.parametrize(
        ("requests", "first"),
        [
            ({"cpu": 250}, "request 250m of cpu: 250 is a number of cores"),
            ({"memory": "64Gi"}, "request 64Mi of memory: 64Gi has the wrong unit"),
            # Four times as much as the node has is taken at its word.
            ({"memory": "32Gi"}, "drop pool=web from the pod's nodeSelector"),
            # 48 cores are a large pod, and 48 millicores hardly any.
            ({"cpu": 48}, "drop pool=web from the pod's nodeSelector"),
        ],
    )
    def test_the_next_smaller_unit_is_first_where_it_fits_and_the_request_never_could(
        self, requests: dict[str, str | int], first: str
    ) -> None:
        # Nodes that the pod doesn't tolerate or select don't count, however large they are.
        large = node("big", cpu=512).capacity(memory="1Ti")
        others = [large.taint("kept"), node("other", cpu=512).capacity(memory="1Ti").labels(pool="other")]
        pod = make_pod("p").requests(requests).node_selector(pool="web")
        found = remedies(node("n1").labels(pool="web"), *others, pod=pod)
        assert first in found[0]

    def test_a_node_grows_only_for_a_pod_that_it_would_take_when_empty(self) -> None:
        web = running("web-1", "n1")
        grown = [
            [
                each
                for each in remedies(node("n1"), web, pod=make_pod("p").requests(cpu=cores))
                if "more cpu" in each
            ]
            for cores in (4, 5)
        ]
        assert grown == [["1 more cpu on node n1"], []]

    def test_a_node_that_runs_as_many_pods_as_it_may_gets_room_for_one_more(self) -> None:
        found = remedies(
            node("n1").capacity(cpu=4, memory="8Gi", pods=1), running("web-1", "n1"), pod=make_pod("p")
        )
        assert "room for 1 more pod on node n1 (its kubelet's maxPods)" in found

    def test_every_container_with_the_wrong_unit_gets_the_right_one(self) -> None:
        pod = make_pod("p").requests(memory="512Gi").init_container("setup", requests={"memory": "256Gi"})
        (first, *_) = remedies(node("n1"), pod=pod)
        assert first.startswith("request 512Mi of memory: 512Gi has the wrong unit")

    def test_a_request_of_the_pod_itself_is_lowered(self) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {
                "resources": {"requests": {"cpu": 6}},
                "containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": 1}}}],
            },
        }
        pod = object_from_manifest(manifest)
        assert isinstance(pod, Pod)
        assert remedies(node("n1"), pod=pod) == ["request 4 of cpu instead of 6"]

    def test_the_largest_init_container_requests_less_where_it_counts(self) -> None:
        pod = make_pod("p").requests(cpu=1).init_container("setup", requests={"cpu": 6})
        assert remedies(node("n1"), pod=pod)[0] == "request 4 of cpu instead of 6 in init container setup"


class TestOneTemplate:
    """What helps is sought for all pods of a template, not for the first one."""

    def test_a_daemon_requests_what_is_free_on_each_of_its_nodes(self) -> None:
        nodes = [node(f"n{size}").capacity(cpu=size, memory="8Gi", pods=10) for size in (8, 4, 6)]
        # The one that is no target has less room.
        other = node("other", cpu=1).labels(daemons="no")
        pods = [_daemon(f"n{size}", cpu=9) for size in (8, 4, 6)]
        cluster = what_if([each.build() for each in (*nodes, other)], pods)
        found = find_remedies(cluster, cluster.pending).remedies
        assert [(str(each), each.placed) for each in found] == [
            ("request 4 of cpu instead of 9", 3),
        ]

    def test_of_a_daemon_each_nodes_own_obstacle_is_found(self) -> None:
        nodes = [node("n1", cpu=1), node("n2").taint("kept"), node("n3").unschedulable()]
        pods = [_daemon(name, cpu=2) for name in ("n1", "n2", "n3")]
        cluster = what_if([each.build() for each in nodes], pods)
        found = find_remedies(cluster, cluster.pending).remedies
        assert {(str(each), each.nodes) for each in found} >= {
            ("uncordon node n3", ("n3",)),
            ("tolerate kept:NoSchedule", ("n2",)),
            ("request 1 of cpu instead of 2", ("n1",)),
        }

    def test_replicas_request_what_leaves_room_for_all_of_them(self) -> None:
        pods = [owned(make_pod(f"p-{n}").requests(cpu=8), "p") for n in range(5)]
        # Of 4, each takes one; of 2, they take three and two.
        cluster = what_if(node("n1", cpu=7).build(), node("n2", cpu=4).build(), pods[:2], pods[2:])
        found = find_remedies(cluster, cluster.pending).remedies
        assert ("request 2 of cpu instead of 8", 5) in [(str(each), each.placed) for each in found]


class TestMoreRemedies:
    """Further changes are tried where they may help."""

    def test_a_renamed_key_with_the_same_value_is_corrected(self) -> None:
        nodes = [
            node("n1").labels({"acme.io/pool": "web"}),
            node("n2").labels({"acme.io/pool": "ml", "team": "ml"}),
        ]
        found = remedies(*nodes, pod=make_pod("p").node_selector({"pools.acme.io/name": "ml"}))
        assert found[0] == (
            "correct pools.acme.io/name=ml to acme.io/pool=ml, which nodes have, in the labels that the pod wants"
        )

    def test_a_key_is_not_taken_for_renamed_by_a_value_that_many_have(self) -> None:
        one = node("n1").labels({"acme.io/ready": "true"})
        found = remedies(one, pod=make_pod("p").node_selector({"licensed": "true"}))
        assert not any("correct" in each for each in found)

    def test_a_topology_key_of_an_older_domain_is_corrected(self) -> None:
        pod = make_pod("p").labels(app="web")
        pod = pod.spread("failure-domain.beta.kubernetes.io/zone", {"app": "web"}, max_skew=1)
        found = remedies(node("n1").zone("a"), pod=pod)
        assert found[0].startswith(
            "correct failure-domain.beta.kubernetes.io/zone to topology.kubernetes.io/zone"
        )

    def test_a_spread_that_counts_a_tainted_node_may_honor_taints(self) -> None:
        nodes = [node("n1").unschedulable().taint("node.kubernetes.io/unschedulable"), node("n2"), node("n3")]
        pods = [running("web-1", "n2"), running("web-2", "n3")]
        pod = make_pod("p").labels(app="web").spread("kubernetes.io/hostname", {"app": "web"}, max_skew=1)
        assert remedies(*nodes, *pods, pod=pod)[:3] == [
            "uncordon node n1",
            "nodeTaintsPolicy: Honor for the spread over kubernetes.io/hostname",
            "maxSkew 2 for the spread over kubernetes.io/hostname",
        ]

    def test_nodes_are_labelled_for_a_topology_key_that_none_has(self) -> None:
        pod = make_pod("p").labels(app="web").spread("acme.io/rack", {"app": "web"}, max_skew=1)
        assert remedies(node("n1"), node("n2"), pod=pod)[:2] == [
            "whenUnsatisfiable: ScheduleAnyway for the spread over acme.io/rack",
            "label the nodes with acme.io/rack, which none has; tried on n1, n2, each with its own value",
        ]

    def test_a_class_that_preempts_is_named_with_the_pods_that_lose_their_place(self) -> None:
        classes = [
            PriorityClass(ObjectMeta("idle"), -10),
            PriorityClass(ObjectMeta("some"), 10),
            PriorityClass(ObjectMeta("more"), 20),
            PriorityClass(ObjectMeta("meek"), 5, preemption_policy=PreemptionPolicy.NEVER),
        ]
        pod = make_pod("p").requests(cpu=4).build()
        cluster = what_if(
            node("n1").build(), running("web-1", "n1", cpu=2), running("web-2", "n1"), pod, classes
        )
        (found,) = (
            each for each in find_remedies(cluster, cluster.pending).remedies if "priorityClass" in str(each)
        )
        assert str(found) == "priorityClassName some (10), with which less important pods are preempted"
        assert (found.placed, sorted(found.displaced)) == (1, ["default/web-1", "default/web-2"])

    @pytest.mark.parametrize(
        ("class_name", "where"),
        [("", ""), ("calm", " in PriorityClass calm, made anew")],
        ids=["pod", "class"],
    )
    def test_a_pod_that_never_preempts_is_allowed_to_where_a_less_important_one_is_in_the_way(
        self, class_name: str, where: str
    ) -> None:
        calm = PriorityClass(ObjectMeta("calm"), 5, preemption_policy=PreemptionPolicy.NEVER)
        plain = make_pod("p").requests(cpu=4).priority(5).build()
        never = attrs.evolve(
            plain.spec, preemption_policy=PreemptionPolicy.NEVER, priority_class_name=class_name
        )
        pod = attrs.evolve(plain, spec=never)
        cluster = what_if(node("n1").build(), running("web-1", "n1", cpu=2), pod, calm)
        found = find_remedies(cluster, cluster.pending).remedies[0]
        assert str(found) == (
            f"preemptionPolicy PreemptLowerPriority instead of Never{where}: less important pods are preempted"
        )
        assert (found.placed, found.displaced) == (1, ("default/web-1",))

    def test_a_pod_that_never_preempts_stays_so_where_all_others_are_as_important(self) -> None:
        pod = make_pod("p").requests(cpu=4).build()
        never = attrs.evolve(pod.spec, preemption_policy=PreemptionPolicy.NEVER)
        found = remedies(node("n1"), running("web-1", "n1"), pod=attrs.evolve(pod, spec=never))
        assert not any("preemptionPolicy" in each for each in found)

    def test_a_daemon_may_preempt_with_the_class_that_each_cluster_has(self) -> None:
        cluster = what_if(node("n1").build(), running("web-1", "n1", cpu=4), _daemon("n1", cpu=1))
        found = [str(each) for each in find_remedies(cluster, cluster.pending).remedies]
        critical = "priorityClassName system-node-critical (2000001000)"
        assert f"{critical}, with which less important pods are preempted" in found


class TestAdmission:
    """What the API server would refuse or undo isn't offered."""

    def test_a_selector_of_the_runtime_class_is_not_dropped(self) -> None:
        manifest = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "kata"},
            "handler": "kata",
            "scheduling": {"nodeSelector": {"sandbox": "kata"}},
        }
        pod = make_pod("p").node_selector(sandbox="kata").build()
        admitted = attrs.evolve(pod, spec=attrs.evolve(pod.spec, runtime_class_name="kata"))
        for each, dropped in ((pod, True), (admitted, False)):
            cluster = what_if(node("n1").build(), each, object_from_manifest(manifest))
            found = [str(remedy) for remedy in find_remedies(cluster, cluster.pending).remedies]
            assert ("drop sandbox=kata from the pod's nodeSelector" in found) is dropped
            assert "label node n1 sandbox=kata" in found

    def test_no_request_below_the_minimum_of_a_limit_range_is_offered(self) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "least", "namespace": "default"},
            "spec": {"limits": [{"type": "Container", "min": {"cpu": "3"}}]},
        }
        pod = make_pod("p").requests(cpu=4).build()
        web = running("web-1", "n1", cpu=2)
        for least, is_offered in (([], True), ([object_from_manifest(manifest)], False)):
            cluster = what_if(node("n1").build(), web, pod, least)
            found = [str(each) for each in find_remedies(cluster, cluster.pending).remedies]
            assert ("request 2 of cpu instead of 4" in found) is is_offered
            assert "2 more cpu on node n1" in found


class TestEndingPods:
    """Pods that are being deleted are waited for, and never deleted."""

    def test_a_pod_that_fits_once_another_has_ended_only_waits(self) -> None:
        old = ending(running("old", "n1", cpu=3))
        assert remedies(node("n1"), old, pod=make_pod("new").requests(cpu=3)) == [
            "fits once default/old has ended, by 09:01:00 on 2026-11-28"
        ]

    def test_only_the_ends_that_are_needed_are_named_and_the_earliest_of_several(self) -> None:
        olds = [
            ending(running(f"old-{minute}", "n1" if minute < 3 else "n2", cpu=2), minute)
            for minute in (1, 2, 3)
        ]
        selected = make_pod("new").requests(cpu=2)
        assert remedies(node("n1"), node("n2", cpu=2), *olds, pod=selected) == [
            "fits once default/old-1 has ended, by 09:01:00 on 2026-11-28"
        ]

    def test_where_the_ends_are_not_enough_other_changes_are_found_and_no_ending_pod_is_deleted(self) -> None:
        old = ending(running("old", "n1", cpu=1))
        found = remedies(node("n1"), old, running("web", "n1", cpu=3), pod=make_pod("new").requests(cpu=3))
        assert found
        assert not any("old" in each for each in found)

    def test_of_several_pods_those_that_fit_after_the_ends_are_counted(self) -> None:
        pods = [owned(make_pod(f"p-{n}").requests(cpu=4), "p") for n in range(2)]
        cluster = what_if(node("n1").build(), ending(running("old", "n1", cpu=3)), pods)
        first = find_remedies(cluster, cluster.pending).remedies[0]
        assert (str(first), first.placed) == ("fits once default/old has ended, by 09:01:00 on 2026-11-28", 1)


def _daemon(on: str, **requests: int) -> Pod:
    pod = make_pod(f"d-{on}").requests(**requests)
    pinned = attrs.evolve(
        pod.build().spec,
        affinity=Affinity(
            NodeAffinity(
                NodeSelector(
                    (NodeSelectorTerm(match_fields=(Requirement("metadata.name", Operator.IN, (on,)),)),)
                )
            )
        ),
    )
    return owned(attrs.evolve(pod.build(), spec=pinned), "d", "DaemonSet")


def test_a_selector_that_nodes_meet_is_the_last_to_be_dropped() -> None:
    nodes = [node("n1", cpu=2).labels(pool="web"), node("n2").labels(pool="other")]
    found = remedies(*nodes, pod=make_pod("p").requests(cpu=3).node_selector(pool="web"))
    assert found == [
        "request 2 of cpu instead of 3",
        "drop pool=web from the pod's nodeSelector",
        "label node n2 pool=web",
    ]


def test_a_remedy_for_more_pods_comes_before_a_smaller_change() -> None:
    pods = [owned(make_pod(f"p-{n}").requests(cpu=1), "p") for n in range(2)]
    cordoned = node("n1", cpu=1).unschedulable()
    cluster = what_if(cordoned.build(), node("n2").taint("spot").build(), pods)
    found = find_remedies(cluster, cluster.pending).remedies
    assert [(str(each), each.placed) for each in found] == [
        ("tolerate spot:NoSchedule", 2),
        ("uncordon node n1", 1),
    ]


def test_what_takes_another_machine_comes_last() -> None:
    found = remedies(node("n1"), pod=make_pod("p").requests(cpu=64))
    assert found == ["request 4 of cpu instead of 64"]


def test_a_typo_beside_another_obstacle_is_corrected_along_with_it() -> None:
    found = remedies(
        node("n1").labels(disk="ssd"), pod=make_pod("p").node_selector(disk="sdd").requests(cpu=5)
    )
    correction = "correct disk=sdd to disk=ssd, which nodes have, in the labels that the pod wants"
    assert found[0] == f"{correction}, and request 4 of cpu instead of 5"


def test_a_typo_is_corrected_along_with_a_toleration_rather_than_dropped() -> None:
    tainted = node("n1").labels(disk="ssd").taint("ssd")
    found = remedies(tainted, node("n2"), pod=make_pod("p").node_selector(diskk="ssd"))
    correction = "correct diskk=ssd to disk=ssd, which nodes have, in the labels that the pod wants"
    assert found[:2] == [
        f"{correction}, and tolerate ssd:NoSchedule",
        "drop diskk=ssd from the pod's nodeSelector",
    ]


def test_where_correcting_a_typo_is_not_enough_for_all_pods_the_rest_is_found_beside_it() -> None:
    pods = [owned(make_pod(f"p-{n}").requests(cpu=3).node_selector(disk="sdd"), "p") for n in range(3)]
    cluster = what_if(node("n1").labels(disk="ssd").build(), pods)
    (shape,) = node_shapes(cluster.nodes)
    found = find_remedies(cluster, cluster.pending, [AddNodes(shape, exists=True)]).remedies
    correction = "correct disk=sdd to disk=ssd, which nodes have, in the labels that the pod wants"
    assert [(str(each), each.placed) for each in found if str(each).startswith(correction)] == [
        (correction, 1),
        (f"{correction}, and 2 more nodes like n1", 3),
        (f"{correction}, and request 1 of cpu instead of 3", 3),
        (f"{correction}, and 2 more cpu on node n1", 2),
    ]
    assert all(str(each).startswith(correction) for each in found[:2])


def test_nothing_is_found_where_nothing_helps() -> None:
    pod = make_pod("p").claim("absent").build()
    cluster = what_if(node("n1").build(), pod)
    shapes = [AddNodes(shape, exists=True) for shape in node_shapes(cluster.nodes)]
    found = find_remedies(cluster, cluster.pending, shapes)
    assert not found.remedies
    assert found.tried == 1


def test_a_sibling_or_a_daemon_is_not_deleted() -> None:
    sibling, daemon = (
        running("web-1", "n1", cpu=2),
        owned(make_pod("d").requests(cpu=2).node("n1"), "d", "DaemonSet"),
    )
    pod = owned(make_pod("web-2").requests(cpu=4))
    cluster = what_if(node("n1").build(), sibling, daemon, pod)
    assert not any("delete" in str(each) for each in find_remedies(cluster, [pod]).remedies)


def test_a_deleted_pod_that_finds_no_other_place_is_named() -> None:
    def only(*nodes: NodeBuilder) -> Remedy:
        cluster = what_if((each.build() for each in nodes), running("web-1", "n1", cpu=3), pod)
        found = find_remedies(cluster, [pod]).remedies
        return next(each for each in found if "delete" in str(each))

    pod = make_pod("p").requests(cpu=4).node_selector(big="yes").build()
    assert only(node("n1").labels(big="yes"), node("n2")).displaced == ()
    assert only(node("n1").labels(big="yes"), node("n2", cpu=1)).displaced == ("default/web-1",)


def test_it_is_told_how_many_of_the_pods_it_helps() -> None:
    pods = [owned(make_pod(f"p-{number}").requests(cpu=3), "batch") for number in range(3)]
    cluster = what_if(node("n1").build(), running("web-1", "n1", cpu=2), pods)
    (shape,) = node_shapes(cluster.nodes)
    found = find_remedies(cluster, cluster.pending, [AddNodes(shape, exists=True)]).remedies
    assert [(str(each), each.placed, each.pods) for each in found] == [
        ("3 more nodes like n1", 3, 3),
        ("request 666m of cpu instead of 3", 3, 3),
        ("1 more cpu on node n1", 1, 3),
        ("delete pod default/web-1 from node n1", 1, 3),
    ]


def test_looking_for_help_leaves_the_cluster_as_it_was() -> None:
    cluster = what_if(node("n1").taint("gpu").build(), make_pod("p").build())
    before = list(cluster.objects())
    assert find_remedies(cluster, cluster.pending).remedies
    assert list(cluster.objects()) == before


WITHOUT_PREEMPTION = Profile(
    [plugin for plugin in default_profile().multi_point if plugin.name != "DefaultPreemption"]
)


def test_of_pods_that_are_alike_none_is_tried_after_the_one_that_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 50 pods a fifth fits on each new node; the other 45 aren't tried one by one with each number of nodes."""
    pods = [owned(make_pod(f"p-{number}").requests(cpu=2), "p") for number in range(50)]
    cluster = what_if(node("n1", cpu=1).build(), pods)
    asked: list[int] = []
    schedule = Transaction.schedule

    def counted(self: Transaction, pods: Sequence[Pod], **options: bool) -> Schedule:
        asked.append(len(pods))
        return schedule(self, pods, preempt=options.get("preempt", False))

    monkeypatch.setattr(Transaction, "schedule", counted)
    group = NodeGroup("large", node("large", cpu=10).build())
    found = find_remedies(cluster, pods, [AddNodes(group, exists=False)])
    assert ("10 more nodes of group large", 50) in [(str(each), each.placed) for each in found.remedies]
    assert sum(asked) < 200, "without that, 50 for each of the changes"


def test_a_new_node_that_refuses_the_pod_by_itself_is_tried_and_not_told() -> None:
    pods = [make_pod("p").requests(cpu=8).node_selector(disk="ssd").build()]
    cluster = what_if(node("n1").build(), pods)
    groups = [
        NodeGroup(each.name, each)
        for each in (
            node("small").labels(disk="ssd").build(),
            node("hdd", cpu=16).build(),
            node("ssd", cpu=16).labels(disk="ssd").build(),
        )
    ]
    found = find_remedies(cluster, pods, [AddNodes(group, exists=False) for group in groups])
    assert "1 more node of group ssd" in map(str, found.remedies)
    assert not any(name in str(remedy) for remedy in found.remedies for name in ("group small", "group hdd"))


@pytest.mark.slow
@given(clusters(most_nodes=3, most_pending=2))
@settings(max_examples=examples(15))
def test_a_scheduler_that_starts_after_the_changes_places_as_many_pods(world: DrawnCluster) -> None:
    """Of each remedy in generated clusters: the changes are written down, and a scheduler is run on the result."""
    drawn = (*world.nodes, *world.bound, *world.pending)
    cluster = WhatIf(drawn, registry=REGISTRY, profiles=[WITHOUT_PREEMPTION])
    with cluster.transaction() as trial:
        refused = trial.schedule(cluster.pending).refused
        trial.commit()
    for each in refused:
        additions = [AddNodes(shape, exists=True) for shape in node_shapes(cluster.nodes)]
        for remedy in find_remedies(cluster, [each.pod], additions).remedies:
            assert _is_acceptable(cluster, each.pod, remedy), str(remedy)
            with cluster.transaction() as trial:
                pod = each.pod
                for change in remedy.changes:
                    change.make(trial, cluster.cluster)
                    pod = change.changed(pod)
                trial.update(pod)
                objects = [
                    obj
                    for obj in trial.objects()
                    if not isinstance(obj, Pod) or obj.node_name or obj.key == pod.key
                ]
            fresh = InMemoryCluster(objects)
            Scheduler(fresh, [WITHOUT_PREEMPTION], registry=REGISTRY, clock=VirtualClock()).run_until_idle()
            placed = fresh.get(Pod, pod.key)
            assert placed is not None
            assert placed.node_name, str(remedy)


def _is_acceptable(cluster: WhatIf, pod: Pod, remedy: Remedy) -> bool:
    """Return whether no node grows beyond twice its size, no ending pod is deleted, and admission keeps the changes."""
    changed = pod
    for change in remedy.changes:
        changed = change.changed(changed)
        if isinstance(change, EnlargeNode):
            grown = next(each for each in cluster.nodes if each.name == change.node)
            if change.by > offered(grown, change.resource):
                return False
        if isinstance(change, DeletePod) and change.pod.is_terminating:
            return False
    return Readmission.of(cluster.cluster).keeps(pod, changed)
