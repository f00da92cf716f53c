"""Evidence for the refusal of a pure filter: what it read of the pod, and what of the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kschedfw.api.field_errors import printable
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.learning.learned import Hook
from kschedfw.framework.learning.places import ABSENT, ReadPlace, reader, told_apart
from kschedfw.framework.learning.state_view import StateView
from kschedfw.framework.learning.views import Notes, object_view
from kschedfw.framework.nodes.node_info import NodeInfo

_MOST_PARTS: Final = 8
_LONGEST: Final = 60
_LEFT_OUT: Final = frozenset({"node", "pod", "metadata", "spec", "status", "amounts"})
"""Attributes that tell a reader nothing on the way to a value. The last one does, as the status of a condition."""


def learned_evidence(hook: Hook, state: CycleState, pod: Pod, node_info: NodeInfo) -> tuple[Evidence, ...]:
    """Return what the filter reads where it refuses this node: `label racks: r1_r2`; `label rack: r9`.

    Raises what the filter raises.
    """
    of_pod, of_node, of_state = Notes(), Notes(), Notes()
    hook(StateView(state, of_state), object_view(pod, (), of_pod), object_view(node_info, (), of_node))
    asked, found = _parts(of_pod.places, pod), _parts(of_node.places, node_info)
    values = {f"pod {name}": value for name, value in asked} | {
        f"node {name}": value for name, value in found
    }
    return (Evidence(_joined(asked) or "nothing of the pod", _joined(found), values=values),)


def _joined(parts: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in parts)


def _parts(places: Iterable[ReadPlace], root: object) -> Sequence[tuple[str, str]]:
    """Return the names of the places with the values there, the first ones if they are many."""
    found = [_part(place, reader(place)(root)) for place in told_apart(places)]
    parts = [part for part in found if part is not None]
    if len(parts) <= _MOST_PARTS:
        return parts
    return [*parts[:_MOST_PARTS], ("and", f"{len(parts) - _MOST_PARTS} more")]


def _part(place: ReadPlace, value: object) -> tuple[str, str] | None:
    name = place_name(place)
    if any(kind == "each" for kind, _ in place):
        if place[-1][0] in ("kind", "empty") or not isinstance(value, tuple):
            return None
        return name, _shown(", ".join(dict.fromkeys(map(str, value)))) or "none"
    match place[-1:]:
        case (("kind", _),) if place[-2][0] == "key":
            return name, "none" if value is ABSENT else "some"
        case (("kind", _),):
            # Of what class an object is says nothing, but that there is none does.
            return (name, "none") if value in (ABSENT, type(None)) else None
        case (("length", _),):
            return f"number of {name}", str(value)
        case (("empty", _),):
            return (name, "none") if value else None
        case (("items", _),) if isinstance(value, tuple):
            return name, _shown(", ".join(f"{key}={each}" for key, each in value))
    if value is ABSENT or value is None or value == "":
        return name, "none"
    # Of many things, such as the pods on a node, their number tells most.
    return (f"number of {name}", str(len(value))) if isinstance(value, tuple) else (name, _shown(value))


def _shown(value: object) -> str:
    return printable(str(value), _LONGEST)


def place_name(place: ReadPlace) -> str:
    """Return the name of a place in words: `label rack`, `taints key`, `requested milli cpu`."""
    words = []
    last = max((at for at, (kind, _) in enumerate(place) if kind == "attribute"), default=-1)
    for at, (kind, argument) in enumerate(place):
        if kind == "attribute" and (at == last or argument not in _LEFT_OUT):
            words.append(argument.strip("_").replace("_", " "))
        elif kind == "key":
            if words:
                words[-1] = words[-1].removesuffix("s")
            words.append(printable(str(argument), _LONGEST))
    return " ".join(words) or str(place[-1][1] if place else "all of it")
