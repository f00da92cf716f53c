"""Hooks that don't fit their hookspecs: the mypy plugin finds each, with the text in the line above it."""

from __future__ import annotations

import kschedfw
from kschedfw import ClusterEvent, CycleState, NodeInfo, Plugin, Pod, Status, hookimpl
from kschedfw.explain import Evidence


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

    # Method "normalize_score" has the name of a hook, and is not marked @hookimpl
    def normalize_score(self, pod: Pod) -> None: ...  # type: ignore[kschedfw]

    # Method "evidence" has no argument "node"; did you mean "node_info"? (it may take state, pod, node_info)
    def evidence(self, node: NodeInfo) -> list[Evidence]:  # type: ignore[kschedfw]
        return []

    # Method "sign" returns "list[str]"; it may return "Hashable | None"
    def sign(self, pod: Pod) -> list[str]:  # type: ignore[kschedfw, override]
        return [pod.name]

    @hookimpl
    # Hook "placement_score" takes "*more", which would be empty (it may take state, group, placed)
    def placement_score(self, *more: object) -> int:  # type: ignore[kschedfw]
        return 0

    # "tryfirst" has no effect; hooks are called in the profile's order
    @hookimpl(tryfirst=True)  # type: ignore[kschedfw]
    def pre_enqueue(self) -> Status | None: ...

    @hookimpl
    def pre_score(self, state: object, pod: Pod | None, unused: int = 0) -> Status: ...  # type: ignore[empty-body]

    @hookimpl
    def score(self, state: CycleState) -> bool:
        return True


class Sparing(Plugin):
    """Takes subsets of arguments, which is no mistake."""

    name = "Sparing"

    def sign(self) -> str:
        return ""

    def evidence(self, node_info: NodeInfo) -> list[Evidence]:
        return [Evidence(node_info.name)]

    @hookimpl
    def filter(self) -> Status | None: ...


class WithoutMarks(Plugin):
    name = "WithoutMarks"

    # Method "filter" has the name of a hook, and is not marked @hookimpl
    def filter(self) -> Status | None: ...  # type: ignore[kschedfw]
