"""Hooks that don't fit their hookspecs: the mypy plugin finds each, with the text in the line above it."""

from __future__ import annotations

import kschedfw
from kschedfw import ClusterEvent, CycleState, NodeInfo, Plugin, Pod, Status, hookimpl


class Mistaken(Plugin):
    name = "Mistaken"

    @hookimpl
    # There is no hook "fliter"; did you mean "filter"?
    def fliter(self, pod: Pod) -> Status | None: ...  # type: ignore[kschedfw]

    @hookimpl
    # Hook "filter" takes "pod" as "NodeInfo"; it is "Pod"
    def filter(self, pod: NodeInfo, node_info: NodeInfo) -> Status | None: ...  # type: ignore[kschedfw]

    @hookimpl
    # Hook "pre_filter" takes "nodes" as "list[NodeInfo]"; it is "Sequence[NodeInfo]"
    def pre_filter(self, nodes: list[NodeInfo]) -> None: ...  # type: ignore[kschedfw]

    @hookimpl
    # Hook "permit" returns "bool"; it may return "Status | None"
    def permit(self, pod: Pod) -> bool:  # type: ignore[kschedfw]
        return True

    @kschedfw.hookimpl
    # Hook "reserve" has no argument "node"; did you mean "node_name"? (it may take state, pod, node_name)
    def reserve(self, node: str) -> None: ...  # type: ignore[kschedfw]

    @hookimpl
    # Hook "pre_bind" is async, and nobody would await it
    async def pre_bind(self, pod: Pod) -> None: ...  # type: ignore[kschedfw]

    @hookimpl
    # Hook "unreserve" takes "pod" by keyword only; hooks are called by position
    def unreserve(self, *, pod: Pod) -> None: ...  # type: ignore[kschedfw]

    @hookimpl
    # Hook "post_bind" has no self
    def post_bind(pod: Pod) -> None: ...  # type: ignore[kschedfw, misc]  # noqa: N805  # that is the mistake

    @staticmethod
    @hookimpl
    # Hook "events_to_register" has no argument "pod"; it takes none
    def events_to_register(pod: Pod) -> list[ClusterEvent]:  # type: ignore[kschedfw]
        return []

    @hookimpl
    def pre_score(self, state: object, pod: Pod | None, unused: int = 0) -> Status: ...  # type: ignore[empty-body]

    @hookimpl
    def score(self, state: CycleState) -> bool:
        return True
