"""A recorded pod without what a scheduler decided on it, and with what another one decides."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import attrs

from kschedfw import FrozenDict, Pod
from kschedfw.api import ObjectMeta, PodCondition, PodPhase, PodSpec, PodStatus
from kschedfw.cluster import TOPOLOGY_LABELS

_NEW: Final = PodStatus()


def _all_but(cls: type[object], *names: str) -> Callable[[object], tuple[object, ...]]:
    """Return the values of all fields of an instance except these."""
    fields = attrs.fields(cls)  # type: ignore[arg-type]
    return operator.attrgetter(*(each.name for each in fields if each.name not in names))


_METADATA: Final = _all_but(ObjectMeta, "deletion_timestamp", "resource_version")
_UNDECIDED_SPEC: Final = _all_but(PodSpec, "node_name")
_UNDECIDED_STATUS: Final = _all_but(
    PodStatus,
    "phase",
    "start_time",
    "nominated_node_name",
    "conditions",
    "resource_claim_statuses",
    "extended_resource_claim_status",
)


def undecided(pod: Pod, scheduler_name: str | None = None) -> Pod:
    """Return the pod without a scheduler's decisions and their consequences, for another scheduler if one is named."""
    spec, status, metadata = pod.spec, pod.status, pod.metadata
    if scheduler_name is None and not spec.node_name and status == _NEW:
        # Nearly all pods arrive without decisions.
        return pod
    if not metadata.labels.keys().isdisjoint(TOPOLOGY_LABELS):
        labels = {key: value for key, value in metadata.labels.items() if key not in TOPOLOGY_LABELS}
        metadata = attrs.evolve(metadata, labels=FrozenDict(labels))
    return Pod(
        attrs.evolve(metadata, deletion_timestamp=None),
        attrs.evolve(spec, node_name="", scheduler_name=scheduler_name or spec.scheduler_name),
        attrs.evolve(
            status,
            phase=PodPhase.PENDING,
            start_time=None,
            nominated_node_name="",
            conditions=tuple(each for each in status.conditions if not _is_decision(each)),
            resource_claim_statuses=(),
            extended_resource_claim_status=None,
        ),
    )


def as_decided(recorded: Pod, present: Pod) -> Pod:
    """Return a recorded pod with this replay's decisions in place of the recorded ones."""
    labels = {key: present.labels[key] for key in TOPOLOGY_LABELS if key in present.labels}
    metadata = attrs.evolve(
        recorded.metadata,
        uid=present.uid,
        labels=FrozenDict({**recorded.labels, **labels}) if labels else recorded.metadata.labels,
    )
    status = present.status
    decisions = tuple(each for each in status.conditions if _is_decision(each))
    return Pod(
        metadata,
        attrs.evolve(recorded.spec, node_name=present.node_name),
        attrs.evolve(
            recorded.status,
            nominated_node_name=status.nominated_node_name,
            conditions=(*recorded.status.conditions, *decisions),
            resource_claim_statuses=status.resource_claim_statuses,
            extended_resource_claim_status=status.extended_resource_claim_status,
        ),
    )


def differ_by_decisions(old: Pod, new: Pod) -> bool:
    """Return whether two states of a recorded pod differ by nothing but what a scheduler decided.

    That is so for half of all changes, and tells without making pods that are the same without decisions. Where it
    can't be told at once, the answer is no.
    """
    return (
        _METADATA(old.metadata) == _METADATA(new.metadata)
        and _UNDECIDED_SPEC(old.spec) == _UNDECIDED_SPEC(new.spec)
        and _UNDECIDED_STATUS(old.status) == _UNDECIDED_STATUS(new.status)
        and [each for each in old.status.conditions if not _is_decision(each)]
        == [each for each in new.status.conditions if not _is_decision(each)]
    )


def _is_decision(condition: PodCondition) -> bool:
    """Return whether a scheduler has written the condition."""
    return condition.type == "PodScheduled" or condition.reason == "PreemptionByScheduler"
