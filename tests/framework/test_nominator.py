"""Which pods are nominated to which node."""

from __future__ import annotations

import pytest

from kschedfw import make_pod
from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nominator import Nominator


def pod(name: str = "pod", nominated: str = "") -> Pod:
    builder = make_pod(name).uid(name)
    return (builder.nominated_node(nominated) if nominated else builder).build()


def info(name: str = "pod", nominated: str = "") -> PodInfo:
    return PodInfo.of(pod(name, nominated))


def names(nominator: Nominator, node: str) -> list[str]:
    return [each.pod.name for each in nominator.nominated_pods_for_node(node)]


def test_pods_are_kept_by_node_in_the_order_of_their_nomination() -> None:
    nominator = Nominator()
    nominator.add(info("a"), "one")
    nominator.add(info("b"), "two")
    nominator.add(info("c"), "one")
    assert names(nominator, "one") == ["a", "c"]
    assert names(nominator, "two") == ["b"]
    assert names(nominator, "three") == []
    assert nominator.node_of("b") == "two"
    assert [each.pod.name for each in nominator.nominated_pods()] == ["a", "c", "b"]


def test_it_says_where_nominations_have_changed() -> None:
    nominator = Nominator()
    assert nominator.is_empty
    assert nominator.changed_since(nominator.version) == []
    nominator.add(info("a"), "one")
    start = nominator.version
    nominator.add(info("a"), "two")
    nominator.add(info("b"), "three")
    nominator.add(info("b"), "three")
    nominator.delete(pod("b"))
    nominator.delete(pod("b"))
    assert nominator.changed_since(start) == ["one", "two", "three", "three", "three"]
    assert not nominator.is_empty


def test_changes_of_long_ago_are_forgotten() -> None:
    nominator = Nominator()
    nominator.add(info("a"), "one")
    for _ in range(20_000):
        nominator.add(info("b"), "two")
    assert nominator.changed_since(0) is None
    assert nominator.changed_since(nominator.version - 2) == ["two", "two"]


def test_without_a_node_the_status_decides() -> None:
    nominator = Nominator()
    nominator.add(info("a", nominated="one"))
    nominator.add(info("b"))
    assert names(nominator, "one") == ["a"]
    assert nominator.node_of("b") == ""


def test_an_empty_name_clears_a_nomination_whatever_the_status_says() -> None:
    nominator = Nominator()
    nominator.add(info("a"), "one")
    nominator.add(info("a", nominated="one"), "")
    assert nominator.nominated_pods() == ()


def test_a_pod_is_nominated_to_one_node() -> None:
    nominator = Nominator()
    nominator.add(info("a"), "one")
    nominator.add(info("a"), "two")
    assert names(nominator, "one") == []
    assert names(nominator, "two") == ["a"]


def test_a_deleted_pod_is_forgotten() -> None:
    nominator = Nominator()
    nominator.add(info("a"), "one")
    nominator.add(info("b"), "one")
    nominator.delete(pod("a"))
    nominator.delete(pod("a"))
    assert names(nominator, "one") == ["b"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", "here"),  # sent before the nomination reached the cluster
        ("", "there", "there"),
        ("here", "there", "there"),
        ("here", "here", "here"),
        ("here", "", ""),  # cleared by somebody
    ],
)
def test_an_update_keeps_only_a_nomination_that_the_cluster_does_not_know_yet(
    old: str, new: str, expected: str
) -> None:
    nominator = Nominator()
    nominator.add(info("a"), "here")
    nominator.update(pod("a", old), info("a", new))
    assert nominator.node_of("a") == expected


def test_an_updated_pod_keeps_its_turn_and_its_new_state_is_seen() -> None:
    nominator = Nominator()
    for name in ("a", "b"):
        nominator.add(info(name), "one")
    new = info("a")
    nominator.update(pod("a"), new)
    assert names(nominator, "one") == ["a", "b"]
    assert nominator.nominated_pods_for_node("one")[0] is new


def test_an_update_to_another_uid_moves_the_nomination() -> None:
    nominator = Nominator()
    nominator.add(info("a"), "one")
    nominator.update(pod("a"), info("b"))
    assert names(nominator, "one") == ["b"]


@pytest.mark.parametrize(
    "live",
    [None, pod("a").bound_to("elsewhere"), make_pod("a").uid("another").build()],
    ids=["gone", "bound", "other"],
)
def test_pods_that_are_gone_or_bound_are_not_nominated(live: Pod | None) -> None:
    nominator = Nominator(live_pod=lambda _: live)
    nominator.add(info("a"), "one")
    assert nominator.nominated_pods() == ()


def test_live_pods_are() -> None:
    nominator = Nominator(live_pod=lambda each: each)
    nominator.add(info("a"), "one")
    assert names(nominator, "one") == ["a"]
