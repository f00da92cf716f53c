"""What a watcher is told: each change once and in order, whatever comes in."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.workloads import Namespace
from kschedfw.cluster import EventType
from kschedfw.kubernetes.store import Store

NAMES = ("a", "b", "c")


def state(name: str, uid: str, version: int) -> Namespace:
    return Namespace(
        ObjectMeta(name, uid=uid, resource_version=str(version), labels=FrozenDict({"v": str(version)}))
    )


histories = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), max_size=20)
"""What happens: an object is written, or deleted where the flag is set."""


def truth(history: list[tuple[str, bool]]) -> list[tuple[EventType, Namespace]]:
    """The changes as the API server makes them, each with a version of its own."""
    present: dict[str, Namespace] = {}
    changes = []
    for version, (name, is_deletion) in enumerate(history, start=1):
        old = present.get(name)
        uid = f"{name}-{version}" if old is None else old.uid
        obj = state(name, uid, version)
        if is_deletion:
            if old is not None:
                del present[name]
                changes.append((EventType.DELETED, obj))
        else:
            present[name] = obj
            changes.append((EventType.ADDED if old is None else EventType.MODIFIED, obj))
    return changes


def lists_at(changes: list[tuple[EventType, Namespace]]) -> list[dict[str, Namespace]]:
    """All objects, after each of the changes and before them."""
    present: dict[str, Namespace] = {}
    lists = [dict(present)]
    for type_, obj in changes:
        if type_ is EventType.DELETED:
            present.pop(obj.name, None)
        else:
            present[obj.name] = obj
        lists.append(dict(present))
    return lists


class Follower:
    """Knows of the objects what events say, and checks that they make sense one after the other."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.present: dict[str, Named] = {}

    def take(self, events: Any) -> None:
        for event in events:
            old = self.present.get(event.object.key)
            match event.type:
                case EventType.ADDED:
                    assert old is None
                case EventType.MODIFIED:
                    assert event.old is old is not None
                    assert event.object.uid == old.uid
                    assert int(event.object.metadata.resource_version) > int(old.metadata.resource_version)
                case EventType.DELETED:
                    assert old is not None
                    assert event.object.uid == old.uid
            if event.type is EventType.DELETED:
                del self.present[event.object.key]
            else:
                self.present[event.object.key] = event.object
        assert {obj.key: obj for obj in self.store.list()} == self.present


@given(histories, st.data())
def test_a_watch_with_cuts_repeats_and_new_lists_tells_each_change_once(
    history: list[tuple[str, bool]], data: st.DataObject
) -> None:
    changes = truth(history)
    lists = lists_at(changes)
    store = Store()
    follower = Follower(store)
    position = 0
    while position < len(changes):
        if data.draw(st.booleans(), "list anew"):
            position = data.draw(st.integers(position, len(changes)), "at")
            follower.take(store.replace(lists[position].values()))
            continue
        again = data.draw(st.integers(0, 3), "told again")
        for type_, obj in changes[max(0, position - again) : position + 1]:
            if type_ is EventType.DELETED:
                follower.take(store.remove(obj.key, obj))
            else:
                follower.take(store.put(obj))
        position += 1
        # What was told again may have brought back an object that is gone; a list puts that right.
        if again:
            follower.take(store.replace(lists[position].values()))
    assert follower.present == lists[-1]


def test_an_object_of_the_same_name_is_another_one() -> None:
    store = Store()
    follower = Follower(store)
    follower.take(store.put(state("a", "1", 1)))
    events = list(store.put(state("a", "2", 5)))
    assert [(event.type, event.object.uid) for event in events] == [
        (EventType.DELETED, "1"),
        (EventType.ADDED, "2"),
    ]


def test_what_is_unreadable_now_stays_as_it_was() -> None:
    store = Store()
    first = state("a", "1", 1)
    list(store.put(first))
    assert list(store.replace([], unreadable=["a"])) == []
    assert store.get("a") is first
    assert [event.type for event in store.replace([])] == [EventType.DELETED]


def test_lists_are_in_the_order_of_coming_and_kept_until_something_changes() -> None:
    store = Store()
    list(store.replace([state("b", "1", 2), state("c", "2", 1)]))
    listed = store.list()
    assert store.list() is listed
    assert [obj.name for obj in listed] == ["b", "c"]
    list(store.put(state("a", "3", 3)))
    assert [obj.name for obj in store.list()] == ["b", "c", "a"]
    assert store.list("elsewhere") == ()


def test_a_later_list_is_told_in_the_order_of_its_changes() -> None:
    """So whoever has been told of a version has been told of all before it, as by a watch."""
    store = Store()
    list(store.replace([state("a", "1", 1), state("b", "2", 2)]))
    told = list(store.replace([state("a", "1", 9), state("b", "2", 7), state("c", "3", 8)]))
    assert [event.object.name for event in told] == ["b", "c", "a"]
