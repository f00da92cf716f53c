"""The likeness of pods beside what admission and controllers add to each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import attrs

from kschedfw import FrozenDict, Pod
from kschedfw.api import (
    TEMPLATE_HASH,
    Affinity,
    NodeSelectorTerm,
    Volume,
    group_key,
)
from kschedfw.cluster import Workload

_OF_ONE_POD: Final = frozenset(
    (
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "batch.kubernetes.io/job-name",
        "controller-revision-hash",
        "controller-uid",
        "job-name",
        "pod-template-generation",
        "statefulset.kubernetes.io/pod-name",
        TEMPLATE_HASH,
    )
)
"""Labels that controllers add, and by which the pods of one workload may differ."""


def group_of(pod: Pod) -> Workload:
    """Return the pod's PodGroup as a workload, for naming pods that are scheduled in groups."""
    namespace, _, name = group_key(pod).partition("/")
    return Workload("PodGroup", namespace, name)


def likeness(pod: Pod) -> Hashable:
    """Return a value that is equal for pods of a namespace that a scheduler treats alike.

    Left out are volumes that scheduling doesn't read, such as `kube-api-access-<random>`, labels that controllers add,
    the name of the pod in that of its claims, and the node in the affinity of a DaemonSet's pod.
    """
    labels = FrozenDict({key: value for key, value in pod.labels.items() if key not in _OF_ONE_POD})
    # With all volumes, 187 pods of a real cluster came out as 167 kinds: each has a token volume of its own.
    volumes = tuple(_claimed(volume, pod) for volume in pod.spec.volumes if volume.is_storage or volume.image)
    spec = attrs.evolve(pod.spec, volumes=volumes)
    owner = pod.metadata.controller
    if owner is not None and owner.kind == "DaemonSet":
        spec = attrs.evolve(spec, affinity=_anywhere(spec.affinity))
    return pod.namespace, labels, spec


def are_interchangeable(pods: Sequence[Pod]) -> bool:
    """Tell whether a scheduler decides alike on all of the pods: where one is refused, all are."""
    # A nominated pod is tried on its node first, and other pods leave room for it there.
    return not any(pod.status.nominated_node_name for pod in pods) and all(
        _what_is_read(pod) == _what_is_read(pods[0]) for pod in pods[1:]
    )


def _what_is_read(pod: Pod) -> tuple[object, ...]:
    volumes = tuple(volume for volume in pod.spec.volumes if volume.is_storage or volume.image)
    return pod.namespace, pod.labels, pod.metadata.annotations, attrs.evolve(pod.spec, volumes=volumes)


def _claimed(volume: Volume, pod: Pod) -> Volume:
    claim = volume.persistent_volume_claim
    if claim is None or not claim.claim_name.endswith(f"-{pod.name}"):
        return volume
    # For example `data-` of the claim `data-web-0`.
    template = claim.claim_name.removesuffix(pod.name)
    return attrs.evolve(volume, persistent_volume_claim=attrs.evolve(claim, claim_name=template))


def pinned_to(pod: Pod) -> str | None:
    """Return the only node that the required node affinity of a DaemonSet's pod names; None for other pods."""
    owner, rules = pod.metadata.controller, pod.spec.affinity.node_affinity
    if owner is None or owner.kind != "DaemonSet" or rules is None or rules.required is None:
        return None
    named = [term.only_names for term in rules.required.node_selector_terms]
    names = frozenset(name for each in named if each is not None for name in each)
    return next(iter(names)) if len(names) == 1 and None not in named else None


def unpinned(pod: Pod) -> Pod:
    """Return the pod of a DaemonSet for any node that its template allows."""
    affinity = _anywhere(pod.spec.affinity)
    rules = affinity.node_affinity
    if rules is not None and rules.required is not None:
        # In the API an empty term matches no node, but nothing is left of these terms.
        terms = rules.required.node_selector_terms
        required = rules.required if all(term.match_expressions for term in terms) else None
        affinity = attrs.evolve(affinity, node_affinity=attrs.evolve(rules, required=required))
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, affinity=affinity))


def _anywhere(affinity: Affinity) -> Affinity:
    rules = affinity.node_affinity
    if rules is None or rules.required is None:
        return affinity
    terms = tuple(NodeSelectorTerm(term.match_expressions) for term in rules.required.node_selector_terms)
    required = attrs.evolve(rules.required, node_selector_terms=terms)
    return attrs.evolve(affinity, node_affinity=attrs.evolve(rules, required=required))
