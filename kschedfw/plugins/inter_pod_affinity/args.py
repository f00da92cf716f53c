"""The arguments of InterPodAffinity and their rules."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import FieldError

_MAX_WEIGHT = 100


@attrs.frozen
class InterPodAffinityArgs:
    """The weights of existing pods' terms in scores (kubescheduler.config.k8s.io InterPodAffinityArgs).

    An existing pod that requires to be near pods like the new one attracts it with `hard_pod_affinity_weight`
    (0–100). With `ignore_preferred_terms_of_existing_pods`, existing pods aren't looked at for new pods without
    preferred terms.

    `complete_hints`, which kube-scheduler doesn't have, wakes refused pods by every event that may help them.
    kube-scheduler ignores some of these events, because it tries all pods again after five minutes. In a
    simulation nothing else would wake them.
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
