"""What is counted of pods."""

from __future__ import annotations

import attrs
import pytest
from kschedfw_replay.replaying.measures import Account

from kschedfw import Pod, make_pod
from kschedfw.api import PodCondition

WAITING = make_pod("p").uid("u").build()
REFUSED = PodCondition("PodScheduled", "False", "Unschedulable", "Insufficient cpu")


def told(pod: Pod, nominated: str = "", *conditions: PodCondition) -> Pod:
    status = attrs.evolve(pod.status, nominated_node_name=nominated, conditions=conditions)
    return pod.with_status(status)


def preemptions(*states: Pod) -> int:
    account, before = Account(0.0), None
    for at, state in enumerate(states):
        account.take(float(at), before, state)
        before = state
    return account.measures(float(len(states))).preemptions


@pytest.mark.parametrize("nominated", ["n", ""])
def test_a_nomination_with_a_refusal_is_a_preemption(nominated: str) -> None:
    assert preemptions(WAITING, told(WAITING, nominated, REFUSED)) == bool(nominated)


@pytest.mark.parametrize("conditions", [(), (REFUSED,)])
def test_a_nomination_by_itself_tells_of_a_binding(conditions: tuple[PodCondition, ...]) -> None:
    """kube-scheduler nominates a pod that fits, too, while its volumes and devices are being bound."""
    assert preemptions(told(WAITING, "", *conditions), told(WAITING, "n", *conditions)) == 0
