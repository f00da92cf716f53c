"""NodePorts: host ports that are free."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.objects import pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.framework.events import QueueingHint
from kschedfw.framework.status import Code
from kschedfw.plugins.node_ports import NodePorts
from kschedfw.testing import FrameworkHarness

Port = tuple[str, str, int]
NODE = make_node("node").build()


def wanting(*ports: Port, node: str = "", uid: str = "new") -> Pod:
    pod = make_pod(uid).uid(uid)
    for host_ip, protocol, port in ports:
        pod.host_port(port, protocol=protocol, host_ip=host_ip)
    return pod.node(node).build() if node else pod.build()


def fits(new: Port, *taken: Port) -> bool:
    harness = FrameworkHarness(NodePorts, nodes=[NODE], pods=[wanting(*taken, node="node", uid="old")])
    return harness.filter(wanting(new))["node"].is_success


def test_a_pod_without_host_ports_is_none_of_its_business() -> None:
    _, status = FrameworkHarness(NodePorts, nodes=[NODE]).pre_filter(make_pod().build())
    assert not status.is_rejected
    harness = FrameworkHarness(NodePorts, nodes=[NODE])
    harness.pre_filter(make_pod().build())
    assert harness.state.skip_filter_plugins == {"NodePorts"}


def test_a_taken_port_is_a_refusal_that_preemption_may_change() -> None:
    old = wanting(("", "TCP", 80), node="node", uid="old")
    status = FrameworkHarness(NodePorts, nodes=[NODE], pods=[old]).filter(wanting(("", "TCP", 80)))["node"]
    assert status.code is Code.UNSCHEDULABLE
    assert status.reasons == ("node(s) didn't have free ports for the requested pod ports",)


@pytest.mark.parametrize(
    ("new", "taken", "free"),
    [
        (("", "TCP", 80), ("", "TCP", 81), True),
        (("", "TCP", 80), ("", "UDP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), False),
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("", "UDP", 80), ("10.0.0.1", "TCP", 80), True),
    ],
)
def test_ports_meet_on_address_protocol_and_number(new: Port, taken: Port, free: bool) -> None:
    assert fits(new, taken) is free


def test_one_conflict_among_several_ports_is_enough() -> None:
    assert not fits(("", "TCP", 80), ("", "TCP", 79), ("", "TCP", 80))


def with_init_container(*, sidecar: bool, node: str = "") -> Pod:
    init = {"name": "init", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}
    if sidecar:
        init["restartPolicy"] = "Always"
    spec = {"containers": [{"name": "main", "image": "i"}], "initContainers": [init]}
    return pod_from_manifest({"metadata": {"name": "p", "uid": "u"}, "spec": {**spec, "nodeName": node}})


def test_ports_of_sidecars_count_and_those_of_other_init_containers_do_not() -> None:
    taken = wanting(("", "TCP", 80), node="node", uid="old")
    harness = FrameworkHarness(NodePorts, nodes=[NODE], pods=[taken])
    assert not harness.filter(with_init_container(sidecar=True))["node"].is_success
    assert harness.filter(with_init_container(sidecar=False))["node"].is_success
    harness = FrameworkHarness(NodePorts, nodes=[NODE], pods=[with_init_container(sidecar=True, node="node")])
    assert not harness.filter(wanting(("", "TCP", 80)))["node"].is_success


PORTS = st.tuples(
    st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from([80, 81]),
)


@given(PORTS, PORTS)
def test_conflicts_are_mutual(first: Port, second: Port) -> None:
    assert fits(first, second) == fits(second, first)


def test_only_the_deletion_of_a_pod_that_held_a_wanted_port_helps() -> None:
    deletion, node_added = FrameworkHarness(NodePorts).framework.events_to_register()["NodePorts"]
    assert node_added.hint is None
    assert deletion.hint is not None
    pod = wanting(("", "TCP", 80))
    assert deletion.hint(pod, wanting(("", "TCP", 80), node="n"), None) is QueueingHint.QUEUE
    assert deletion.hint(pod, wanting(("", "TCP", 81), node="n"), None) is QueueingHint.SKIP
    assert deletion.hint(pod, wanting(("", "TCP", 80)), None) is QueueingHint.SKIP
    nominated = make_pod().host_port(80).nominated_node("n").build()
    assert deletion.hint(pod, nominated, None) is QueueingHint.QUEUE
