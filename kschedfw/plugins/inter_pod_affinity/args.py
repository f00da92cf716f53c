"""The arguments of InterPodAffinity and their rules."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import FieldError

_MAX_WEIGHT = 100


@attrs.frozen
class InterPodAffinityArgs:
    """How existing pods' terms count in scores (kubescheduler.config.k8s.io InterPodAffinityArgs).

    An existing pod that requires to be near pods like the new one pulls it with `hard_pod_affinity_weight` (0–100).
    `ignore_preferred_terms_of_existing_pods` saves looking at existing pods for new ones without preferred terms.

    `complete_hints`, which kube-scheduler doesn't have, wakes refused pods by every event that may help them, also
    by those that kube-scheduler passes over because it tries pods again after five minutes anyway. In a simulation
    nobody does that.
    """

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False
    complete_hints: bool = attrs.field(
        default=False, metadata={"beyond_kube_scheduler": "for simulations, which have no flush"}
    )

    def validate(self) -> Iterator[FieldError]:
        if not 0 <= self.hard_pod_affinity_weight <= _MAX_WEIGHT:
            yield FieldError.invalid(
                "hardPodAffinityWeight",
                self.hard_pod_affinity_weight,
                f"not in valid range [0, {_MAX_WEIGHT}]",
            )
