"""Finds the changes of a version of Kubernetes by which pods fare differently.

Single changes, and halves of all of them, are switched on in the old version and off in the new one, and the cluster
is scheduled again each time. Nothing is guessed from the plugins that refused a node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import attrs

from kschedfw.config import FeatureGates, VersionChange

Fates: TypeAlias = Mapping[str, object]
"""The outcomes of pods, by pod, in a form that can be compared."""

Rerun: TypeAlias = Callable[[FeatureGates], Fates]
"""Schedules the cluster with these gates, and returns the outcomes."""


@attrs.frozen
class UpgradeReason:
    """The changes of a version that a pod's other outcome comes from.

    Unless `together`, each of the changes alone has that outcome in the old version. If `together`, none has, and the
    new version keeps the old outcome if one of them is taken back. No changes: no single one makes a difference.
    """

    changes: tuple[VersionChange, ...]
    together: bool = False

    def __str__(self) -> str:
        if not self.changes:
            return "several changes, none of which can be told from the others"
        return (" and " if self.together else " or ").join(map(str, self.changes))

    def to_json(self) -> dict[str, object]:
        return {
            "changes": [attrs.asdict(change) for change in self.changes],
            "together": self.together,
        }


def reasons(
    before: FeatureGates, after: FeatureGates, had: Fates, has: Fates, run: Rerun
) -> Mapping[str, UpgradeReason]:
    """Return the reason for each pod whose outcome differs between two versions.

    `had` are the outcomes with the gates `before`, `has` those with `after`. A pod may fare differently since another
    one did before it: then it has that pod's reason. A set of changes that leaves all outcomes as they are isn't split
    further, so two changes that undo each other are taken for none.
    """
    changes = before.changes_to(after)
    differing = [pod for pod in {**had, **has} if had.get(pod) != has.get(pod)]
    if not differing or not changes:
        return {}

    def taken_over(chosen: Sequence[VersionChange]) -> Fates:
        return run(before.with_changes(chosen, after.version))

    def taken_back(chosen: Sequence[VersionChange]) -> Fates:
        return run(after.with_changes(chosen, before.version))

    found: dict[str, UpgradeReason] = {}
    alone = _effective(changes, had, differing, taken_over, known=has)
    for pod in differing:
        if able := tuple(change for change, fates in alone.items() if fates.get(pod) == has.get(pod)):
            found[pod] = UpgradeReason(able)
    rest = [pod for pod in differing if pod not in found]
    if rest:
        needed = _effective(changes, has, rest, taken_back, known=had)
        for pod in rest:
            found[pod] = UpgradeReason(
                tuple(change for change, fates in needed.items() if fates.get(pod) != has.get(pod)),
                together=True,
            )
    return {pod: found[pod] for pod in differing}


def _effective(
    changes: Sequence[VersionChange],
    base: Fates,
    pods: Collection[str],
    switch: Callable[[Sequence[VersionChange]], Fates],
    known: Fates | None = None,
) -> dict[VersionChange, Fates]:
    """Return the outcomes with each single change that makes a difference to one of the pods.

    `known` are the outcomes with all changes. Halves are tried first: most changes concern no pod of a cluster.
    """
    fates = switch(changes) if known is None else known
    if all(fates.get(pod) == base.get(pod) for pod in pods):
        return {}
    if len(changes) == 1:
        return {changes[0]: fates}
    half = len(changes) // 2
    return {
        **_effective(changes[:half], base, pods, switch),
        **_effective(changes[half:], base, pods, switch),
    }
