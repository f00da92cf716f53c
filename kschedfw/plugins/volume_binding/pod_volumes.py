"""The requirements of a pod's claims, and the volumes that each node has for them (kube-scheduler `FindPodVolumes`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from kschedfw import ClusterClient, IntArray, Node, NodeTable, Verdicts
from kschedfw.api import PersistentVolume, PersistentVolumeClaim, requested_storage
from kschedfw.api.records import frozen
from kschedfw.api.volume_matching import VolumeCandidates
from kschedfw.framework.nodes.arrays import Mask
from kschedfw.plugins.volume_binding.provisioning import (
    FINE,
    LOST,
    NO_VOLUME,
    OUT_OF_REACH,
    STATUSES,
    Problems,
    Provisioning,
)
from kschedfw.plugins.volume_binding.reach import BoundReach, Reach, reach_of

ClaimBinding: TypeAlias = tuple[PersistentVolume, PersistentVolumeClaim]


@frozen(eq=False)
class NodeVolumes:
    """The decision for a node: the claims to bind, each with its volume, and the claims to provision a volume for.

    With `problems` the pod can't run there, and nothing is to be provisioned.
    """

    problems: Problems
    bindings: tuple[ClaimBinding, ...] = ()
    provisionings: tuple[Provisioning, ...] = ()


@frozen(eq=False)
class Unbound:
    """A claim whose binding waits for the pod's node, with the volumes that may fit."""

    claim: PersistentVolumeClaim
    candidates: VolumeCandidates
    provisioning: Provisioning

    def find(self, node: Node, taken: set[str]) -> PersistentVolume | None:
        """Return the volume to bind the claim to on the node, except volumes in `taken`; None if there is none."""
        for volume in self.candidates.prebound:
            if volume.name not in taken:
                return volume if reach_of(volume).has(node.labels) else None
        for volume in self.candidates.available:
            if volume.name not in taken and reach_of(volume).has(node.labels):
                return volume
        return None

    def found(self, nodes: NodeTable, rows: IntArray, taken: dict[str, Mask]) -> Mask:
        """Return the nodes on which `find` finds a volume, shape (k,) for `rows` of shape (k,).

        `taken` has a mask per volume of the nodes on which it is taken already; the volumes found here are
        added.
        """
        found = np.zeros(len(rows), dtype=np.bool_)
        left = np.arange(len(rows))
        for volume in self.candidates.prebound:
            free, occupied = _split(left, taken.get(volume.name))
            mine = free[reach_of(volume).mask(nodes, rows[free])]
            _take(volume, mine, found, taken)
            left = occupied  # nodes where the claim's volume is taken; elsewhere no other volume will do
            if not len(left):
                return found
        for volume in self.candidates.available:
            free, _ = _split(left, taken.get(volume.name))
            mine = free[reach_of(volume).mask(nodes, rows[free])]
            if len(mine):
                _take(volume, mine, found, taken)
                left = left[~found[left]]
                if not len(left):
                    break
        return found


def _split(left: IntArray, taken: Mask | None) -> tuple[IntArray, IntArray]:
    if taken is None:
        return left, left[:0]
    return left[~taken[left]], left[taken[left]]


def _take(volume: PersistentVolume, positions: IntArray, found: Mask, taken: dict[str, Mask]) -> None:
    found[positions] = True
    mask = taken.get(volume.name)
    if mask is None:
        mask = taken[volume.name] = np.zeros_like(found)
    mask[positions] = True


@frozen(eq=False)
class PodVolumes:
    """A pod's claims at the start of its cycle.

    `bound` has the reach of each bound volume, None for a volume that doesn't exist. `selected` are claims for
    which a volume is being provisioned for a certain node, `unbound` all others, smallest request first.
    """

    bound: tuple[BoundReach | None, ...] = ()
    selected: tuple[tuple[str, Provisioning], ...] = ()
    unbound: tuple[Unbound, ...] = ()

    @property
    def all_bound(self) -> bool:
        return not self.selected and not self.unbound

    @property
    def is_empty(self) -> bool:
        """True if the pod has no claims."""
        return not self.bound and self.all_bound

    @property
    def reaches(self) -> tuple[Reach, ...] | None:
        """The reaches that decide on a node by its labels alone; None where anything else decides."""
        if self.selected or self.unbound:
            return None
        reaches = []
        for each in self.bound:
            # A volume of an in-tree plugin is decided on by CSINodes, too, which tell where the plugin is migrated.
            if each is None or each.plugin is not None:
                return None
            reaches.append(each.reach)
        return tuple(reaches)

    def on(self, node: Node, cluster: ClusterClient) -> NodeVolumes:
        """Return the node's volumes for the claims."""
        problems = self._bound_problem(node, cluster)
        # As kube-scheduler's fast path: no volume is looked for, so nothing else is said of the node.
        if any(name != node.name for name, _ in self.selected):
            return NodeVolumes(problems | NO_VOLUME)
        bindings: list[ClaimBinding] = []
        to_make = [provisioning for _, provisioning in self.selected]
        taken: set[str] = set()
        for each in self.unbound:
            volume = each.find(node, taken)
            if volume is None:
                to_make.append(each.provisioning)
            else:
                taken.add(volume.name)
                bindings.append((volume, each.claim))
        for provisioning in to_make:
            if (problem := provisioning.problem(node)) != FINE:
                return NodeVolumes(problems | problem)
        return NodeVolumes(problems) if problems else NodeVolumes(FINE, tuple(bindings), tuple(to_make))

    def _bound_problem(self, node: Node, cluster: ClusterClient) -> Problems:
        for reach in self.bound:
            if reach is None:
                return LOST
            if not reach.has(node.labels, node.name, cluster):
                return OUT_OF_REACH
        return FINE

    def verdicts(self, nodes: NodeTable, rows: IntArray, cluster: ClusterClient) -> Verdicts:
        """Return the problems of many nodes, as `on` for each."""
        problems = np.zeros(len(rows), dtype=np.int64)
        left = np.arange(len(rows))
        for reach in self.bound:
            if reach is None:
                problems[left] |= LOST
                break
            reached = reach.mask(nodes, rows[left], cluster)
            problems[left[~reached]] |= OUT_OF_REACH
            left = left[reached]
        # All nodes again: a node may have a problem with bound volumes and another one with unbound claims.
        left = np.arange(len(rows))
        for name, _ in self.selected:
            here = rows[left] == nodes.rows.get(name, -1)
            problems[left[~here]] |= NO_VOLUME
            left = left[here]
        for _, provisioning in self.selected:
            left = _make(provisioning, left, left, problems, nodes, rows)
        taken: dict[str, Mask] = {}
        for each in self.unbound:
            found = each.found(nodes, rows, taken)
            left = _make(each.provisioning, left, left[~found[left]], problems, nodes, rows)
        return Verdicts(problems, STATUSES)


def _make(
    provisioning: Provisioning,
    left: IntArray,
    missing: IntArray,
    problems: IntArray,
    nodes: NodeTable,
    rows: IntArray,
) -> IntArray:
    """Fill in the problems of nodes that can't provision a volume. Return the nodes without a problem so far."""
    if not len(missing):
        return left
    found = provisioning.problems(nodes, rows[missing])
    problems[missing] |= found
    failed = np.zeros(len(rows), dtype=np.bool_)
    failed[missing] = found != FINE
    return left[~failed[left]]


def by_size(unbound: Sequence[Unbound]) -> tuple[Unbound, ...]:
    """Return the claims, smallest request first, so that each gets the smallest volume that fits."""
    return tuple(sorted(unbound, key=lambda each: requested_storage(each.claim)))
