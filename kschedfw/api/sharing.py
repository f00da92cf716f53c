"""Makes equal parts of pods one and the same object.

The pods of a workload differ in little but their names. What is kept by their labels or affinity is found by identity
then, not by comparing field by field; and the parts themselves are read again and again, instead of once each.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import TypeVar

from kschedfw.api.evolver import evolver
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.pod import Pod, PodSpec, PodStatus

T = TypeVar("T", bound=Hashable)

_MOST_KEPT = 10_000
_NO_STATUS = PodStatus()

_with_labels = evolver(ObjectMeta, "labels")
_with_parts = evolver(PodSpec, "containers", "affinity", "tolerations", "topology_spread_constraints")


def with_shared_parts(pod: Pod) -> Pod:
    """An equal pod that shares with others what it may have in common with them."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    # Dicts are equal whatever their order, but it shows in messages and in what is written.
    orders = tuple(
        [(tuple(each.resources.requests), tuple(each.resources.limits)) for each in spec.containers]
    )
    return Pod(
        _with_labels(meta, _shared(meta.labels, tuple(meta.labels))) if meta.labels else meta,
        _with_parts(
            spec,
            _shared(spec.containers, orders),
            _shared(spec.affinity),
            _shared(spec.tolerations),
            _shared(spec.topology_spread_constraints),
        ),
        _NO_STATUS if status == _NO_STATUS else status,
    )


@functools.lru_cache(maxsize=_MOST_KEPT)
def _shared(part: T, _order: Hashable = None) -> T:
    return part
