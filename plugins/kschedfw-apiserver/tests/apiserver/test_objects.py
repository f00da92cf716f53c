"""Objects over HTTP are created, changed and deleted by the API server's rules, and refused in its words."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from apiserver.calling import NODES, Client, lease, names, pod


@pytest.fixture
def node_name() -> str:
    return f"node-{secrets.token_hex(4)}"


class TestCreating:
    def test_twice_is_refused(self, api: Client) -> None:
        api("POST", api.leases, lease())
        code, said = api("POST", api.leases, lease())
        assert (code, said["reason"]) == (409, "AlreadyExists")
        assert said["message"] == 'leases.coordination.k8s.io "lock" already exists'
        assert said["details"] == {"name": "lock", "group": "coordination.k8s.io", "kind": "leases"}

    def test_a_generated_name_is_free(self, api: Client) -> None:
        made = [api("POST", api.leases, {"metadata": {"generateName": "lock-"}})[1] for _ in range(3)]
        assert len({each["metadata"]["name"] for each in made}) == 3
        assert all(each["metadata"]["name"].startswith("lock-") for each in made)

    def test_the_server_gives_uid_and_time(self, api: Client) -> None:
        sent = {"metadata": {"name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z"}}
        _, made = api("POST", api.leases, sent)
        assert made["metadata"]["uid"] != "mine"
        assert made["metadata"]["creationTimestamp"] > "2020"

    def test_the_namespace_has_to_exist(self, api: Client) -> None:
        code, said = api("POST", "/api/v1/namespaces/nowhere/pods", pod())
        assert (code, said["message"]) == (404, 'namespaces "nowhere" not found')

    def test_what_is_invalid_is_told_with_its_field(self, api: Client) -> None:
        code, said = api("POST", api.pods, pod(containers=[]))
        assert (code, said["reason"]) == (422, "Invalid")
        assert said["message"].startswith('Pod "web" is invalid: spec.containers: Required value')
        assert said["details"]["causes"][0]["field"] == "spec.containers"

    @pytest.mark.parametrize("body", [b"{", b"[1]", b'{"kind": "Node"}', b"[" * 100_000])
    def test_what_is_no_object_of_that_kind(self, api: Client, body: bytes) -> None:
        answer = api.http.post(api.pods, content=body)
        assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")


class TestEvents:
    def test_both_groups_show_the_same_ones(self, api: Client) -> None:
        about = {"kind": "Pod", "namespace": api.namespace, "name": "web"}
        event = {
            "metadata": {"name": "web.1"},
            "regarding": about,
            "note": "no node",
            "type": "Warning",
            "reason": "FailedScheduling",
            "action": "Scheduling",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-1",
        }
        assert api("POST", api.events, event)[0] == 201
        series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}}
        assert api("PATCH", f"{api.events}/web.1", series, patch="strategic-merge-patch")[0] == 200
        code, said = api("PATCH", f"{api.events}/web.1", {"note": "still none"}, patch="merge-patch")
        assert code == 422
        assert said["message"].endswith('message: Invalid value: "still none": field is immutable')
        _, listed = api(
            "GET", f"/api/v1/namespaces/{api.namespace}/events", fieldSelector="involvedObject.name=web"
        )
        (found,) = listed["items"]
        assert (found["message"], found["involvedObject"], found["series"]["count"]) == (
            "no node",
            about,
            2,
        )
        assert found["reportingComponent"] == "default-scheduler"

    @pytest.mark.parametrize("field", ["action", "reason", "eventTime", "reportingInstance"])
    def test_all_of_these_are_required(self, api: Client, field: str) -> None:
        event = {
            "regarding": {"namespace": api.namespace},
            "type": "Normal",
            "reason": "Scheduled",
            "action": "Binding",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-1",
        }
        del event[field]
        code, said = api("POST", api.events, {"metadata": {"name": "e"}, **event})
        assert (code, said["message"]) == (422, f'Event "e" is invalid: {field}: Required value')


class TestChanging:
    def test_with_an_old_version_is_a_conflict(self, api: Client) -> None:
        _, first = api("POST", api.leases, lease(holderIdentity="a"))
        api("PUT", f"{api.leases}/lock", {**first, "spec": {"holderIdentity": "b"}})
        code, said = api("PUT", f"{api.leases}/lock", {**first, "spec": {"holderIdentity": "c"}})
        assert (code, said["reason"]) == (409, "Conflict")
        assert said["message"] == (
            'Operation cannot be fulfilled on leases.coordination.k8s.io "lock": the object has been modified; please '
            "apply your changes to the latest version and try again"
        )

    def test_without_a_version_is_unconditional_but_for_some_kinds(self, api: Client, node_name: str) -> None:
        api("POST", NODES, {"metadata": {"name": node_name}})
        code, _ = api(
            "PUT", f"{NODES}/{node_name}", {"metadata": {"name": node_name}, "spec": {"unschedulable": True}}
        )
        assert code == 200
        api("POST", api.leases, lease())
        code, said = api("PUT", f"{api.leases}/lock", lease())
        assert code == 422
        assert said["message"].endswith(
            "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        )

    def test_to_the_same_is_no_write(self, api: Client) -> None:
        _, first = api("POST", api.leases, lease(holderIdentity="a"))
        _, after = api("PUT", f"{api.leases}/lock", first)
        assert after == first

    def test_status_and_the_rest_are_written_apart(self, api: Client) -> None:
        api("POST", api.pods, pod())
        _, found = api("GET", f"{api.pods}/web")
        found["status"]["phase"] = "Running"
        found["metadata"]["labels"] = {"a": "b"}
        _, after = api("PUT", f"{api.pods}/web", found)
        assert (after["status"]["phase"], after["metadata"]["labels"]) == ("Pending", {"a": "b"})
        after["status"]["phase"], after["spec"]["hostname"] = "Running", "x"
        _, last = api("PUT", f"{api.pods}/web/status", after)
        assert (last["status"]["phase"], "hostname" in last["spec"]) == ("Running", False)

    def test_most_of_a_pods_spec_stays(self, api: Client, node_name: str) -> None:
        api("POST", api.pods, pod())
        code, said = api("PATCH", f"{api.pods}/web", {"spec": {"nodeName": node_name}}, patch="merge-patch")
        assert code == 422
        assert said["message"].startswith(
            'Pod "web" is invalid: spec: Forbidden: pod updates may not change fields other than'
        )

    def test_what_is_not_there(self, api: Client) -> None:
        code, said = api("PUT", f"{api.pods}/web", pod())
        assert (code, said["message"]) == (404, 'pods "web" not found')
        assert api("PUT", f"{api.leases}/lock", lease())[0] == 201  # leases are made by their updates, too

    def test_another_object_of_that_name(self, api: Client) -> None:
        _, made = api("POST", api.pods, pod())
        patch = {"metadata": {"uid": "other"}, "status": {"phase": "Failed"}}
        code, said = api("PATCH", f"{api.pods}/web/status", patch, patch="strategic-merge-patch")
        assert (code, said["reason"]) == (422, "Invalid")
        assert (
            said["message"]
            == 'Pod "web" is invalid: metadata.uid: Invalid value: "other": field is immutable'
        )
        made["metadata"]["uid"] = "other"
        code, said = api("PUT", f"{api.pods}/web", made)
        assert (code, said["reason"]) == (409, "Conflict")
        assert "Precondition failed: UID in precondition: other, UID in object meta: " in said["message"]


class TestDeleting:
    def delete(self, api: Client, path: str, **options: object) -> tuple[int, Any]:
        return api("DELETE", path, options)

    def test_the_status_says_what_is_gone(self, api: Client) -> None:
        _, made = api("POST", api.leases, lease())
        code, said = self.delete(api, f"{api.leases}/lock")
        assert (code, said["status"]) == (200, "Success")
        assert said["details"]["uid"] == made["metadata"]["uid"]

    @pytest.mark.parametrize("condition", ["uid", "resourceVersion"])
    def test_preconditions(self, api: Client, condition: str) -> None:
        _, made = api("POST", api.pods, pod())
        code, said = self.delete(api, f"{api.pods}/web", preconditions={condition: "1"})
        assert (code, said["reason"]) == (409, "Conflict")
        assert 'Operation cannot be fulfilled on Pod "web": the ' in said["message"]
        right = {condition: made["metadata"][condition]}
        assert self.delete(api, f"{api.pods}/web", preconditions=right)[0] == 200

    def test_a_pod_on_a_node_has_time_to_end(self, api: Client, node_name: str) -> None:
        api("POST", api.pods, pod(nodeName=node_name))
        _, ending = self.delete(api, f"{api.pods}/web")
        assert ending["metadata"]["deletionGracePeriodSeconds"] == 30
        assert "deletionTimestamp" in api("GET", f"{api.pods}/web")[1]["metadata"]
        self.delete(api, f"{api.pods}/web", gracePeriodSeconds=0)
        assert api("GET", f"{api.pods}/web")[0] == 404

    def test_finalizers_are_waited_for(self, api: Client, node_name: str) -> None:
        api("POST", NODES, {"metadata": {"name": node_name, "finalizers": ["example.com/mine"]}})
        self.delete(api, f"{NODES}/{node_name}")
        _, ending = api("GET", f"{NODES}/{node_name}")
        assert "deletionTimestamp" in ending["metadata"]
        ending["metadata"]["finalizers"] = []
        api("PUT", f"{NODES}/{node_name}", ending)
        assert api("GET", f"{NODES}/{node_name}")[0] == 404

    def test_all_that_match(self, api: Client) -> None:
        for name in "abc":
            api("POST", api.pods, {**pod(name), "metadata": {"name": name, "labels": {"app": name}}})
        api("DELETE", api.pods, labelSelector="app in (a, b)")
        assert names(api("GET", api.pods)[1]) == ["c"]
