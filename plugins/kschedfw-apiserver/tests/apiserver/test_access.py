"""Who asks, and whether they may."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.calling import PODS, Client, pod
from kschedfw_apiserver import ApiServer, User

from kschedfw.testing.waiting import eventually

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def grant(api: Client, *rules: dict[str, list[str]], name: str = "some") -> None:
    """Give alice these rights in the namespace."""
    where = f"{RBAC}/namespaces/{api.namespace}"
    api("POST", f"{where}/roles", {"metadata": {"name": name}, "rules": list(rules)})
    subject = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": role}
    api("POST", f"{where}/rolebindings", binding)
    group, (resource, _, subresource) = rules[0]["apiGroups"][0], rules[0]["resources"][0].partition("/")
    asked = {"verb": rules[0]["verbs"][0], "group": group, "resource": resource, "subresource": subresource}
    # A real server hears of roles by a watch, which may take it a moment.
    eventually(lambda: is_allowed(api, "alice", namespace=api.namespace, **asked))


def is_allowed(api: Client, user: str, **attributes: str) -> bool:
    """Return whether the user has these rights, as the server tells others."""
    spec = {"user": user, "groups": ["crew"], "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(api("POST", path, {"spec": spec})[1]["status"]["allowed"])


def may(client: Client, **attributes: str) -> bool:
    """Return whether the client's user has these rights, as the server tells the user."""
    review = {"spec": {"resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(client("POST", path, review)[1]["status"]["allowed"])


class TestRights:
    @pytest.mark.parametrize(
        ("method", "path", "message"),
        [
            (
                "GET",
                "/api/v1/nodes",
                'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope',
            ),
            (
                "DELETE",
                "{pods}/web",
                (
                    'pods "web" is forbidden: User "alice" cannot delete resource "pods" in API group "" in '
                    'the namespace "{namespace}"'
                ),
            ),
            (
                "POST",
                "{pods}/web/binding",
                (
                    'pods "web" is forbidden: User "alice" cannot create resource "pods/binding" in API group "" in '
                    'the namespace "{namespace}"'
                ),
            ),
            (
                "PUT",
                "{leases}/lock",
                (
                    'leases.coordination.k8s.io "lock" is forbidden: User "alice" cannot update resource "leases" in '
                    'API group "coordination.k8s.io" in the namespace "{namespace}"'
                ),
            ),
        ],
    )
    def test_nobody_has_any_by_default(self, alice: Client, method: str, path: str, message: str) -> None:
        names = {"pods": alice.pods, "leases": alice.leases, "namespace": alice.namespace}
        code, said = alice(method, path.format(**names), {} if method != "GET" else None)
        assert (code, said["reason"], said["message"]) == (403, "Forbidden", message.format(**names))

    def test_exactly_those_of_the_roles(self, api: Client, alice: Client) -> None:
        grant(
            api,
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "create"]},
            {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": ["lock"],
                "verbs": ["get"],
            },
        )
        assert alice("POST", alice.pods, pod())[0] == 201
        assert alice("GET", alice.pods)[0] == 200
        assert alice("GET", f"{alice.pods}/web")[0] == 403
        assert alice("GET", alice.pods, watch=1, timeoutSeconds=1)[0] == 403
        assert alice("POST", f"{alice.pods}/web/eviction", {"metadata": {"name": "web"}})[0] == 403
        assert alice("GET", f"{alice.leases}/lock")[0] == 404
        assert alice("GET", f"{alice.leases}/other")[0] == 403
        assert alice("GET", "/api/v1/namespaces/default/pods")[0] == 403
        binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}
        assert alice("POST", f"{alice.pods}/web/binding", binding)[0] == 201

    def test_who_asks_is_told_their_rights(self, api: Client, alice: Client) -> None:
        grant(api, {"apiGroups": ["apps"], "resources": ["*"], "verbs": ["*"]})
        where = {"namespace": api.namespace}
        assert may(alice, verb="update", group="apps", resource="deployments", subresource="status", **where)
        assert not may(alice, verb="get", resource="pods", **where)
        assert not may(alice, verb="get", group="apps", resource="deployments")
        assert may(api, verb="anything", group="any", resource="all")

    def test_a_token_that_is_nobodys(self, alice: Client) -> None:
        answer = alice.http.get("/api/v1/nodes", headers={"authorization": "Bearer wrong"})
        assert (answer.status_code, answer.json()["message"]) == (401, "Unauthorized")


class TestReviews:
    def review(self, api: Client, token: str) -> Any:
        return api("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})[1][
            "status"
        ]

    def test_of_tokens(self, api: Client) -> None:
        said = self.review(api, "alices")
        assert (said["authenticated"], said["user"]["username"]) == (True, "alice")
        assert "system:authenticated" in said["user"]["groups"]
        assert not self.review(api, "wrong").get("authenticated")

    def test_of_access(self, api: Client) -> None:
        grant(api, {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})
        assert is_allowed(api, "alice", verb="get", resource="pods", namespace=api.namespace)
        assert not is_allowed(api, "alice", verb="list", resource="pods", namespace=api.namespace)
        assert not is_allowed(api, "bob", verb="get", resource="pods", namespace=api.namespace)

    def test_health_is_everybodys_and_metrics_are_not(self, alice: Client) -> None:
        assert alice.http.get("/readyz").text == "ok"
        answer = alice.http.get("/metrics")
        assert answer.status_code == 403
        assert answer.json()["message"] == 'forbidden: User "alice" cannot get path "/metrics"'


def test_a_service_account_is_bound_by_its_name(server: ApiServer) -> None:
    server.add_user("admins", User("admin", ("system:masters",)))
    server.add_user("robots", User.service_account("kube-system", "scheduler"))
    admin, robot = Client.of(server, "admins"), Client.of(server, "robots")
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
    admin("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "some"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "scheduler", "namespace": "kube-system"}
    binding = {
        "metadata": {"name": "some"},
        "subjects": [subject],
        "roleRef": {"kind": "ClusterRole", "name": "some"},
    }
    admin("POST", f"{RBAC}/clusterrolebindings", binding)
    assert robot("GET", "/api/v1/pods")[0] == 200
    assert robot("GET", "/api/v1/nodes")[0] == 403
    for client in (admin, robot):
        client.close()


def test_the_audit_log_has_every_request(server: ApiServer, call: Client) -> None:
    call("POST", PODS, pod())
    call("GET", f"{PODS}/nobody")
    call("POST", f"{PODS}/web/binding", {"metadata": {"name": "web"}, "target": {"name": "n1"}})
    call("GET", "/version")
    assert [(each.user, each.verb, each.resource, each.name, each.code) for each in server.audit.events] == [
        ("kubernetes-admin", "create", "pods", "", 201),
        ("kubernetes-admin", "get", "pods", "nobody", 404),
        ("kubernetes-admin", "create", "pods/binding", "web", 201),
        ("kubernetes-admin", "get", "/version", "", 200),
    ]
    assert [each.name for each in server.audit.writes("pods/binding")] == ["web"]
