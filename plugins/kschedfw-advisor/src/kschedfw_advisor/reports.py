"""The input's own word on pods that aren't there or don't start, beside the objects that scheduling reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kschedfw import FrozenDict
from kschedfw.api import CronJob, DaemonSet, RefusedPod, WarningEvent, WorkloadObject

_FAILED_CREATE: Final = "FailedCreate"
_OF_SCHEDULING: Final = frozenset(("FailedScheduling", "Preempted", "TaintManagerEviction"))
"""Reasons of warnings about pods that say nothing of their start on a node."""


@attrs.frozen
class Reports:
    """Parts of an input about workloads and pods that no scheduler decides about.

    `refused` are pods that weren't created when manifests were expanded, `without_pods` has the reasons why workloads
    have none, by `KIND NAMESPACE/NAME`, and `workloads` are these as they were read. `warnings` come from Events.
    """

    refused: Sequence[RefusedPod] = ()
    without_pods: Mapping[str, str] = FrozenDict()
    workloads: Sequence[WorkloadObject | CronJob] = ()
    warnings: Sequence[WarningEvent] = ()

    def daemon_set(self, name: str) -> DaemonSet | None:
        """Return the DaemonSet of this key, such as `shop/agent`; None if none was read."""
        found = (each for each in self.workloads if isinstance(each, DaemonSet) and each.key == name)
        return next(found, None)

    @property
    def failures(self) -> Mapping[tuple[str, str, str], str]:
        """Why controllers couldn't create pods (FailedCreate), by the controller's namespace, kind and name."""
        return {
            (each.namespace, each.kind, each.name): each.message
            for each in self.warnings
            if each.reason == _FAILED_CREATE
        }

    @property
    def of_pods(self) -> Mapping[str, WarningEvent]:
        """The last warning about each pod's start on its node, by the pod's key."""
        return {
            f"{each.namespace}/{each.name}": each
            for each in self.warnings
            if each.kind == "Pod" and each.reason not in _OF_SCHEDULING
        }


NO_REPORTS: Final = Reports()
