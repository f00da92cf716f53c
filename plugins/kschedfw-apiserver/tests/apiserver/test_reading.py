"""Lists and watches show what there is, and every change of it."""

from __future__ import annotations

from typing import Any

import pytest
from apiserver.calling import PODS, Client, names, pod
from kschedfw_apiserver import ApiServer

pytestmark = pytest.mark.slow


@pytest.fixture
def three(api: Client) -> list[Any]:
    """Pods a, b and c, each with its name as a label."""
    return [api("POST", api.pods, labelled(name))[1] for name in "abc"]


def labelled(name: str, **labels: str) -> Any:
    return {**pod(name), "metadata": {"name": name, "labels": {"app": name, **labels}}}


def told(events: list[Any]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def version_of(listed: Any) -> str:
    return str(listed["metadata"]["resourceVersion"])


@pytest.mark.usefixtures("three")
class TestLists:
    def test_a_list_says_what_it_is_and_its_items_do_not(self, api: Client) -> None:
        _, listed = api("GET", api.pods)
        assert (listed["kind"], listed["apiVersion"], names(listed)) == ("PodList", "v1", ["a", "b", "c"])
        assert "kind" not in listed["items"][0]

    def test_pages_show_one_moment(self, api: Client) -> None:
        _, first = api("GET", api.pods, limit=2)
        assert (names(first), first["metadata"]["remainingItemCount"]) == (["a", "b"], 1)
        api("DELETE", f"{api.pods}/c")
        _, second = api("GET", api.pods, limit=2, **{"continue": first["metadata"]["continue"]})
        assert names(second) == ["c"]
        assert version_of(second) == version_of(first)
        assert "continue" not in second["metadata"]

    def test_an_earlier_version(self, api: Client) -> None:
        _, before = api("GET", api.pods)
        api("DELETE", f"{api.pods}/a")
        exactly = {"resourceVersion": version_of(before), "resourceVersionMatch": "Exact"}
        assert names(api("GET", api.pods, **exactly)[1]) == ["a", "b", "c"]
        assert names(api("GET", api.pods, resourceVersion=version_of(before))[1]) == ["b", "c"]

    @pytest.mark.parametrize(
        ("selector", "selected"),
        [
            ({"labelSelector": "app in (a,b),app!=b"}, ["a"]),
            ({"labelSelector": "!app"}, []),
            ({"fieldSelector": "metadata.name!=b"}, ["a", "c"]),
            (
                {"fieldSelector": "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"},
                ["a", "b", "c"],
            ),
            ({"fieldSelector": "spec.nodeName=n1"}, []),
            ({"fieldSelector": "spec.schedulerName=default-scheduler", "labelSelector": "app=c"}, ["c"]),
        ],
    )
    def test_selectors(self, api: Client, selector: dict[str, str], selected: list[str]) -> None:
        assert names(api("GET", api.pods, **selector)[1]) == selected

    @pytest.mark.parametrize(
        ("query", "code", "message"),
        [
            ({"fieldSelector": "spec.color=red"}, 400, "field label not supported: spec.color"),
            ({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
            (
                {"resourceVersionMatch": "Exact"},
                422,
                (
                    'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is '
                    "forbidden unless resourceVersion is provided"
                ),
            ),
        ],
    )
    def test_refusals(self, api: Client, query: dict[str, str], code: int, message: str) -> None:
        answered, said = api("GET", api.pods, **query)
        assert (answered, said["message"]) == (code, message)

    def test_of_the_future(self, api: Client) -> None:
        code, said = api("GET", api.pods, resourceVersion=10**9)
        assert (code, said["reason"]) == (504, "Timeout")
        assert said["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"

    @pytest.mark.parametrize(
        ("method", "path", "code"),
        [
            ("GET", "/api/v1/namespaces/default/potatoes", 404),
            ("PUT", "/api/v1/namespaces/default/pods", 405),
            ("GET", "/api/v1/namespaces/default/pods/a/potato", 404),
        ],
    )
    def test_what_is_not_served(self, api: Client, method: str, path: str, code: int) -> None:
        answered, said = api(method, path, {} if method == "PUT" else None)
        assert (answered, said["kind"], said["code"]) == (code, "Status", code)


class TestWatches:
    def watch(self, api: Client, since: Any, **query: object) -> list[tuple[str, str]]:
        return told(api.watch(api.pods, resourceVersion=version_of(since), timeoutSeconds=1, **query))

    def test_goes_on_from_a_version(self, api: Client, three: list[Any]) -> None:
        _, listed = api("GET", api.pods)
        api("POST", api.pods, pod("d"))
        api("PATCH", f"{api.pods}/a", {"metadata": {"labels": {"x": "y"}}}, patch="merge-patch")
        assert self.watch(api, listed) == [("ADDED", "d"), ("MODIFIED", "a")]
        assert self.watch(api, three[1])[0] == ("ADDED", "c")

    def test_a_pod_that_goes_is_told_to_end_first(self, api: Client, three: list[Any]) -> None:
        _, listed = api("GET", api.pods)
        api("DELETE", f"{api.pods}/a")
        events = api.watch(api.pods, resourceVersion=version_of(listed), timeoutSeconds=1)
        assert told(events) == [("MODIFIED", "a"), ("DELETED", "a")]
        last = [event["object"]["metadata"] for event in events]
        assert [each["deletionGracePeriodSeconds"] for each in last] == [0, 0]
        assert int(last[0]["resourceVersion"]) < int(last[1]["resourceVersion"])

    def test_without_a_version_begins_with_what_there_is(self, api: Client, three: list[Any]) -> None:
        assert told(api.watch(api.pods, timeoutSeconds=1)) == [("ADDED", each) for each in "abc"]

    def test_a_selected_object_comes_and_goes(self, api: Client, three: list[Any]) -> None:
        _, listed = api("GET", api.pods)
        for value in ("b", "a", None):
            patch = {"metadata": {"labels": {"app": value}}}
            api("PATCH", f"{api.pods}/a", patch, patch="merge-patch")
        seen = self.watch(api, listed, labelSelector="app=a")
        assert seen == [("DELETED", "a"), ("ADDED", "a"), ("DELETED", "a")]

    def test_initial_events_end_with_a_bookmark(self, api: Client, three: list[Any]) -> None:
        events = api.watch(
            api.pods,
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            allowWatchBookmarks="true",
            timeoutSeconds=1,
        )
        assert told(events)[:4] == [*(("ADDED", each) for each in "abc"), ("BOOKMARK", "")]
        annotations = events[3]["object"]["metadata"]["annotations"]
        assert annotations == {"k8s.io/initial-events-end": "true"}

    def test_of_another_namespace_nothing_is_told(self, api: Client, three: list[Any]) -> None:
        _, listed = api("GET", api.pods)
        api("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "x-"}})
        assert self.watch(api, listed) == []


class TestForgetting:
    """What only the server for tests can be told to do."""

    def test_a_watch_from_before_is_told_so(self, server: ApiServer, call: Client) -> None:
        _, listed = call("GET", PODS)
        call("POST", PODS, pod())
        server.compact()
        (event,) = call.watch(PODS, resourceVersion=version_of(listed), timeoutSeconds=1)
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
            "ERROR",
            410,
            "Expired",
        )
        assert event["object"]["message"].startswith("too old resource version: ")

    def test_so_is_the_reader_of_pages(self, server: ApiServer, call: Client) -> None:
        for name in "ab":
            call("POST", PODS, pod(name))
        _, first = call("GET", PODS, limit=1)
        server.compact()
        code, said = call("GET", PODS, limit=1, **{"continue": first["metadata"]["continue"]})
        assert (code, said["reason"]) == (410, "Expired")
        assert said["message"].startswith("The provided continue parameter is too old")

    def test_history_is_bounded(self) -> None:
        with ApiServer(history=5) as server:
            client = Client.of(server)
            _, listed = client("GET", PODS)
            for number in range(12):
                client("POST", PODS, pod(f"p{number}"))
            (event,) = client.watch(PODS, resourceVersion=version_of(listed), timeoutSeconds=1)
            assert event["object"]["code"] == 410
            client.close()
