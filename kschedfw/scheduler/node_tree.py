"""The visiting order of nodes, which alternates between zones (kube-scheduler `nodeTree`)."""

from __future__ import annotations

from itertools import chain, zip_longest

from kschedfw.api.node import Node

# The old labels come first, as in kube-scheduler's GetZoneKey.
_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")

Zone = tuple[str, str]


def zone_of(node: Node) -> Zone:
    """Return the node's region and zone; the beta labels take precedence."""
    return _first(node, _REGION_LABELS), _first(node, _ZONE_LABELS)


def _first(node: Node, labels: tuple[str, ...]) -> str:
    return next((node.labels[label] for label in labels if label in node.labels), "")


class NodeTree:
    """The order in which nodes are visited: first the oldest node of each zone, then the second oldest …

    So a search that stops early, as with sampling, covers all zones equally.
    """

    def __init__(self) -> None:
        self._zones: dict[Zone, dict[str, None]] = {}
        self._zone_of: dict[str, Zone] = {}
        self._names: list[str] | None = []
        """All names in order; None if the order must be computed again."""

    def __len__(self) -> int:
        return len(self._zone_of)

    def add(self, node: Node) -> bool:
        """Add the node at the end of its zone; a known node moves only if its zone has changed.

        Return whether the order has changed.
        """
        zone = zone_of(node)
        if self._zone_of.get(node.name) == zone:
            return False
        self.remove(node.name)
        # A zone that is new, or lost its last node, is visited last, as in kube-scheduler.
        names = self._zones.setdefault(zone, {})
        if self._names is not None:
            # The last node of its zone moves no other node to another round, so the order is kept and not
            # made anew.
            self._names.insert(self._position(zone, len(names)), node.name)
        names[node.name] = None
        self._zone_of[node.name] = zone
        return True

    def remove(self, name: str) -> None:
        """Remove the node, if it is there."""
        zone = self._zone_of.pop(name, None)
        if zone is None:
            return
        names = self._zones[zone]
        is_last = next(reversed(names)) == name
        del names[name]
        if self._names is not None and is_last:
            del self._names[self._position(zone, len(names))]
        else:
            self._names = None  # computed again: later nodes of the zone move up by a round
        if not names:
            del self._zones[zone]

    def copy(self) -> NodeTree:
        """Return a copy with the same order."""
        tree = NodeTree()
        tree._zones = {zone: dict(names) for zone, names in self._zones.items()}
        tree._zone_of = dict(self._zone_of)
        tree._names = None if self._names is None else list(self._names)
        return tree

    def would_move(self, node: Node) -> bool:
        """Return whether `add` would change the order."""
        return self._zone_of.get(node.name) != zone_of(node)

    def names(self) -> list[str]:
        """Return all nodes in visiting order."""
        if self._names is None:
            rounds = zip_longest(*self._zones.values())
            self._names = [name for name in chain.from_iterable(rounds) if name is not None]
        # A copy: the snapshot keeps the list to compare it with the next one.
        return list(self._names)

    def _position(self, zone: Zone, number: int) -> int:
        """Return the position in the visiting order of the node with this number in its zone."""
        position, is_before = 0, True
        for each, names in self._zones.items():
            # Zones before the node's own have had their turn in this round, those after it haven't.
            is_before &= each != zone
            position += number if each == zone else min(len(names), number + is_before)
        return position
