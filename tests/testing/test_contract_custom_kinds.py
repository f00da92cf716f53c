"""The contract asks hints about objects of a plugin's own kind, as the cluster hands them over."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kschedfw import (
    ActionType,
    ClusterEvent,
    CustomKind,
    CustomObject,
    CustomResource,
    ObjectMeta,
    Plugin,
    Pod,
    QueueingHint,
    Status,
    hookimpl,
)
from kschedfw.testing import PluginContract


@attrs.frozen
class Permission(CustomResource):
    kind = CustomKind("example.com/v1", "Permission")

    metadata: ObjectMeta


asked: set[str] = set()


class Permitted(Plugin):
    name = "Permitted"

    @hookimpl
    def filter(self) -> Status | None:
        return None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [ClusterEvent(Permission.kind, ActionType.ADD, self._hint)]

    def _hint(self, pod: Pod, old: object | None, new: object | None) -> QueueingHint:
        assert isinstance(new, CustomObject | None)
        permission = Permission.of(new)
        if permission is None:
            return QueueingHint.SKIP
        asked.add(permission.name)
        return QueueingHint.QUEUE


def test_a_plugin_may_wait_for_objects_of_a_kind_of_its_own() -> None:
    class Contract(PluginContract):
        plugin = Permitted
        objects = tuple(Permission(ObjectMeta(name=name, namespace="default")) for name in ("a", "b"))
        max_examples = 1

    asked.clear()
    Contract().test_events_are_cluster_events_and_their_hints_answer()
    assert asked == {"a", "b"}
