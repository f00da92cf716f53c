"""A misspelt name is the first thing that is told of a pending pod."""

from __future__ import annotations

import pytest
from kschedfw_advisor.corrections import RespellToleration
from kschedfw_advisor.pending import explain_pending
from small_clusters import what_if

from kschedfw import Node, Pod, make_node, make_pod

NODES = [
    make_node("n1")
    .labels(disk="ssd", zone="a", name="n1")
    .capacity(cpu=8, memory="16Gi", pods=10, **{"nvidia.com/gpu": 2})
    .build(),
    make_node("n2").labels(disk="hdd", zone="b", name="n2").capacity(cpu=8, memory="16Gi", pods=10).build(),
]
TAINTED = make_node("n3").capacity(cpu=8, memory="16Gi", pods=10).taint("dedicated", value="batch").build()
CONTROL = (
    make_node("c")
    .capacity(cpu=64, memory="16Gi", pods=10)
    .taint("node-role.kubernetes.io/control-plane")
    .build()
)


def first_help(pod: Pod, *nodes: Node) -> str:
    found = explain_pending(what_if([*(nodes or NODES)], pod))
    ((kind,),) = [why.kinds for why in found.whys]
    return str(kind.remedies[0])


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        (
            make_pod().node_selector(disk="sdd").build(),
            "correct disk=sdd to disk=ssd, which nodes have, in the labels that the pod wants",
        ),
        (
            make_pod().node_selector(zones="a").build(),
            "correct zones=a to zone=a, which nodes have, in the labels that the pod wants",
        ),
        (
            make_pod().node_affinity_in("disk", "sdd").build(),
            "correct disk=sdd to disk=ssd, which nodes have, in the labels that the pod wants",
        ),
        (
            make_pod().requests(cpu=1, **{"nvidia.com/gpus": 1}).build(),
            "correct nvidia.com/gpus to nvidia.com/gpu, which nodes offer, in the pod's requests",
        ),
        (
            make_pod().spread("zoen", {"app": "web"}).build(),
            "correct zoen to zone, a label of nodes, as the topologyKey",
        ),
        (
            make_pod().requests(memory="8Ti").build(),
            "request 8Gi of memory: 8Ti has the wrong unit; no node that the pod may use has more than 16Gi",
        ),
        (
            make_pod().requests(cpu=4000).build(),
            (
                "request 4000m of cpu: 4000 is a number of cores, and m for millicores is missing; "
                "no node that the pod may use has more than 8"
            ),
        ),
        (
            make_pod().requests(memory="24Gi").build(),
            "request 16Gi of memory instead of 24Gi",
        ),
        (
            make_pod().requests(memory="50000Mi").build(),
            "request 16Gi of memory instead of 50000Mi",
        ),
        (
            make_pod().requests(memory="100Gi").build(),
            "request 100Mi of memory: 100Gi has the wrong unit; no node that the pod may use has more than 16Gi",
        ),
    ],
)
def test_a_misspelt_name_is_told_first(pod: Pod, told: str) -> None:
    assert first_help(pod) == told


def test_a_misspelt_toleration_is_told_first() -> None:
    pod = make_pod().toleration("dedicated", value="bach", effect="NoSchedule").build()
    assert first_help(pod, TAINTED) == (
        "correct dedicated=bach to dedicated=batch, a taint of nodes, in the pod's tolerations"
    )


def test_a_toleration_with_another_value_means_the_only_value_that_taints_of_its_key_have() -> None:
    pod = make_pod().toleration("dedicated", value="yes", effect="NoSchedule").build()
    assert first_help(pod, TAINTED) == (
        "correct dedicated=yes to dedicated=batch, a taint of nodes, in the pod's tolerations"
    )


@pytest.mark.parametrize("bound", ["3", "7"])
def test_the_bound_of_a_comparison_is_not_misspelt_and_tolerates_nothing_without_its_gate(bound: str) -> None:
    node = make_node("n3").capacity(cpu=8, memory="16Gi", pods=10).taint("level", value="5").build()
    pod = make_pod().toleration("level", operator="Gt", value=bound, effect="NoSchedule").build()
    assert first_help(pod, node) == "tolerate level=5:NoSchedule"


def test_a_correction_of_a_toleration_leaves_comparisons_with_the_same_value_as_they_are() -> None:
    pod = make_pod().toleration("level", value="4").toleration("level", operator="Gt", value="4").build()
    equal, greater = RespellToleration("level", "4", "level", "5").changed(pod).spec.tolerations
    assert (equal.value, greater.value) == ("5", "4")


def test_a_name_that_is_close_to_none_is_no_typo() -> None:
    assert not first_help(make_pod().node_selector(disk="tape").build()).startswith("correct")


def test_a_correction_that_the_api_server_would_refuse_is_none() -> None:
    pod = make_pod().spread("zone", {"app": "web"}).spread("zoen", {"app": "web"}).build()
    assert not first_help(pod).startswith("correct"), "the pod would have two constraints of one key"


def test_a_place_that_is_kept_for_the_control_plane_is_offered_last() -> None:
    pod = make_pod().requests(cpu=6).build()
    full = make_pod("full").requests(cpu=4).node("n1").build()
    found = explain_pending(what_if([NODES[0], CONTROL], full, pod))
    ((kind,),) = [why.kinds for why in found.whys]
    assert "tolerate" not in str(kind.remedies[0])
    last = (
        "tolerate node-role.kubernetes.io/control-plane:NoSchedule; such nodes are kept for the control plane"
    )
    assert str(kind.remedies[-1]) == last
