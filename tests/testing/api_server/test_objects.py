"""Objects over HTTP are created, changed and deleted by the API server's rules, and refused in its words."""

from __future__ import annotations

from typing import Any

import pytest

from kschedfw.api.builders import make_node, make_pod
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.testing.api_server import ApiServer
from tests.testing.api_server.calling import LEASES, NODES, PODS, Client, lease, names, pod


class TestOneTruth:
    """Clients and those who have the cluster in memory see the same objects."""

    def test_what_a_client_creates_is_in_the_cluster(self, server: ApiServer, call: Client) -> None:
        code, made = call("POST", PODS, pod(nodeSelector={"disk": "ssd"}))
        found = server.cluster.get(Pod, "default/web")
        assert code == 201
        assert found is not None
        assert found.spec.node_selector == {"disk": "ssd"}
        assert (found.uid, found.metadata.resource_version) == (
            made["metadata"]["uid"],
            made["metadata"]["resourceVersion"],
        )

    def test_what_is_added_to_the_cluster_is_served(self, server: ApiServer, call: Client) -> None:
        server.cluster.add(make_node("n1").labels({"zone": "a"}).build())
        _, listed = call("GET", NODES)
        assert listed["kind"] == "NodeList"
        assert names(listed) == ["n1"]
        assert listed["items"][0]["metadata"]["labels"]["zone"] == "a"

    def test_fields_that_scheduling_has_no_use_for_are_kept(self, server: ApiServer, call: Client) -> None:
        call("POST", PODS, pod(hostname="elsewhere"))
        stored = server.cluster.get(Pod, "default/web")
        assert stored is not None
        server.cluster.bind(stored, "n1")
        _, found = call("GET", f"{PODS}/web")
        assert (found["spec"]["hostname"], found["spec"]["nodeName"]) == ("elsewhere", "n1")

    def test_a_change_of_such_a_field_is_a_change(self, call: Client) -> None:
        _, before = call("POST", NODES, {"metadata": {"name": "n1"}})
        code, after = call(
            "PATCH", f"{NODES}/n1/status", {"status": {"phase": "Running"}}, patch="merge-patch"
        )
        assert code == 200
        assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])
        assert call("GET", f"{NODES}/n1")[1]["status"]["phase"] == "Running"

    def test_deletions_go_both_ways(self, server: ApiServer, call: Client) -> None:
        for name in ("a", "b"):
            server.cluster.add(make_pod(name).build())
        call("DELETE", f"{PODS}/a")
        server.cluster.delete(make_pod("b").build())
        assert server.cluster.list(Pod) == ()
        assert names(call("GET", PODS)[1]) == []

    def test_one_version_counts_all_writes(self, server: ApiServer, call: Client) -> None:
        made = [
            call("POST", PODS, pod())[1],
            call("POST", LEASES, lease())[1],
            call("POST", NODES, {"metadata": {"name": "n1"}})[1],
        ]
        versions = [int(each["metadata"]["resourceVersion"]) for each in made]
        assert versions == list(range(versions[0], versions[0] + 3))
        assert server.cluster.resource_version == versions[-1]


class TestCreating:
    def test_twice_is_refused(self, call: Client) -> None:
        call("POST", LEASES, lease())
        code, said = call("POST", LEASES, lease())
        assert (code, said["reason"]) == (409, "AlreadyExists")
        assert said["message"] == 'leases.coordination.k8s.io "lock" already exists'
        assert said["details"] == {"name": "lock", "group": "coordination.k8s.io", "kind": "leases"}

    def test_a_generated_name_is_free(self, call: Client) -> None:
        made = [call("POST", LEASES, {"metadata": {"generateName": "lock-"}})[1] for _ in range(3)]
        assert len({each["metadata"]["name"] for each in made}) == 3
        assert all(each["metadata"]["name"].startswith("lock-") for each in made)

    def test_the_server_gives_uid_and_time(self, call: Client) -> None:
        sent = {"metadata": {"name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}}
        _, made = call("POST", LEASES, sent)
        assert made["metadata"]["uid"] != "mine"
        assert made["metadata"]["creationTimestamp"] > "2020"

    def test_the_namespace_has_to_exist(self, call: Client) -> None:
        code, said = call("POST", "/api/v1/namespaces/nowhere/pods", pod())
        assert (code, said["message"]) == (404, 'namespaces "nowhere" not found')

    def test_what_is_invalid_is_told_with_its_field(self, call: Client) -> None:
        code, said = call("POST", PODS, pod(containers=[]))
        assert (code, said["reason"]) == (422, "Invalid")
        assert said["message"].startswith('Pod "web" is invalid: spec.containers: Required value')
        assert said["details"]["causes"][0]["field"] == "spec.containers"

    @pytest.mark.parametrize("body", [b"{", b"[1]", b'{"kind": "Node"}', b"[" * 100_000])
    def test_what_is_no_object_of_that_kind(self, call: Client, body: bytes) -> None:
        answer = call.http.post(PODS, content=body)
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")


class TestChanging:
    def test_with_an_old_version_is_a_conflict(self, call: Client) -> None:
        _, first = call("POST", LEASES, lease(holderIdentity="a"))
        call("PUT", f"{LEASES}/lock", {**first, "spec": {"holderIdentity": "b"}})
        code, said = call("PUT", f"{LEASES}/lock", {**first, "spec": {"holderIdentity": "c"}})
        assert (code, said["reason"]) == (409, "Conflict")
        assert said["message"] == (
            'Operation cannot be fulfilled on leases.coordination.k8s.io "lock": the object has been modified; please '
            "apply your changes to the latest version and try again"
        )

    def test_without_a_version_is_unconditional_but_for_some_kinds(self, call: Client) -> None:
        call("POST", NODES, {"metadata": {"name": "n1"}})
        code, _ = call("PUT", f"{NODES}/n1", {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}})
        assert code == 200
        call("POST", LEASES, lease())
        code, said = call("PUT", f"{LEASES}/lock", lease())
        assert code == 422
        assert said["message"].endswith(
            "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        )

    def test_to_the_same_is_no_write(self, call: Client) -> None:
        _, first = call("POST", LEASES, lease(holderIdentity="a"))
        _, after = call("PUT", f"{LEASES}/lock", first)
        assert after == first

    def test_status_and_the_rest_are_written_apart(self, call: Client) -> None:
        call("POST", PODS, pod())
        _, found = call("GET", f"{PODS}/web")
        found["status"]["phase"] = "Running"
        found["metadata"]["labels"] = {"a": "b"}
        _, after = call("PUT", f"{PODS}/web", found)
        assert (after["status"]["phase"], after["metadata"]["labels"]) == ("Pending", {"a": "b"})
        after["status"]["phase"], after["spec"]["hostname"] = "Running", "x"
        _, last = call("PUT", f"{PODS}/web/status", after)
        assert (last["status"]["phase"], "hostname" in last["spec"]) == ("Running", False)

    def test_most_of_a_pods_spec_stays(self, call: Client) -> None:
        call("POST", PODS, pod())
        code, said = call("PATCH", f"{PODS}/web", {"spec": {"nodeName": "n1"}}, patch="merge-patch")
        assert code == 422
        assert said["message"].startswith(
            'Pod "web" is invalid: spec: Forbidden: pod updates may not change fields other than'
        )

    def test_what_is_not_there(self, call: Client) -> None:
        code, said = call("PUT", f"{LEASES}/lock", lease())
        assert (code, said["message"]) == (404, 'leases.coordination.k8s.io "lock" not found')

    def test_another_object_of_that_name(self, call: Client) -> None:
        _, made = call("POST", PODS, pod())
        patch = {"metadata": {"uid": "other"}, "status": {"phase": "Failed"}}
        code, said = call("PATCH", f"{PODS}/web/status", patch, patch="strategic-merge-patch")
        assert (code, said["reason"]) == (422, "Invalid")
        assert (
            said["message"]
            == 'Pod "web" is invalid: metadata.uid: Invalid value: "other": field is immutable'
        )
        made["metadata"]["uid"] = "other"
        code, said = call("PUT", f"{PODS}/web", made)
        assert (code, said["reason"]) == (409, "Conflict")
        assert "Precondition failed: UID in precondition: other, UID in object meta: " in said["message"]


class TestDeleting:
    def delete(self, call: Client, path: str, **options: object) -> tuple[int, Any]:
        return call("DELETE", path, options)

    def test_the_status_says_what_is_gone(self, call: Client) -> None:
        _, made = call("POST", LEASES, lease())
        code, said = self.delete(call, f"{LEASES}/lock")
        assert (code, said["status"]) == (200, "Success")
        assert said["details"]["uid"] == made["metadata"]["uid"]

    @pytest.mark.parametrize("condition", ["uid", "resourceVersion"])
    def test_preconditions(self, call: Client, condition: str) -> None:
        _, made = call("POST", PODS, pod())
        code, said = self.delete(call, f"{PODS}/web", preconditions={condition: "1"})
        assert (code, said["reason"]) == (409, "Conflict")
        assert 'Operation cannot be fulfilled on Pod "web": the ' in said["message"]
        right = {condition: made["metadata"][condition]}
        assert self.delete(call, f"{PODS}/web", preconditions=right)[0] == 200

    def test_a_pod_on_a_node_has_time_to_end(self, call: Client) -> None:
        call("POST", PODS, pod(nodeName="n1"))
        _, ending = self.delete(call, f"{PODS}/web")
        assert ending["metadata"]["deletionGracePeriodSeconds"] == 30
        assert "deletionTimestamp" in call("GET", f"{PODS}/web")[1]["metadata"]
        self.delete(call, f"{PODS}/web", gracePeriodSeconds=0)
        assert call("GET", f"{PODS}/web")[0] == 404

    def test_finalizers_are_waited_for(self, server: ApiServer, call: Client) -> None:
        call("POST", NODES, {"metadata": {"name": "n1", "finalizers": ["example.com/mine"]}})
        self.delete(call, f"{NODES}/n1")
        _, ending = call("GET", f"{NODES}/n1")
        assert "deletionTimestamp" in ending["metadata"]
        ending["metadata"]["finalizers"] = []
        call("PUT", f"{NODES}/n1", ending)
        assert call("GET", f"{NODES}/n1")[0] == 404
        assert server.cluster.list(Node) == ()

    def test_all_that_match(self, call: Client) -> None:
        for name in "abc":
            call("POST", PODS, {**pod(name), "metadata": {"name": name, "labels": {"app": name}}})
        call("DELETE", PODS, labelSelector="app in (a, b)")
        assert names(call("GET", PODS)[1]) == ["c"]
