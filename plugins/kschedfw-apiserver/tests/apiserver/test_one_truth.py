"""Clients and those who have the cluster in memory see the same objects."""

from __future__ import annotations

from apiserver.calling import LEASES, NODES, PODS, Client, lease, names, pod
from kschedfw_apiserver import ApiServer

from kschedfw.api.builders import make_node, make_pod
from kschedfw.api.pod import Pod


def test_what_a_client_creates_is_in_the_cluster(server: ApiServer, call: Client) -> None:
    code, made = call("POST", PODS, pod(nodeSelector={"disk": "ssd"}))
    found = server.cluster.get(Pod, "default/web")
    assert code == 201
    assert found is not None
    assert found.spec.node_selector == {"disk": "ssd"}
    assert (found.uid, found.metadata.resource_version) == (
        made["metadata"]["uid"],
        made["metadata"]["resourceVersion"],
    )


def test_what_is_added_to_the_cluster_is_served(server: ApiServer, call: Client) -> None:
    server.cluster.add(make_node("n1").labels({"zone": "a"}).build())
    _, listed = call("GET", NODES)
    assert listed["kind"] == "NodeList"
    assert names(listed) == ["n1"]
    assert listed["items"][0]["metadata"]["labels"]["zone"] == "a"


def test_fields_that_scheduling_has_no_use_for_are_kept(server: ApiServer, call: Client) -> None:
    call("POST", PODS, pod(hostname="elsewhere"))
    stored = server.cluster.get(Pod, "default/web")
    assert stored is not None
    server.cluster.bind(stored, "n1")
    _, found = call("GET", f"{PODS}/web")
    assert (found["spec"]["hostname"], found["spec"]["nodeName"]) == ("elsewhere", "n1")


def test_a_change_of_such_a_field_is_a_change(call: Client) -> None:
    _, before = call("POST", NODES, {"metadata": {"name": "n1"}})
    code, after = call("PATCH", f"{NODES}/n1/status", {"status": {"phase": "Running"}}, patch="merge-patch")
    assert code == 200
    assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
    assert call("GET", f"{NODES}/n1")[1]["status"]["phase"] == "Running"


def test_deletions_go_both_ways(server: ApiServer, call: Client) -> None:
    for name in ("a", "b"):
        server.cluster.add(make_pod(name).build())
    call("DELETE", f"{PODS}/a")
    server.cluster.delete(make_pod("b").build())
    assert server.cluster.list(Pod) == ()
    assert names(call("GET", PODS)[1]) == []


def test_one_version_counts_all_writes(server: ApiServer, call: Client) -> None:
    made = [
        call("POST", PODS, pod())[1],
        call("POST", LEASES, lease())[1],
        call("POST", NODES, {"metadata": {"name": "n1"}})[1],
    ]
    versions = [int(each["metadata"]["resourceVersion"]) for each in made]
    assert versions == list(range(versions[0], versions[0] + 3))
    assert server.cluster.resource_version == versions[-1]
