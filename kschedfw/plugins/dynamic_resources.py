"""The place of DynamicResources in a profile, where the distribution kschedfw-devices isn't installed.

It is in the entry-point group `kschedfw.fallback`: kschedfw-devices offers the plugin that allocates devices.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import ClassVar, Final

import numpy as np

from kschedfw import (
    CycleState,
    FieldError,
    IntArray,
    NodeToStatus,
    Plugin,
    Pod,
    PostFilterResult,
    PreBindPreFlightResult,
    Reads,
    StateKey,
    StateKeyError,
    Status,
    format_duration,
    hookimpl,
)
from kschedfw.api.records import frozen
from kschedfw.api.scalars import Duration


@frozen
class DynamicResourcesArgs:
    """The time limits of allocation on a node (0: none; see `budget`), and of binding altogether, in seconds."""

    filter_timeout: Duration = 10.0
    binding_timeout: Duration = 600.0

    def validate(self) -> Iterator[FieldError]:
        if self.filter_timeout < 0:
            given = format_duration(self.filter_timeout)
            yield FieldError.invalid("filterTimeout", given, "must be zero or positive")
        if self.binding_timeout < 1:
            given = format_duration(self.binding_timeout)
            yield FieldError.invalid("bindingTimeout", given, "must be at least 1 second")


_IS_IDLE: Final = PreBindPreFlightResult(allow_parallel=True, skip=True)
_HAD_ITS_TURN = StateKey[bool]("DynamicResources.had_its_turn")


class WithoutDynamicResources(Plugin[DynamicResourcesArgs]):
    """Refuses pods that need devices and says what to install, so that no pod is placed as if it needed none.

    It is at the extension points of the plugin that it stands for, and answers as that one does about pods without
    devices: a configuration is accepted, and such pods are decided, scored and explained, as with kschedfw-devices.
    """

    name = "DynamicResources"
    args_type: ClassVar[type[object] | None] = DynamicResourcesArgs
    reads = Reads.NODE

    def sign(self, pod: Pod) -> Hashable | None:
        return None if self._needs_devices(pod) else ()

    def sign_for_batch(self, pod: Pod) -> Hashable | None:
        return self.sign(pod)

    def takes_members_alike(self, pod: Pod) -> bool:
        return not self._needs_devices(pod)

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> None:  # noqa: ARG002  # pods that need devices are refused where it is explained
        return None

    @hookimpl
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | None:
        state.write(_HAD_ITS_TURN, True)
        return self._refusal(pod) or Status.skip()

    @hookimpl
    def filter(self, pod: Pod) -> Status | None:
        # Asked only where a profile has this plugin at filter and not at pre_filter.
        return self._refusal(pod)

    @hookimpl
    def post_filter(self, state: CycleState) -> tuple[PostFilterResult | None, Status]:
        return None, self._post_filter_status(state)

    def post_filter_status(self, state: CycleState, pod: Pod, node_to_status: NodeToStatus) -> Status:  # noqa: ARG002  # see explain
        """Return the status that `post_filter` would return."""
        return self._post_filter_status(state)

    def _post_filter_status(self, state: CycleState) -> Status:
        if _HAD_ITS_TURN in state:
            return Status.unschedulable("no new claims to deallocate")
        # As the plugin that it stands for, and kube-scheduler's, where pre_filter wasn't called.
        return Status.from_error(StateKeyError("not found"))

    @hookimpl
    def score(self) -> int:
        return 0

    @hookimpl
    def score_batch(self, rows: IntArray) -> IntArray:
        return np.zeros(len(rows), dtype=np.int64)

    @hookimpl
    def reserve(self) -> None:
        return None

    @hookimpl
    def unreserve(self) -> None:
        # Nothing was reserved. A WhatIf warns of plugins that reserve and can't undo it.
        return None

    @hookimpl
    def pre_bind_pre_flight(self) -> PreBindPreFlightResult:
        return _IS_IDLE

    @hookimpl
    def pre_bind(self) -> None:
        return None

    def _refusal(self, pod: Pod) -> Status | None:
        return Status.unresolvable(self.handle.devices.missing) if self._needs_devices(pod) else None

    def _needs_devices(self, pod: Pod) -> bool:
        if pod.spec.resource_claims:
            return True
        requests_extended = bool(pod.requests.amounts.scalar_resources)
        return requests_extended and bool(self.handle.devices.requested_by(pod))
