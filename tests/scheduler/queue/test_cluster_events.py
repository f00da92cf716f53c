"""What events are called, which subscription covers which event, and which events an update amounts to."""

from __future__ import annotations

import attrs
import pytest

from kschedfw import make_node, make_pod
from kschedfw.api import FrozenDict, Quantity
from kschedfw.api.containers import ContainerStatus, ResourceRequirements
from kschedfw.api.node import Node, NodeCondition
from kschedfw.api.pod import Pod, PodExtendedResourceClaimStatus, PodResourceClaimStatus, PodStatus
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource
from kschedfw.scheduler.queue import node_change_events, pod_change_events
from kschedfw.scheduler.queue.cluster_events import (
    ASSIGNED_POD_ADD,
    FORCE_ACTIVATE,
    NODE_ADD,
    UNSCHEDULABLE_TIMEOUT,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_UPDATE,
)


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (NODE_ADD, "NodeAdd"),
        (ASSIGNED_POD_ADD, "AssignedPodAdd"),
        (UNSCHEDULED_POD_UPDATE, "UnschedulablePodUpdate"),
        (ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT), "NodeUpdateNodeTaint"),
        (
            ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_DECLARED_FEATURE),
            "NodeUpdateNodeDeclaredFeature",
        ),
        (
            ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
            "PodUpdatePodSchedulingGatesEliminated",
        ),
        (ClusterEvent(EventResource.CSI_NODE, ActionType.DELETE), "storage.k8s.io/CSINodeDelete"),
        (ClusterEvent(EventResource.WILDCARD, ActionType.ALL), "*All"),
        (UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (FORCE_ACTIVATE, "ForceActivate"),
    ],
)
def test_labels_are_those_of_kube_schedulers_metrics(event: ClusterEvent, label: str) -> None:
    assert event.label == label


NODE, POD, WILDCARD = EventResource.NODE, EventResource.POD, EventResource.WILDCARD
ADD, DELETE, UPDATE, ALL = ActionType.ADD, ActionType.DELETE, ActionType.UPDATE, ActionType.ALL
LABEL = ActionType.UPDATE_NODE_LABEL


@pytest.mark.parametrize(
    ("resource", "action", "event", "covered"),
    [
        (NODE, ADD, NODE_ADD, True),
        (NODE, ADD | LABEL, NODE_ADD, True),
        (NODE, LABEL, NODE_ADD, False),
        (POD, ADD, NODE_ADD, False),
        (NODE, UPDATE, ClusterEvent(NODE, LABEL), True),
        (NODE, LABEL, ClusterEvent(NODE, UPDATE), False),
        (NODE, ALL, ClusterEvent(NODE, UPDATE), True),
        (POD, ADD, ASSIGNED_POD_ADD, True),
        (POD, ADD, UNSCHEDULED_POD_ADD, True),
        (EventResource.ASSIGNED_POD, ADD, ASSIGNED_POD_ADD, True),
        (EventResource.ASSIGNED_POD, ADD, UNSCHEDULED_POD_ADD, False),
        (WILDCARD, ADD, NODE_ADD, True),
        (WILDCARD, DELETE, NODE_ADD, False),
        (WILDCARD, ALL, UNSCHEDULABLE_TIMEOUT, True),
        (NODE, ALL, UNSCHEDULABLE_TIMEOUT, False),
        (EventResource.UNSCHEDULED_POD, UPDATE, UNSCHEDULED_POD_UPDATE, True),
        (EventResource.UNSCHEDULED_POD, ActionType.UPDATE_OTHER, UNSCHEDULED_POD_UPDATE, True),
        (POD, ActionType.UPDATE_OTHER, UNSCHEDULED_POD_UPDATE, True),
        (POD, ActionType.UPDATE_POD_LABEL, UNSCHEDULED_POD_UPDATE, False),
        (EventResource.ASSIGNED_POD, ActionType.UPDATE_OTHER, UNSCHEDULED_POD_UPDATE, False),
        (EventResource.TARGET_POD, ActionType.UPDATE_OTHER, UNSCHEDULED_POD_UPDATE, True),
        (EventResource.TARGET_POD, ActionType.UPDATE_POD_LABEL, UNSCHEDULED_POD_UPDATE, False),
        (EventResource.TARGET_POD, ALL, UNSCHEDULED_POD_ADD, False),
        (EventResource.TARGET_POD, ALL, ASSIGNED_POD_ADD, False),
    ],
)
def test_a_subscription_covers_what_is_as_precise_or_more(
    resource: EventResource, action: ActionType, event: ClusterEvent, covered: bool
) -> None:
    assert ClusterEvent(resource, action).matches(event) is covered


@pytest.mark.parametrize(
    ("resource", "action", "can_happen"),
    [
        (NODE, ADD, True),
        (NODE, ActionType.UPDATE_OTHER, False),
        (NODE, ActionType.UPDATE_POD_LABEL, False),
        (NODE, ActionType.UPDATE_POD_LABEL | LABEL, True),
        (POD, LABEL, False),
        (POD, ActionType.UPDATE_OTHER, True),
        (EventResource.CSI_NODE, LABEL, False),
        (EventResource.CSI_NODE, UPDATE, True),
        (EventResource.CSI_NODE, ActionType.UPDATE_OTHER, True),
        (EventResource.CSI_NODE, ActionType(0), False),
        (WILDCARD, LABEL, True),
        (EventResource.TARGET_POD, ADD | DELETE, False),
        (EventResource.TARGET_POD, UPDATE, True),
    ],
)
def test_no_subscription_is_possible_to_what_never_happens(
    resource: EventResource, action: ActionType, can_happen: bool
) -> None:
    assert ClusterEvent(resource, action).can_happen is can_happen


POD_BASE = (
    make_pod().labels(app="web").requests({"cpu": "1", "example.com/gpu": 1}).scheduling_gate("a").build()
)


def test_a_claim_for_extended_resources_that_the_status_names_is_a_generated_one() -> None:
    told = PodExtendedResourceClaimStatus(resource_claim_name="c")
    status = attrs.evolve(POD_BASE.status, extended_resource_claim_status=told)
    assert pod_actions(POD_BASE.with_status(status)) == [ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM]


def pod_actions(new: Pod, old: Pod = POD_BASE) -> list[ActionType]:
    events = pod_change_events(old, new)
    assert {event.resource for event in events} == {
        EventResource.ASSIGNED_POD if new.node_name else EventResource.UNSCHEDULED_POD
    }
    return [event.action for event in events]


@pytest.mark.parametrize(
    ("new", "actions"),
    [
        (
            attrs.evolve(POD_BASE, metadata=make_pod().labels(app="db").build().metadata),
            [ActionType.UPDATE_POD_LABEL],
        ),
        (
            attrs.evolve(POD_BASE, spec=attrs.evolve(POD_BASE.spec, scheduling_gates=())),
            [ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED],
        ),
        (
            attrs.evolve(
                POD_BASE,
                spec=attrs.evolve(
                    POD_BASE.spec, tolerations=make_pod().toleration("x").build().spec.tolerations
                ),
            ),
            [ActionType.UPDATE_POD_TOLERATION],
        ),
        (POD_BASE, [ActionType.UPDATE_OTHER]),
        (
            make_pod()
            .labels(app="web")
            .requests({"cpu": "1", "example.com/gpu": 1})
            .scheduling_gate("a")
            .annotations({"a": "b"})
            .build(),
            [ActionType.UPDATE_OTHER],
        ),
        (POD_BASE.bound_to("n"), [ActionType.UPDATE_OTHER]),
        (make_pod().scheduling_gate("b").labels(app="web").build(), [ActionType.UPDATE_POD_SCALE_DOWN]),
        (
            make_pod().build(),
            [
                ActionType.UPDATE_POD_LABEL,
                ActionType.UPDATE_POD_SCALE_DOWN,
                ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            ],
        ),
    ],
)
def test_an_update_of_a_pod_is_named_as_precisely_as_can_be(new: Pod, actions: list[ActionType]) -> None:
    assert pod_actions(new) == actions


def test_claims_that_were_made_or_unmade_for_a_pod_are_an_update_of_its_claims() -> None:
    def with_claims(*names: str) -> Pod:
        statuses = tuple(PodResourceClaimStatus("c", name) for name in names)
        return attrs.evolve(POD_BASE, status=PodStatus(resource_claim_statuses=statuses))

    for old, new in (("a", "b"), ("b", "a")):
        assert pod_actions(with_claims(*new), with_claims(*old)) == [
            ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM
        ]
    assert pod_actions(with_claims(), with_claims("a")) == [ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM]


@pytest.mark.parametrize("resource", ["cpu", "memory", "ephemeral-storage", "example.com/gpu"])
def test_less_of_any_resource_is_a_scale_down_and_more_is_not(resource: str) -> None:
    much, little = (make_pod().requests({resource: amount}).build() for amount in (2, 1))
    assert pod_actions(little, much) == [ActionType.UPDATE_POD_SCALE_DOWN]
    assert pod_actions(much, little) == [ActionType.UPDATE_OTHER]


def test_a_resource_that_is_no_longer_named_is_a_scale_down_even_if_it_was_zero() -> None:
    with_none, without = make_pod().requests(cpu=1, memory=0).build(), make_pod().requests(cpu=1).build()
    assert pod_actions(without, with_none) == [ActionType.UPDATE_POD_SCALE_DOWN]
    assert pod_actions(with_none, without) == [ActionType.UPDATE_OTHER]


def test_a_resize_that_is_over_is_a_scale_down_although_the_spec_stays() -> None:
    done = make_pod().requests(cpu=1).build()
    more = ResourceRequirements(requests=FrozenDict(cpu=Quantity.parse(2)))
    running = ContainerStatus(done.spec.containers[0].name, resources=more)
    under_way = done.with_status(attrs.evolve(done.status, container_statuses=(running,)))
    assert pod_actions(done, under_way) == [ActionType.UPDATE_POD_SCALE_DOWN]


def with_condition(node: Node, condition: NodeCondition) -> Node:
    return attrs.evolve(node, status=attrs.evolve(node.status, conditions=(condition,)))


NODE_BASE = make_node("n").labels(a="b").build()
READY = with_condition(NODE_BASE, NodeCondition("Ready", "True", "KubeletReady", "first"))


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (NODE_BASE, NODE_BASE, []),
        (NODE_BASE, make_node("n").labels(a="c").build(), [ActionType.UPDATE_NODE_LABEL]),
        (
            NODE_BASE,
            make_node("n").labels(a="b").annotations({"x": "y"}).build(),
            [ActionType.UPDATE_NODE_ANNOTATION],
        ),
        (
            NODE_BASE,
            make_node("n").labels(a="b").capacity(cpu=1).build(),
            [ActionType.UPDATE_NODE_ALLOCATABLE],
        ),
        (NODE_BASE, make_node("n").labels(a="b").taint("t").build(), [ActionType.UPDATE_NODE_TAINT]),
        (
            NODE_BASE,
            make_node("n").labels(a="b").declared_features("New").build(),
            [ActionType.UPDATE_NODE_DECLARED_FEATURE],
        ),
        (make_node("n").unschedulable().build(), make_node("n").build(), [ActionType.UPDATE_NODE_TAINT]),
        (make_node("n").build(), make_node("n").unschedulable().build(), []),
        (NODE_BASE, READY, [ActionType.UPDATE_NODE_CONDITION]),
        (READY, with_condition(READY, NodeCondition("Ready", "True", "KubeletReady", "again")), []),
        (
            NODE_BASE,
            make_node("n").taint("t").build(),
            [ActionType.UPDATE_NODE_TAINT, ActionType.UPDATE_NODE_LABEL],
        ),
    ],
)
def test_an_update_of_a_node_is_what_plugins_may_care_about(
    old: Node, new: Node, actions: list[ActionType]
) -> None:
    assert node_change_events(old, new) == [ClusterEvent(EventResource.NODE, action) for action in actions]


def test_fields_of_an_event_are_checked_when_it_is_made() -> None:
    with pytest.raises(TypeError, match=r"resource: expected an EventResource or a CustomKind, found 'Node'"):
        ClusterEvent("Node", ActionType.ADD)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"action: expected an ActionType, found 1"):
        ClusterEvent(EventResource.NODE, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"hint: expected a function of \(pod, old, new\), found 'queue'"):
        ClusterEvent(EventResource.NODE, ActionType.ADD, "queue")  # type: ignore[arg-type]
