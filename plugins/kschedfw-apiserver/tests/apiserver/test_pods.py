"""What can be done with pods alone: binding, status, eviction."""

from __future__ import annotations

import pytest
from apiserver.calling import PODS, Client, pod
from kschedfw_apiserver import ApiServer

from kschedfw.api.objects import object_from_manifest


def bind(api: Client, name: str = "web", node: str = "n1", **metadata: object) -> tuple[int, str]:
    target = {"kind": "Node", "name": node}
    code, said = api(
        "POST", f"{api.pods}/{name}/binding", {"metadata": {"name": name, **metadata}, "target": target}
    )
    return code, said.get("message", "")


@pytest.mark.parametrize("spec", [5, [], {"containers": 5}, {"containers": [{"resources": []}]}])
def test_what_is_no_pod_leaves_the_server_as_it_is(call: Client, spec: object) -> None:
    code, said = call("POST", PODS, {"metadata": {"name": "web"}, "spec": spec})
    assert (code >= 400, said["kind"]) == (True, "Status")
    assert call("POST", PODS, pod())[0] == 201


class TestBinding:
    def test_puts_the_pod_on_the_node(self, api: Client) -> None:
        api("POST", api.pods, pod())
        assert bind(api, annotations={"a": "b"}) == (201, "")
        _, found = api("GET", f"{api.pods}/web")
        assert found["spec"]["nodeName"] == "n1"
        assert found["metadata"]["annotations"]["a"] == "b"
        (condition,) = found["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
        assert condition["lastTransitionTime"]

    def test_happens_once(self, api: Client) -> None:
        api("POST", api.pods, pod())
        bind(api)
        refused = (
            'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"'
        )
        assert [bind(api, node=node) for node in ("n1", "n2")] == [(409, refused)] * 2

    def test_of_pods_that_cannot_be_bound(self, api: Client) -> None:
        api("POST", api.pods, pod("gated", schedulingGates=[{"name": "example.com/quota"}]))
        api("POST", api.pods, pod("ending", nodeName="n1"))
        api("POST", api.pods, pod("other"))
        api("DELETE", f"{api.pods}/ending")
        prefix = "Operation cannot be fulfilled on pods"
        assert (
            bind(api, "gated")[1]
            == f'{prefix}/binding "gated": pod gated has non-empty .spec.schedulingGates'
        )
        assert bind(api, "ending")[1] == (
            f'{prefix}/binding "ending": pod ending is being deleted, cannot be assigned to a host'
        )
        code, why = bind(api, "other", uid="another")
        assert code == 409
        assert why.startswith(
            f'{prefix} "other": StorageError: invalid object, Code: 4, Key: /registry/pods/'
        )
        assert bind(api, "nobody") == (404, 'pods "nobody" not found')


class TestStatus:
    def patch(self, api: Client, **status: object) -> None:
        path = f"{api.pods}/web/status"
        assert api("PATCH", path, {"status": status}, patch="strategic-merge-patch")[0] == 200

    def test_conditions_are_merged_by_their_types(self, api: Client) -> None:
        api("POST", api.pods, pod())
        for type, status, more in (
            ("PodScheduled", "False", {"message": "no node"}),
            ("DisruptionTarget", "True", {}),
            ("PodScheduled", "False", {"message": "still none"}),
        ):
            self.patch(api, conditions=[{"type": type, "status": status, **more}])
        conditions = api("GET", f"{api.pods}/web")[1]["status"]["conditions"]
        # As with Kubernetes, what a patch brings comes first.
        assert [each["type"] for each in conditions] == ["DisruptionTarget", "PodScheduled"]
        assert conditions[1]["message"] == "still none"

    def test_a_nomination_is_taken_back_by_null(self, api: Client) -> None:
        api("POST", api.pods, pod())
        self.patch(api, nominatedNodeName="n1")
        assert api("GET", f"{api.pods}/web")[1]["status"]["nominatedNodeName"] == "n1"
        self.patch(api, nominatedNodeName=None)
        assert "nominatedNodeName" not in api("GET", f"{api.pods}/web")[1]["status"]


class TestPatches:
    def labels(self, api: Client, body: object, kind: str) -> object:
        api("POST", api.pods, {**pod(), "metadata": {"name": "web", "labels": {"a": "1", "b": "2"}}})
        code, said = api("PATCH", f"{api.pods}/web", body, patch=kind)
        return said["metadata"]["labels"] if code == 200 else (code, said["reason"])

    @pytest.mark.parametrize("kind", ["merge-patch", "strategic-merge-patch"])
    def test_merging_removes_what_is_null(self, api: Client, kind: str) -> None:
        patch = {"metadata": {"labels": {"a": None, "c": "3"}}}
        assert self.labels(api, patch, kind) == {"b": "2", "c": "3"}

    def test_operations(self, api: Client) -> None:
        operations = [
            {"op": "test", "path": "/metadata/labels/a", "value": "1"},
            {"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/c"},
            {"op": "replace", "path": "/metadata/labels/b", "value": "3"},
        ]
        assert self.labels(api, operations, "json-patch") == {"b": "3", "c": "1"}

    def test_a_test_that_fails_leaves_all_as_it_is(self, api: Client) -> None:
        operations = [
            {"op": "remove", "path": "/metadata/labels/a"},
            {"op": "test", "path": "/metadata/labels/b", "value": "3"},
        ]
        assert self.labels(api, operations, "json-patch") == (422, "Invalid")
        assert api("GET", f"{api.pods}/web")[1]["metadata"]["labels"] == {"a": "1", "b": "2"}

    def test_directives(self, api: Client) -> None:
        assert self.labels(
            api, {"metadata": {"labels": {"$patch": "replace", "z": "9"}}}, "strategic-merge-patch"
        ) == {"z": "9"}

    def test_of_an_unknown_kind(self, api: Client) -> None:
        assert self.labels(api, {}, "wild-patch") == (415, "UnsupportedMediaType")


class TestEviction:
    def evict(self, api: Client) -> tuple[int, str]:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
        code, said = api("POST", f"{api.pods}/web/eviction", body)
        causes = (said.get("details") or {}).get("causes") or [{}]
        return code, causes[0].get("message", "")

    def test_deletes_the_pod(self, api: Client) -> None:
        api("POST", api.pods, pod())
        assert self.evict(api) == (201, "")
        assert api("GET", f"{api.pods}/web")[0] == 404

    def test_a_budget_that_nobody_has_worked_on_refuses(self, api: Client) -> None:
        api("POST", api.pods, {**pod(nodeName="n1"), "metadata": {"name": "web", "labels": {"app": "web"}}})
        api("PATCH", f"{api.pods}/web/status", {"status": {"phase": "Running"}}, patch="merge-patch")
        budgets = f"/apis/policy/v1/namespaces/{api.namespace}/poddisruptionbudgets"
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        api("POST", budgets, {"metadata": {"name": "budget"}, "spec": spec})
        assert self.evict(api) == (
            429,
            "The disruption budget budget is still being processed by the server.",
        )

    def test_a_budget_is_spent(self, server: ApiServer, call: Client) -> None:
        spec = {"selector": {"matchLabels": {"app": "web"}}}
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "budget", "namespace": "default"},
            "spec": spec,
            "status": {"disruptionsAllowed": 1},
        }
        server.cluster.add(object_from_manifest(budget))
        for _ in range(2):
            running = {**pod(nodeName="n1"), "metadata": {"name": "web", "labels": {"app": "web"}}}
            call("POST", PODS, running)
            call("PATCH", f"{PODS}/web/status", {"status": {"phase": "Running"}}, patch="merge-patch")
            code, why = self.evict(call)
            if code == 201:
                _, ending = call("GET", f"{PODS}/web")
                assert ending["status"]["conditions"][-1]["reason"] == "EvictionByEvictionAPI"
                call("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
        assert (code, why) == (
            429,
            "The disruption budget budget needs 0 healthy pods and has 0 currently",
        )
