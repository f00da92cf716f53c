"""Whatever a hook answers, the attempt ends: with an error that names plugin and hook where the answer is wrong."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn
from unittest.mock import Mock

import numpy as np
import pytest

from kschedfw import (
    FeatureGates,
    GroupPlacement,
    InMemoryCluster,
    NodeSelection,
    PlacedGroup,
    Profile,
    QueuedGroup,
    Registry,
    make_node,
    make_pod,
    make_pod_group,
)
from kschedfw.api.meta import Named
from kschedfw.explain import Explaining
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Evidence, NodeToStatus
from kschedfw.framework.errors import PluginError
from kschedfw.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint
from kschedfw.framework.hookspecs import HOOKS
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.results import PostFilterResult, PreBindPreFlightResult, PreFilterResult, Verdicts
from kschedfw.framework.runtime import hook_answers
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.hook_answers import EXPECTED, as_evidence, as_hint, shown
from kschedfw.framework.status import Code, PluginFailure, Status
from kschedfw.simulator import Simulation
from tests.framework.support import PluginClass, answering, make_framework, plugin

NODES = [make_node(name).capacity(cpu=4, memory="8Gi", pods=10).build() for name in ("n0", "n1")]
POD = make_pod("a").requests(cpu=1).build()
OTHER = make_pod("b").requests(cpu=1).build()


class _Raising:
    """Fails in everything that one might do with an answer."""

    def _raise(self, *_: object) -> NoReturn:
        raise SystemExit(0)

    __repr__ = __str__ = __bool__ = __len__ = __iter__ = __eq__ = __hash__ = __index__ = __getitem__ = _raise


class _Long:
    def __len__(self) -> int:
        return 1 << 40

    def __getitem__(self, index: int) -> int:
        return 0


def _itself() -> list[object]:
    made: list[object] = []
    made.append(made)
    return made


def _raising_iterator() -> Iterator[object]:
    yield None
    raise SystemExit(0)


def _forged(names: object) -> PreFilterResult:
    """A result with names that its constructor refuses."""
    result = PreFilterResult.of([])
    object.__setattr__(result, "node_names", names)
    return result


RUBBISH: Mapping[str, Callable[[], object]] = {
    "an empty text": lambda: "",
    "a text": lambda: "yes",
    "a text of 1 MB with control characters": lambda: "\x1b[31m" * 200_000,
    "bytes": lambda: b"yes",
    "a number": lambda: 7,
    "a number beyond int64": lambda: 1 << 63,
    "a number of 5,000 digits": lambda: 10**5000,
    "a fraction": lambda: 0.5,
    "NaN": lambda: math.nan,
    "infinity": lambda: math.inf,
    "a truth value": lambda: True,
    "a code": lambda: Code.SUCCESS,
    "a hint": lambda: QueueingHint.QUEUE,
    "the class of the answer": lambda: Status,
    "an exception": lambda: ValueError("no"),
    "a function": lambda: answering,
    "an object": object,
    "not implemented": lambda: NotImplemented,
    "an empty list": list,
    "a list of None": lambda: [None],
    "a list of numbers": lambda: [1, 2, 3],
    "a list of itself": _itself,
    "a list of long ranges": lambda: [range(1 << 40)] * 2,
    "an empty dict": dict,
    "a dict": lambda: {"n0": 1},
    "a set": lambda: {1, 2},
    "a triple": lambda: (None, None, None),
    "a long range": lambda: range(1 << 40),
    "an endless iterator": lambda: itertools.repeat(None),
    "an endless iterator of statuses": lambda: itertools.repeat(Status.success()),
    "an iterator that exits": _raising_iterator,
    "an array of floats": lambda: np.zeros(2),
    "an array of objects": lambda: np.array([None, "a"], dtype=object),
    "an array without axes": lambda: np.array(5),
    "a matrix": lambda: np.zeros((2, 2), dtype=np.int64),
    "an array of texts": lambda: np.array(["a", "b"]),
    "a mock of a status": lambda: Mock(spec=Status),
    "a mock of a placement": lambda: Mock(spec=GroupPlacement),
    "an object of 2^40 items": _Long,
    "an object that exits whatever is done with it": _Raising,
    "a pre_filter result of a number": lambda: _forged(5),
    "a pre_filter result of a text": lambda: _forged("n0"),
    "a nomination without a status": lambda: (PostFilterResult.nominate("n0"),),
    "a nomination to a number": lambda: (PostFilterResult(5, "x"), None),  # type: ignore[arg-type]
    "a pre-flight of texts": lambda: PreBindPreFlightResult("yes", "no"),  # type: ignore[arg-type]
    "verdicts of nothing": lambda: Verdicts(None, None),  # type: ignore[arg-type]
    "verdicts without statuses": lambda: Verdicts(np.zeros(2, np.int8), ()),
    "verdicts without a success": lambda: Verdicts(np.zeros(2, np.int8), (Status.unschedulable("no"),)),
    "verdicts of too many rows": lambda: Verdicts(np.zeros(3, np.int8), (Status.success(),)),
    "verdicts of statuses without an end": lambda: Verdicts(
        np.zeros(2, np.int8),
        itertools.repeat(Status.success()),  # type: ignore[arg-type]
    ),
    "placements of numbers": lambda: [GroupPlacement("a", 5)],  # type: ignore[arg-type]
    "placements with numbers as names": lambda: [GroupPlacement(5, 5)],  # type: ignore[arg-type]
    "an event class": lambda: [ClusterEvent],
    "an event that never happens": lambda: [ClusterEvent(EventResource.NODE, ActionType.UPDATE_POD_LABEL)],
    "events without an end": lambda: itertools.repeat(ClusterEvent(EventResource.NODE, ActionType.ADD)),
}

RIGHT: Mapping[str, Sequence[str]] = {
    "queue_sort": ["a truth value"],
    "score": ["a number"],
    "placement_score": ["a number"],
    # Nothing to try, which is a refusal; nothing to wait for.
    "placement_generate": ["an empty list"],
    "events_to_register": ["an empty list"],
}
"""The kinds that are right answers of a hook."""


def ask(hook: str, framework: Framework) -> Status:
    """What the framework makes of the plugin's answer."""
    state, snapshot = CycleState(), framework.handle.snapshot
    info, every = snapshot.get("n0"), snapshot.selection
    group = QueuedGroup("default/g", None, (POD,))
    placed = [PlacedGroup(GroupPlacement(name, every), {}) for name in ("x", "y")]
    match hook:
        case "pre_enqueue":
            return framework.run_pre_enqueue_plugins(POD)
        case "queue_sort":
            framework.less(*(QueuedPodInfo(PodInfo.of(pod), 0.0) for pod in (POD, OTHER)))
        case "events_to_register":
            framework.events_to_register()
        case "pre_filter":
            return framework.run_pre_filter_plugins(state, POD)[1]
        case "pre_filter_add_pod":
            return framework.run_pre_filter_add_pod(state, POD, PodInfo.of(OTHER), info)
        case "pre_filter_remove_pod":
            return framework.run_pre_filter_remove_pod(state, POD, PodInfo.of(OTHER), info)
        case "filter":
            return framework.run_filter_plugins(state, POD, info)
        case "filter_batch":
            return framework.filter_nodes(state, POD, every).error or Status.success()
        case "post_filter":
            return framework.run_post_filter_plugins(state, POD, NodeToStatus())[1]
        case "pre_score":
            return framework.run_pre_score_plugins(state, POD, every)
        case "score" | "score_batch" | "normalize_score":
            return framework.run_score_plugins(state, POD, every)[1]
        case "placement_generate":
            return framework.run_placement_generate_plugins(state, group, GroupPlacement("", every))[1]
        case "placement_feasible":
            return framework.run_placement_feasible_plugins(state, group, placed[0], 1, 1)
        case "pod_group_post_filter":
            return framework.run_pod_group_post_filter_plugins(state, group, Status.success)
        case "placement_score" | "normalize_placement_score":
            return framework.run_placement_score_plugins(state, group, placed)[1]
        case "pre_bind_pre_flight":
            return framework.run_pre_bind_pre_flights(state, POD, "n0")
        case "reserve":
            return framework.run_reserve_plugins_reserve(state, POD, "n0")
        case "permit":
            return framework.run_permit_plugins(state, POD, "n0")
        case "pre_bind":
            return framework.run_pre_bind_plugins(state, POD, "n0")
        case "bind":
            return framework.run_bind_plugins(state, POD, "n0")
        case "unreserve":
            return next(iter(framework.run_reserve_plugins_unreserve(state, POD, "n0")), Status.success())
        case "post_bind":
            return next(iter(framework.run_post_bind_plugins(state, POD, "n0")), Status.success())
    return Status.success()


def answers(hook: str, function: Callable[..., object]) -> PluginClass:
    """A plugin with this function as its hook. The hook that it goes with passes."""
    members: dict[str, Any] = {hook: function}
    if (other := HOOKS[hook].goes_with) is not None:
        members[other] = answering(0 if "score" in other else None)
    return plugin("Evil", **members)


def outcome(hook: str, answer: object) -> Status:
    """The status that the answer becomes; an ERROR for the exception of a hook that belongs to no attempt."""
    try:
        return ask(hook, make_framework(answers(hook, lambda: answer), nodes=NODES))
    except PluginError as error:
        assert hook in ("queue_sort", "events_to_register"), hook
        return Status.from_error(error).with_plugin(error.plugin)


def test_the_table_has_every_hook() -> None:
    assert EXPECTED.keys() == {*HOOKS, "evidence", "queueing_hint", "pre_queueing_hint"}


@pytest.mark.parametrize("hook", HOOKS)
def test_rubbish_is_an_error_that_names_the_plugin_on_a_short_line(hook: str) -> None:
    for kind, make in RUBBISH.items():
        status = outcome(hook, make())
        if hook in ("unreserve", "post_bind") or kind in RIGHT.get(hook, ()):
            assert status.is_success, kind
            continue
        assert (status.code, status.plugin) == (Code.ERROR, "Evil"), kind
        assert status.message.isprintable(), kind
        assert len(status.message) < 500, kind


@pytest.mark.slow
@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook != "events_to_register"])
def test_a_simulation_that_is_explained_ends_with_a_decision_on_each_pod_that_got_rubbish(hook: str) -> None:
    """Each pod, or group of two, gets another kind; for hooks that don't see the pod it is the first of the queue."""
    gates = FeatureGates(dict.fromkeys(("GenericWorkload", "TopologyAwareWorkloadScheduling"), True), "1.37")
    kinds, turn = list(RUBBISH.values()), itertools.count()

    def evil(*arguments: object) -> object:
        given: dict[str, Any] = dict(zip(HOOKS[hook].arguments, arguments, strict=True))
        # A name ends in the number of its kind.
        named = [given[each] for each in ("group", "pod") if each in given]
        name = getattr(named[0], "key", "") if named else f"-{next(turn)}"
        return kinds[int(name.rpartition("-")[2]) % len(kinds)]()

    arguments = ", ".join(HOOKS[hook].arguments)
    # A hook is told its arguments by their names.
    function = eval(f"lambda {arguments}: evil({arguments})", {"evil": evil})
    registry = Registry()
    registry.register(answers(hook, function))
    grouped = "group" in HOOKS[hook].arguments
    objects: list[Named] = [
        make_node(name).capacity(cpu=200, memory="1Ti", pods=200).build() for name in ("n0", "n1")
    ]
    for number in range(len(kinds)):
        # Every other pod fits on no node, so that post_filter runs, too.
        pod = make_pod(f"p-{number}").requests(cpu=1 + 500 * (number % 2))
        objects.append(pod.group(f"g-{number}").build() if grouped else pod.build())
        if grouped:
            objects.append(make_pod_group(f"g-{number}").gang(1).build())
    order = () if hook == "queue_sort" else ("PrioritySort",)
    profile = Profile(
        (*order, "Evil", "NodeResourcesFit", "GangScheduling", "DefaultPreemption", "DefaultBinder")
    )
    explanations: list[object] = []
    report = Simulation(
        InMemoryCluster(objects),
        profiles=[profile],
        registry=registry,
        feature_gates=gates,
        explaining=Explaining(explanations.append),
    ).run()
    assert len(report.decisions) == len(kinds)
    assert explanations


class TestPlacements:
    """The placements of a group are nodes of the snapshot, each once, under names of their own."""

    def outcome(self, make: Callable[[NodeSelection], object]) -> Status:
        evil = plugin("Evil", placement_generate=lambda placement: make(placement.nodes))
        return ask("placement_generate", make_framework(evil, nodes=NODES))

    @pytest.mark.parametrize("rows", [[], [0], [1, 0], [0, 1]])
    def test_any_selection_of_nodes_is_one(self, rows: list[int]) -> None:
        assert self.outcome(lambda given: [GroupPlacement("x", selection(given, rows))]).is_success

    @pytest.mark.parametrize("rows", [[2], [-1], [0, 0], [[0, 1]], [0.5]])
    def test_other_rows_are_refused(self, rows: list[object]) -> None:
        assert not self.outcome(lambda given: [GroupPlacement("x", selection(given, rows))]).is_success

    def test_nodes_of_another_snapshot_are_refused(self) -> None:
        other = Snapshot.of(NODES, ()).selection
        assert not self.outcome(lambda _given: [GroupPlacement("x", other)]).is_success

    def test_two_of_one_name_are_refused(self) -> None:
        status = self.outcome(lambda given: [GroupPlacement("x", given)] * 2)
        assert (
            status.message == "placement_generate must give each placement a name of its own, not 'x' twice"
        )

    def test_more_than_a_limit_are_refused_and_not_all_asked_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(hook_answers, "MOST_PLACEMENTS", 1_000)
        asked = itertools.count()
        status = self.outcome(
            lambda given: (GroupPlacement(str(next(asked)), given) for _ in itertools.count())
        )
        assert status.message == "placement_generate must return at most 1,000 items, and there are more"
        assert next(asked) == 1_001

    def test_a_status_of_success_is_no_answer(self) -> None:
        assert self.outcome(lambda _given: Status.success()).code is Code.ERROR


def selection(of: NodeSelection, rows: Sequence[object]) -> NodeSelection:
    return NodeSelection(of.table, np.array(rows) if rows else np.array([], dtype=np.int64))


def test_scores_whose_shape_was_changed_in_place_are_an_error() -> None:
    def reshape(scores: Any) -> None:
        # NumPy 2.5 warns, and does it all the same.
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
            scores.shape = (1, 2)

    framework = make_framework(plugin("Evil", score=answering(1), normalize_score=reshape), nodes=NODES)
    assert ask("normalize_score", framework).message == (
        'running Normalize on Score plugins: plugin "Evil" failed with: '
        "scores must be int64 of shape (2,), not int64 of shape (1, 2)"
    )


def test_an_exception_without_a_text_that_can_be_read_is_named_by_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    framework = make_framework(plugin("Evil", filter=answering(Mute())), nodes=NODES)
    assert ask("filter", framework).message == 'running "Evil" filter plugin: Mute'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("retry_at", "soon"),
        ("retry_at", math.nan),
        ("retry_at", True),
        ("timeout", "long"),
        ("timeout", 0),
        ("timeout", math.nan),
        ("error", "an error"),
        ("plugin", 5),
    ],
)
def test_a_status_is_refused_when_a_field_has_another_type(field: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=rf"^{field}: expected "):
        Status(Code.UNSCHEDULABLE, **{field: value})


def test_rubbish_of_a_queueing_hint_is_an_error_and_never_a_reason_to_wait() -> None:
    for kind, make in RUBBISH.items():
        if kind == "a hint":
            assert as_hint("queueing_hint", make()) is QueueingHint.QUEUE
            continue
        with pytest.raises(PluginFailure, match=r"^queueing_hint must return a QueueingHint, not "):
            as_hint("queueing_hint", make())


def test_rubbish_as_evidence_is_told_in_its_place() -> None:
    for kind, make in RUBBISH.items():
        answer = make()
        if kind in ("an empty list", "an iterator that exits"):
            continue
        # An array without axes fails when it is iterated over, as a plugin's iterator may.
        with pytest.raises((PluginFailure, TypeError, SystemExit)):
            as_evidence("evidence", answer)
    with pytest.raises(
        PluginFailure, match=r"^evidence must return at most 1,000 items, and there are more$"
    ):
        as_evidence("evidence", itertools.repeat(Evidence("cpu")))
    with pytest.raises(PluginFailure, match=r"^evidence must return Evidence, not Evidence\("):
        as_evidence("evidence", [Evidence(5)])  # type: ignore[arg-type]


def test_what_is_shown_of_an_answer_is_a_short_line() -> None:
    for kind, make in RUBBISH.items():
        text = shown(make())
        assert text.isprintable(), kind
        assert len(text) <= 200, kind
