"""Pure filters and scores, composed of what a hook can read of a pod, a node and the state."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import attrs
from hypothesis import strategies as st

from kschedfw.api import FrozenDict, Node, Pod, Taint
from kschedfw.framework.cycle_state import CycleState, StateKey
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.status import Status

Noted: TypeAlias = StateKey[tuple[object, ...]]

NOTED: Final = Noted("Drawn.noted")
"""The key by which readings ask for what the pre_filter of their plugin wrote."""


class ReadState(Protocol):
    """The part of a `CycleState` that readings ask."""

    def find(self, key: Noted, /) -> tuple[object, ...] | None: ...

    def __contains__(self, key: Noted, /) -> bool: ...


@attrs.frozen
class _OwnEntry:
    """A state in which `NOTED` stands for the key of one plugin: the entries of others aren't read by pure hooks."""

    state: CycleState
    key: Noted

    def find(self, _noted: Noted, /) -> tuple[object, ...] | None:
        return self.state.find(self.key)

    def __contains__(self, _noted: Noted, /) -> bool:
        return self.key in self.state


ReadFunction: TypeAlias = Callable[[Pod, NodeInfo, ReadState], object]

POD_LABELS: Final = ("app", "own", "tier", "disk")
NODE_LABELS: Final = ("disk", "size", "topology.kubernetes.io/zone", "rack")


@attrs.frozen
class Reading:
    """Something that a hook reads. Printed as the text that it was made of."""

    text: str
    read: ReadFunction = attrs.field(eq=False, repr=False)

    def of(self, pod: Pod, info: NodeInfo, state: ReadState) -> int:
        """Return a number that depends on what is read alone."""
        return zlib.crc32(repr(self.read(pod, info, state)).encode())


def _matched(node: Node) -> object:
    match node:
        case Node(spec=spec, labels={"disk": disk}) if spec.unschedulable:
            return "cordoned", disk
        case Node(labels={"disk": "ssd", **others}):
            return sorted(others)
        case Node(spec=spec) if spec.taints:
            return spec.taints[0]
    return type(node.metadata.name)


def _requested(info: NodeInfo) -> object:
    """Return what is requested of the node, without zeros: as in kube-scheduler, pods that have gone leave some."""
    amounts = info.requested.scalar_resources
    return attrs.evolve(
        info.requested,
        scalar_resources=FrozenDict({name: amounts[name] for name in amounts if amounts[name]}),
    )


def _first_taint(node: Node) -> object:
    match node.spec.taints:
        case ():
            return None
        case (Taint(key=key, effect=effect), *_):
            return key, effect
        case _:
            return "several"


def _added_up(pod: Pod, info: NodeInfo) -> int:
    return sum(each.pod.priority for each in info.pods if each.pod.namespace == pod.namespace)


def _follow_name(pod: Pod, info: NodeInfo) -> object:
    # A key that is itself read, as of pods that name the label of a node to look at.
    return info.node.labels[pod.labels.get("app", "disk")] if pod.labels.get("own") else "none named"


_OF_POD_AND_STATE: Final[dict[str, ReadFunction]] = {
    "name of the pod": lambda pod, _info, _state: pod.name,
    "namespace": lambda pod, _info, _state: pod.namespace,
    "priority": lambda pod, _info, _state: pod.priority // 10,
    "spec.priority": lambda pod, _info, _state: pod.spec.priority is None,
    "milli_cpu": lambda pod, _info, _state: pod.requests.amounts.milli_cpu,
    "memory of containers": lambda pod, _info, _state: [
        str(each.resources.requests.get("memory")) for each in pod.spec.containers
    ],
    "first image": lambda pod, _info, _state: pod.spec.containers[0].image,
    "ports": lambda pod, _info, _state: pod.host_ports,
    "tolerations": lambda pod, _info, _state: [each.key for each in pod.spec.tolerations],
    "hash of the tolerations": lambda pod, _info, _state: len({*pod.spec.tolerations}),
    "node affinity": lambda pod, _info, _state: pod.spec.affinity.node_affinity is None,
    "affinity": lambda pod, _info, _state: pod.spec.affinity.pod_anti_affinity,
    "spread constraints": lambda pod, _info, _state: len(pod.spec.topology_spread_constraints),
    "selector": lambda pod, _info, _state: {**pod.spec.node_selector},
    "labels of the pod": lambda pod, _info, _state: sorted(pod.labels.items()),
    "number of labels": lambda pod, _info, _state: len(pod.labels),
    "metadata as a dict": lambda pod, _info, _state: attrs.asdict(pod.metadata)["labels"].get("app"),
    "evolved": lambda pod, _info, _state: attrs.evolve(pod.metadata, name="x").labels.get("app"),
    "state": lambda _pod, _info, state: state.find(NOTED),
    "first of the state": lambda _pod, _info, state: (state.find(NOTED) or ("none",))[0],
    "written": lambda _pod, _info, state: NOTED in state,
    **{f"pod[{key}]": lambda pod, _i, _s, key=key: pod.labels.get(key) for key in POD_LABELS},  # type: ignore[misc]
    **{f"{key} in pod": lambda pod, _i, _s, key=key: key in pod.labels for key in POD_LABELS},  # type: ignore[misc]
}

_OF_NODE: Final[dict[str, ReadFunction]] = {
    "is a pod": lambda pod, info, _state: (isinstance(pod, Pod), isinstance(info, NodeInfo)),
    "name of the node": lambda _pod, info, _state: info.name[-1],
    "labels of the node": lambda _pod, info, _state: sorted(info.node.labels),
    "copied labels": lambda _pod, info, _state: dict(info.node.labels).get("size"),
    "labels and more": lambda _pod, info, _state: (info.node.labels | {"more": "1"})["more"],
    "is cordoned": lambda _pod, info, _state: info.node.spec.unschedulable,
    "taints": lambda _pod, info, _state: any(each.key == "dedicated" for each in info.node.spec.taints),
    "number of taints": lambda _pod, info, _state: len(info.node.spec.taints),
    "first taint": lambda _pod, info, _state: _first_taint(info.node),
    "matched node": lambda _pod, info, _state: _matched(info.node),
    "spec of the node": lambda _pod, info, _state: info.node.spec,
    "cpu of the status": lambda _pod, info, _state: str(info.node.status.allocatable.get("cpu")),
    "images": lambda _pod, info, _state: [each.size_bytes for each in info.node.status.images],
    "image states": lambda pod, info, _state: info.image_states.get(pod.spec.containers[0].image),
    "allocatable": lambda _pod, info, _state: info.allocatable.milli_cpu,
    "allocatable pods": lambda _pod, info, _state: info.allocatable.allowed_pod_number,
    "scalars": lambda _pod, info, _state: sorted(info.allocatable.scalar_resources),
    "free": lambda _pod, info, _state: (info.allocatable.milli_cpu - info.requested.milli_cpu) // 400,
    "fits": lambda pod, info, _state: (
        pod.requests.amounts.memory <= info.allocatable.memory - info.requested.memory
    ),
    "requested": lambda _pod, info, _state: _requested(info),
    "non-zero": lambda _pod, info, _state: info.non_zero_requested.memory,
    "number of pods": lambda _pod, info, _state: len(info.pods),
    "is empty": lambda _pod, info, _state: not info.pods,
    "apps": lambda _pod, info, _state: sorted(each.pod.labels.get("app", "") for each in info.pods),
    "first app": lambda _pod, info, _state: next((each.pod.labels.get("app") for each in info.pods), None),
    "with affinity": lambda _pod, info, _state: len(info.pods_with_affinity),
    "taken ports": lambda pod, info, _state: any(info.used_ports.conflicts(*each) for each in pod.host_ports),
    "priorities": lambda pod, info, _state: _added_up(pod, info),
    "reversed pods": lambda _pod, info, _state: [each.pod.namespace for each in reversed(info.pods)][:1],
    "a clone": lambda _pod, info, _state: len(info.clone().pods),
    "same labels": lambda pod, info, _state: pod.labels == info.node.labels,
    "named label": lambda pod, info, _state: _follow_name(pod, info),
    **{f"node[{key}]": lambda _p, info, _s, key=key: info.node.labels.get(key) for key in NODE_LABELS},  # type: ignore[misc]
    **{f"{key} in node": lambda _p, info, _s, key=key: key in info.node.labels for key in NODE_LABELS},  # type: ignore[misc]
    **{f"node[{key}] or fails": lambda _p, info, _s, key=key: info.node.labels[key] for key in NODE_LABELS},  # type: ignore[misc]
}

_READINGS: Final = {**_OF_POD_AND_STATE, **_OF_NODE}

readings = st.sampled_from([Reading(text, read) for text, read in _READINGS.items()])
_readings_of_node: Final = st.sampled_from([Reading(text, read) for text, read in _OF_NODE.items()])
_FEW: Final = st.integers(2, 4)


@attrs.frozen
class DrawnCondition:
    """True where a number that is drawn from what is read has a certain rest; of several readings, the first counts
    unless it is true, as with `or`."""

    readings: tuple[Reading, ...]
    modulus: int
    negated: bool

    def holds(self, pod: Pod, info: NodeInfo, state: ReadState) -> bool:
        found = any(each.of(pod, info, state) % self.modulus == 0 for each in self.readings)
        return found is not self.negated


# Mostly a single reading: of a hook that reads much, one place more or less makes no difference.
_ONE_READING: Final = st.tuples(readings)
conditions = st.builds(
    DrawnCondition,
    _ONE_READING | _ONE_READING | st.lists(readings, min_size=1, max_size=3).map(tuple),
    _FEW,
    st.booleans(),
)

_VERDICTS: Final = ("pass", "pass", "success", "refuse", "refuse", "for good", "pending", "raise", "error")
"""Ends of a rule. Most rules end without an exception, or nothing would be placed."""
_RULE_ENDS: Final = st.sampled_from(_VERDICTS[:7] * 4 + _VERDICTS[7:])


@attrs.frozen
class DrawnRule:
    """Nested conditions with an early end: the inner condition is only looked at if the outer one holds."""

    outer: DrawnCondition
    inner: DrawnCondition | None
    end: str
    said: Reading | None
    """The reading that goes into the text of a reason."""
    points: int

    def applies(self, pod: Pod, info: NodeInfo, state: ReadState) -> bool:
        return self.outer.holds(pod, info, state) and (
            self.inner is None or self.inner.holds(pod, info, state)
        )

    def verdict(self, pod: Pod, info: NodeInfo, state: ReadState) -> Status | None:
        text = f"node(s) had rule {self.points}"
        if self.said is not None:
            text = f"{text} {self.said.of(pod, info, state) % 3}"
        match self.end:
            case "pass":
                return None
            case "success":
                return Status.success()
            case "refuse":
                return Status.unschedulable(text)
            case "for good":
                return Status.unresolvable(text, "node(s) for good")
            case "pending":
                return Status.pending(text)
            case "raise":
                raise ValueError(text)
        return Status.from_error(text)

    def score(self, pod: Pod, info: NodeInfo, state: ReadState) -> int:
        if self.end == "raise":
            raise ValueError(f"no points {self.points}")
        return (self.points + (0 if self.said is None else self.said.of(pod, info, state))) % 101


rules = st.builds(
    DrawnRule,
    conditions,
    st.none() | conditions,
    _RULE_ENDS,
    st.none() | readings,
    st.integers(0, 100),
)


@attrs.frozen
class PureHooks:
    """The rules of a drawn plugin's filter and of its score; the first one that applies counts."""

    filter_rules: tuple[DrawnRule, ...]
    score_rules: tuple[DrawnRule, ...]
    noted: tuple[Reading, ...]
    """Readings of the pod that pre_filter writes to the state."""
    skipping: Reading | None = None
    """The value of the pod that pre_filter and pre_score read, of which they skip every third."""

    def plugin(self, name: str, *, pure: bool) -> type[Plugin[Any]]:
        """Return a plugin with these hooks, which says that it is pure or doesn't."""
        drawn, key = self, Noted(f"{name}.noted")

        @hookimpl
        def pre_filter(self: object, state: CycleState, pod: Pod) -> Status | None:  # a method
            own = _OwnEntry(state, key)
            state.write(key, drawn.notes(pod, own))
            return drawn.skip(pod, own)

        @hookimpl
        def pre_score(self: object, state: CycleState, pod: Pod) -> Status | None:
            return drawn.skip(pod, _OwnEntry(state, key))

        @hookimpl
        def filter(self: object, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status | None:
            return drawn.verdict(pod, node_info, _OwnEntry(state, key))

        @hookimpl
        def score(self: object, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
            own = _OwnEntry(state, key)
            for rule in drawn.score_rules:
                if rule.applies(pod, node_info, own):
                    return rule.score(pod, node_info, own)
            return 50

        members: dict[str, object] = {"name": name, "pure": pure}
        if self.noted or self.skipping:
            members["pre_filter"] = pre_filter
        if self.filter_rules:
            members["filter"] = filter
        if self.score_rules or not self.filter_rules:
            members["score"] = score
            if self.skipping:
                members["pre_score"] = pre_score
        return type(name, (Plugin,), members)

    def notes(self, pod: Pod, state: ReadState) -> tuple[object, ...]:
        """Return what pre_filter writes to the state."""
        return tuple(each.of(pod, NodeInfo.of(Node()), state) for each in self.noted)

    def verdict(self, pod: Pod, info: NodeInfo, state: ReadState) -> Status | None:
        """Return the filter's answer. Raises what its rules raise."""
        rule = next((rule for rule in self.filter_rules if rule.applies(pod, info, state)), None)
        return None if rule is None else rule.verdict(pod, info, state)

    def skip(self, pod: Pod, state: ReadState) -> Status | None:
        if self.skipping is None:
            return None
        return None if self.skipping.of(pod, NodeInfo.of(Node()), state) % 3 else Status.skip()


_ONE_RULE: Final = st.tuples(
    st.builds(DrawnRule, conditions, st.none(), _RULE_ENDS, st.none(), st.integers(0, 100))
)
_NO_RULE: Final = st.just(())

_OF_PODS: Final = st.sampled_from([Reading(key, _READINGS[f"pod[{key}]"]) for key in POD_LABELS])

pure_hooks = st.builds(
    PureHooks,
    _ONE_RULE | _NO_RULE | st.lists(rules, max_size=3).map(tuple),
    _ONE_RULE | _NO_RULE | st.lists(rules, max_size=2).map(tuple),
    st.lists(_OF_PODS, max_size=2).map(tuple),
    st.none() | _OF_PODS,
)

# Plugins whose filter refuses some nodes by what these are, and hasn't got a score: for questions about refusals alone.
_REFUSING: Final = st.builds(
    DrawnRule,
    st.builds(DrawnCondition, st.tuples(_readings_of_node), _FEW, st.booleans()),
    st.none() | conditions,
    st.sampled_from(("refuse", "for good", "pending")),
    st.none() | readings,
    st.integers(0, 100),
)
refusing_hooks = st.builds(
    PureHooks,
    st.lists(_REFUSING, min_size=1, max_size=3).map(tuple),
    _NO_RULE,
    st.lists(_OF_PODS, max_size=2).map(tuple),
    st.none() | _OF_PODS,
)
