"""Which pending pods wait for room on which node."""

from __future__ import annotations

import threading

from kschedfw import Pod, PodInfo
from kschedfw.scheduler import Nominator
from kschedfw.testing import make_pod


def pod(name: str, node: str = "", **labels: str) -> Pod:
    builder = make_pod(name).uid(f"uid-{name}").labels(labels)
    return (builder.nominated_node(node) if node else builder).build()


def names(nominator: Nominator, node: str) -> list[str]:
    return [info.pod.name for info in nominator.nominated_pods_for_node(node)]


def test_at_first_nobody_is_nominated() -> None:
    assert Nominator().nominated_pods_for_node("n") == ()


def test_pods_are_nominated_to_the_given_node_or_the_one_in_their_status() -> None:
    nominator = Nominator()
    nominator.add(PodInfo.of(pod("a", "n1")))
    nominator.add(PodInfo.of(pod("b", "n1")), "n2")
    nominator.add(PodInfo.of(pod("c")))
    assert names(nominator, "n1") == ["a"]
    assert names(nominator, "n2") == ["b"]
    assert names(nominator, "") == []


def test_they_are_listed_in_the_order_of_their_nomination() -> None:
    nominator = Nominator()
    for name in "bca":
        nominator.add(PodInfo.of(pod(name)), "n")
    assert names(nominator, "n") == ["b", "c", "a"]


def test_a_new_nomination_replaces_the_old_one() -> None:
    nominator = Nominator()
    nominator.add(PodInfo.of(pod("a")), "n1")
    nominator.add(PodInfo.of(pod("a")), "n2")
    assert names(nominator, "n1") == []
    assert names(nominator, "n2") == ["a"]


def test_a_nomination_to_nowhere_ends_it() -> None:
    nominator = Nominator()
    nominator.add(PodInfo.of(pod("a")), "n")
    nominator.add(PodInfo.of(pod("a")))
    assert names(nominator, "n") == []


def test_a_deleted_pod_is_forgotten_and_others_stay() -> None:
    nominator = Nominator()
    for name in "ab":
        nominator.add(PodInfo.of(pod(name)), "n")
    nominator.delete(pod("a"))
    nominator.delete(pod("never-there"))
    assert names(nominator, "n") == ["b"]
    nominator.delete(pod("b"))
    assert names(nominator, "n") == []


class TestUpdate:
    def test_a_changed_pod_keeps_its_nomination(self) -> None:
        nominator = Nominator()
        nominator.add(PodInfo.of(pod("a")), "n")
        nominator.update(PodInfo.of(pod("a", new="label")))
        (info,) = nominator.nominated_pods_for_node("n")
        assert info.pod.labels == {"new": "label"}

    def test_unless_its_status_names_another_node(self) -> None:
        nominator = Nominator()
        nominator.add(PodInfo.of(pod("a")), "n1")
        nominator.update(PodInfo.of(pod("a", "n2")))
        assert names(nominator, "n1") == []
        assert names(nominator, "n2") == ["a"]

    def test_a_pod_that_was_not_nominated_is_so_only_by_its_status(self) -> None:
        nominator = Nominator()
        nominator.update(PodInfo.of(pod("a")))
        nominator.update(PodInfo.of(pod("b", "n")))
        assert names(nominator, "n") == ["b"]


def test_what_was_handed_out_does_not_change() -> None:
    nominator = Nominator()
    nominator.add(PodInfo.of(pod("a")), "n")
    before = nominator.nominated_pods_for_node("n")
    nominator.add(PodInfo.of(pod("b")), "n")
    assert [info.pod.name for info in before] == ["a"]


def test_many_threads_may_use_it_at_once() -> None:
    nominator = Nominator()

    def nominate(thread: int) -> None:
        for number in range(50):
            nominator.add(PodInfo.of(pod(f"p{thread}-{number}")), f"n{number % 3}")
            nominator.nominated_pods_for_node("n0")
            if number % 2:
                nominator.delete(pod(f"p{thread}-{number}"))

    threads = [threading.Thread(target=nominate, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(names(nominator, f"n{node}")) for node in range(3)) == 4 * 25
