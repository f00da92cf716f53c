"""The freeing of a claim that only the pending pod uses, so that it can be allocated on another node (post_filter)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from kschedfw import NodeInfo, NodeToStatus, Pod
from kschedfw.api import ResourceClaim
from kschedfw.plugins.dynamic_resources.claims import reserved_for_others
from kschedfw.plugins.dynamic_resources.decision import NOT_AVAILABLE, PodDevices


@attrs.frozen(eq=False)
class Freeing:
    """The claims that can be freed.

    `unavailable` are the pod's allocated claims that couldn't be used on some node, `eligible` those that no
    other pod has reserved. `left_over` is a claim for extended resources that an earlier attempt made.
    """

    message: str
    unavailable: Sequence[ResourceClaim] = ()
    eligible: Sequence[ResourceClaim] = ()
    left_over: ResourceClaim | None = None


def plan_freeing(
    devices: PodDevices | None,
    pod: Pod,
    plugin: str,
    node_to_status: NodeToStatus,
    nodes: Iterable[NodeInfo],
) -> Freeing:
    """Return the claims that can be freed for a pod, given the refusal of each node with its plugin."""
    if devices is None:
        return Freeing("no new claims to deallocate")
    met: set[str] = set()
    for info in nodes:
        status = node_to_status.get(info.name)
        if status.plugin == plugin and NOT_AVAILABLE in status.reasons:
            met |= {claim.uid for claim in devices.unavailable_on(info.node)}
    unavailable = [claim for claim in devices.claims if claim.uid in met]
    eligible = [claim for claim in unavailable if not reserved_for_others(claim, pod)]
    if devices.left_over is not None:
        return Freeing(
            "deletion of ResourceClaim completed", unavailable, eligible, left_over=devices.left_over
        )
    message = "deallocation of ResourceClaim completed" if eligible else "still not schedulable"
    return Freeing(message, unavailable, eligible)
