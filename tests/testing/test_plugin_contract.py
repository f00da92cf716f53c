"""Each check of the contract catches a plugin that breaks it, and tells its author what to do."""

from __future__ import annotations

import datetime
import random
import time
import unittest
from collections.abc import Hashable, Sequence
from typing import Any

import attrs
import numpy as np
import pytest

from kschedfw import (
    IDLE,
    ActionType,
    AmountsRule,
    ClusterEvent,
    CycleState,
    EventResource,
    FieldError,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    PostFilterResult,
    QueueingHint,
    Reads,
    StateKey,
    Status,
    Verdicts,
    hookimpl,
)
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.resource import Resource
from kschedfw.framework.nodes.pod_info import QueuedPodInfo
from kschedfw.testing import PluginContract

PLUGINS: list[tuple[type[Plugin[Any]], str, str]] = []
"""A bad plugin, the check that has to catch it, and a part of what the check has to say."""


def caught(check: str, text: str) -> Any:
    def remember(plugin: type[Plugin[Any]]) -> type[Plugin[Any]]:
        plugin.name = plugin.__name__
        PLUGINS.append((plugin, f"test_{check}", text))
        return plugin

    return remember


def contract_of(plugin: type[Plugin[Any]], **attributes: object) -> Any:
    return type("Contract", (PluginContract,), {"plugin": plugin, "max_examples": 5, **attributes})()


# --- Hooks and arguments -----------------------------------------------------------------------------------------

ACCEPTED = "hooks_and_arguments_are_accepted"
ARGUMENTS = "arguments_are_read_from_a_configuration_and_checked"


@caught(ACCEPTED, "did you mean 'filter'?")
class Misspelt(Plugin):
    @hookimpl
    def filters(self, pod: Pod) -> None: ...  # type: ignore[kschedfw]


@caught(ACCEPTED, "its method 'filter' is not marked @hookimpl")
class Unmarked(Plugin):
    def filter(self, pod: Pod) -> None: ...  # type: ignore[kschedfw]


@caught(ACCEPTED, "Hookless has no hook at all")
class Hookless(Plugin): ...


class AnythingGoes(dict[str, object]): ...


class PlainArgs:
    def __init__(self, **given: object) -> None:
        self.given = given


@attrs.frozen
class Unreadable:
    zones: frozenset[str] | complex = frozenset({"a"})


@attrs.frozen
class Unvalidated:
    share: int = 100


@attrs.frozen
class Raising:
    share: int = 1

    def validate(self) -> Sequence[FieldError]:
        return [FieldError.invalid("share", self.share, "too large")] if 100 // self.share < 1 else []


@caught(ARGUMENTS, "TakesAnything doesn't refuse the argument noSuchField")
class TakesAnything(Plugin[AnythingGoes]):
    args_type = AnythingGoes


@caught(ACCEPTED, "its args_type PlainArgs is no attrs class; decorate it with @attrs.frozen")
class TakesAPlainClass(Plugin[PlainArgs]):
    args_type = PlainArgs


@caught(ARGUMENTS, "arguments {'share': 0} are neither refused nor usable")
class DividesByZero(Plugin[Unvalidated]):
    args_type = Unvalidated

    def __init__(self, args: Unvalidated, handle: Any) -> None:
        super().__init__(args, handle)
        self.parts = 100 // args.share


@caught(ARGUMENTS, "`validate` of the arguments yields a FieldError")
class ValidateRaises(Plugin[Raising]):
    args_type = Raising


# --- Looking -----------------------------------------------------------------------------------------------------

FILTER = "filter_answers_the_same_twice_and_changes_nothing"
SCORE = "score_answers_the_same_twice_and_changes_nothing"
RANGE = "scores_are_whole_numbers_from_0_to_100"


@caught(FILTER, "and when asked again")
class Countdown(Plugin):
    calls = 0

    @hookimpl
    def filter(self) -> Status | None:
        type(self).calls += 1
        return Status.unschedulable("node(s) came third") if self.calls % 3 == 0 else None


@caught(FILTER, "Grabbing.filter raised AttributeError: node 'node-")
class Grabbing(Plugin):
    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> None:
        node_info.pods = ()


@caught(FILTER, "Burgling.filter (or filter_batch) changes the NodeInfo of node-")
class Burgling(Plugin):
    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> None:
        object.__setattr__(node_info, "requested", Resource(milli_cpu=1))


@caught(FILTER, "changes the columns of the NodeTable")
class OverwritesColumns(Plugin):
    @hookimpl
    def filter(self) -> None: ...

    @hookimpl
    def filter_batch(self, nodes: NodeTable, rows: Any) -> Verdicts:
        counts = nodes.pod_counts
        counts.setflags(write=True)
        counts[rows] += 1
        return Verdicts.passing(len(rows))


@caught(FILTER, "WritesLate.filter (or filter_batch) writes to the cycle state")
class WritesLate(Plugin):
    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> None:
        state.write(StateKey[str]("WritesLate.node"), node_info.name)


ASKED = StateKey[Any]("asked")


@caught(FILTER, "Appends.filter (or filter_batch) writes to the cycle state, or changes a value in it: asked")
class Appends(Plugin):
    start: Any = staticmethod(list)

    @hookimpl
    def pre_filter(self, state: CycleState) -> None:
        state.write(ASKED, self.start())

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> None:
        state.read(ASKED).append(node_info.name)


class Names:
    def __init__(self) -> None:
        self.names: list[str] = []

    def append(self, name: str) -> None:
        self.names.append(name)


@caught(
    FILTER,
    "AppendsWithin.filter (or filter_batch) writes to the cycle state, or changes a value in it: asked",
)
class AppendsWithin(Appends):
    start = Names


class Counters:
    def __init__(self) -> None:
        self.counts = np.zeros(5000)

    def append(self, name: str) -> None:
        self.counts[2500] += 1


@caught(
    FILTER,
    "CountsInAnArray.filter (or filter_batch) writes to the cycle state, or changes a value in it: asked",
)
class CountsInAnArray(Appends):
    start = Counters


@caught(
    SCORE, "CountsInScore.score (or score_batch) writes to the cycle state, or changes a value in it: asked"
)
class CountsInScore(Plugin):
    @hookimpl
    def pre_score(self, state: CycleState) -> None:
        state.write(ASKED, {})

    @hookimpl
    def score(self, state: CycleState, node_info: NodeInfo) -> int:
        state.read(ASKED)[node_info.name] = 1
        return 1


@caught(FILTER, "Bossy.filter (or filter_batch) changes the cluster's events")
class Bossy(Plugin):
    @hookimpl
    def filter(self, pod: Pod) -> None:
        self.handle.cluster.record_event(pod, "Normal", "Asked", "filter was asked")


@caught(FILTER, "WrongForm.filter_batch returned codes of shape")
class WrongForm(Plugin):
    @hookimpl
    def filter(self) -> None: ...

    @hookimpl
    def filter_batch(self, nodes: NodeTable) -> Verdicts:
        return Verdicts.passing(len(nodes) + 1)


@caught(FILTER, "with 1 statuses")
class CodeTooHigh(Plugin):
    @hookimpl
    def filter(self) -> None: ...

    @hookimpl
    def filter_batch(self, rows: Any) -> Verdicts:
        return Verdicts(np.ones(len(rows), dtype=np.int8), (Status.success(),))


@caught(FILTER, "Skipping.filter answered Skip")
class Skipping(Plugin):
    @hookimpl
    def filter(self) -> Status:
        return Status.skip()


@caught(FILTER, "Silent.filter answered Unschedulable without a reason")
class Silent(Plugin):
    @hookimpl
    def filter(self) -> Status:
        return Status.unschedulable()


@caught(FILTER, "Truth.filter returned False")
class Truth(Plugin):
    @hookimpl
    def filter(self) -> Any:
        return False


@caught(FILTER, "Waiting.pre_filter answered Wait")
class Waiting(Plugin):
    @hookimpl
    def pre_filter(self) -> Status:
        return Status.wait(1)

    @hookimpl
    def filter(self) -> None: ...


@caught(SCORE, "Alternating.score says")
class Alternating(Plugin):
    @hookimpl
    def score(self) -> int:
        self.last = 1 - getattr(self, "last", 0)
        return self.last


@caught(SCORE, "Floats.score_batch returned")
class Floats(Plugin):
    @hookimpl
    def score(self) -> int:
        return 1

    @hookimpl
    def score_batch(self, rows: Any) -> Any:
        return np.ones(len(rows))


@caught(RANGE, "-1")
class BelowZero(Plugin):
    @hookimpl
    def score(self) -> int:
        return -1


@caught(RANGE, "score must return an int, not 0.5")
class Half(Plugin):
    @hookimpl
    def score(self) -> Any:
        return 0.5


@caught(RANGE, "division")
class DividesByTheRange(Plugin):
    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return len(node_info.pods)

    @hookimpl
    def normalize_score(self, scores: Any) -> Any:
        low, high = int(scores.min()), int(scores.max())
        return np.array([100 * (int(score) - low) // (high - low) for score in scores])


# --- Batches, memory, chance -------------------------------------------------------------------------------------

EVALUATION = "every_evaluation_gives_the_same_answers_while_the_cluster_changes"
CHANCE = "two_instances_with_the_same_seed_and_clock_agree"


@caught(EVALUATION, "answers differently from memory")
class NotSoIdle(Plugin):
    """Says that pods are none of its business, and refuses nodes."""

    reads = Reads.CLUSTER

    def sign(self, pod: Pod) -> Hashable:
        return IDLE

    @hookimpl
    def pre_filter(self, pod: Pod) -> None: ...

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("node(s) had an odd number of pods") if len(node_info.pods) % 2 else None


@caught(EVALUATION, "answers differently from memory")
class FollowsNoRule(Plugin):
    """Names a rule of amounts, and refuses nodes for another reason."""

    @property
    def amounts_rule(self) -> AmountsRule:
        return AmountsRule.LEAST_ALLOCATED

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("node(s) had an odd number of pods") if len(node_info.pods) % 2 else None


@caught(EVALUATION, "answers differently in batches")
class OtherBatch(Plugin):
    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return min(100, len(node_info.pods))

    @hookimpl
    def score_batch(self, rows: Any) -> Any:
        return np.zeros(len(rows), dtype=np.int64)


@caught(EVALUATION, "answers differently from memory")
class PromisesTooMuch(Plugin):
    reads = Reads.NODE

    def sign(self, pod: Pod) -> Hashable:
        return ()

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return min(100, len(node_info.pods))


@caught(EVALUATION, "what the time makes of an answer belongs into `sign`, or into a refusal's `retry_at`")
class ClosesAtNight(Plugin):
    reads = Reads.NODE

    def sign(self, pod: Pod) -> Hashable:
        return ()

    @hookimpl
    def filter(self) -> Status | None:
        hour = datetime.datetime.fromtimestamp(self.handle.clock.now(), datetime.UTC).hour
        return None if 9 <= hour < 17 else Status.unresolvable("node(s) were closed")


@caught(CHANCE, "draws from the global random generator")
class Gambling(Plugin):
    @hookimpl
    def score(self) -> int:
        return random.randint(0, 100)


@caught(CHANCE, "draws from the global random generator")
class GamblingWithNumPy(Plugin):
    @hookimpl
    def score(self) -> int:
        return int(np.random.randint(100))


@caught(CHANCE, "reads the wall clock")
class LooksAtTheClock(Plugin):
    @hookimpl
    def score(self) -> int:
        return int(time.time() / 100_000) % 100


@caught(CHANCE, "reads the wall clock")
class LooksAtTheDate(Plugin):
    @hookimpl
    def filter(self) -> Status | None:
        late = datetime.datetime.now(datetime.UTC).year > 2030
        return Status.unschedulable("node(s) were out of support") if late else None


@caught(CHANCE, "a hook of Sleeps sleeps for 30 s, and nothing is scheduled meanwhile")
class Sleeps(Plugin):
    @hookimpl
    def filter(self) -> None:
        time.sleep(30)


@caught(CHANCE, "two instances of SharesBooks with the same seed and clock disagree on")
class SharesBooks(Plugin):
    reserved: set[str] = set()  # noqa: RUF012  # that is what is wrong

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return Status.unresolvable("was here already") if pod.uid in self.reserved else None

    @hookimpl
    def reserve(self, pod: Pod) -> None:
        self.reserved.add(pod.uid)


# --- Another process ---------------------------------------------------------------------------------------------

ELSEWHERE = "another_hash_seed_and_time_zone_change_no_answer"


@caught(
    ELSEWHERE, "ListsASet answers otherwise in another process, with another hash seed and in another time"
)
class ListsASet(Plugin):
    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status:
        missing = {f"feature-{number}" for number in range(9)} - node_info.node.labels.keys()
        return Status.unschedulable(f"node(s) lacked {', '.join(missing)}")


@caught(ELSEWHERE, "give `datetime.fromtimestamp` a time zone")
class OpensInTheMorning(Plugin):
    @hookimpl
    def filter(self) -> Status | None:
        morning = datetime.datetime.fromtimestamp(self.handle.clock.now()).hour < 12  # noqa: DTZ006  # that is wrong
        return None if morning else Status.unschedulable("node(s) were closed")


# --- Purity ------------------------------------------------------------------------------------------------------

PURE = "pure_hooks_depend_on_their_arguments_alone"
WAYS = "every_evaluation_gives_the_same_answers_while_the_cluster_changes"


class _Pure(Plugin):
    """The base of plugins that say that they are pure and aren't."""

    pure = True

    def __init__(self, args: None, handle: Any) -> None:
        super().__init__(args, handle)
        self.seen: set[str] = set()
        self.calls = 0
        self.nodes, self.clock = handle.snapshot, handle.clock


@caught(
    "pure_hooks_before_filter_and_score_depend_on_the_pod_alone",
    "LooksUpInTheCluster.pre_filter, which says that it is pure, asks the handle for its cluster",
)
class LooksUpInTheCluster(_Pure):
    @hookimpl
    def pre_filter(self) -> Status | None:
        return None if self.handle.cluster.list(Pod) else Status.skip()

    @hookimpl
    def filter(self) -> None: ...


@caught(PURE, "AsksForTheSnapshot.score, which says that it is pure, asks the handle for its snapshot")
class AsksForTheSnapshot(_Pure):
    @hookimpl
    def score(self) -> int:
        return min(100, len(self.handle.snapshot))


@caught(PURE, "AsksForTheTime.filter, which says that it is pure, asks the handle for its clock")
class AsksForTheTime(_Pure):
    @hookimpl
    def filter(self) -> Status | None:
        return Status.unschedulable("node(s) rest") if self.handle.clock.now() % 2 else None


@caught(PURE, "DrawsLots.score, which says that it is pure, asks the handle for its random")
class DrawsLots(_Pure):
    @hookimpl
    def score(self) -> int:
        return self.handle.random.randint(0, 100)


@caught(PURE, "CountsCalls.score, which says that it is pure, changes the plugin's attribute calls")
class CountsCalls(_Pure):
    @hookimpl
    def score(self) -> int:
        self.calls += 1
        return self.calls % 101


@caught(PURE, "RemembersPods.filter, which says that it is pure, changes the plugin's attribute seen")
class RemembersPods(_Pure):
    @hookimpl
    def filter(self, pod: Pod) -> Status | None:
        self.seen.add(pod.uid)
        return Status.unschedulable("node(s) had enough") if len(self.seen) > 1 else None


@caught(PURE, "CountsForAll.score, which says that it is pure, changes the plugin's attribute asked")
class CountsForAll(_Pure):
    asked: list[str] = []  # noqa: RUF012  # that is what is wrong

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        self.asked.append(node_info.name)
        return 1


@caught(PURE, "FollowsReservations.score, which says that it is pure, answers ")
class FollowsReservations(_Pure):
    @hookimpl
    def score(self) -> int:
        return min(100, len(self.seen))

    @hookimpl
    def reserve(self, pod: Pod) -> None:
        self.seen.add(pod.uid)

    @hookimpl
    def unreserve(self, pod: Pod) -> None:
        self.seen.discard(pod.uid)


@caught(PURE, "KeptTheClock.score, which says that it is pure, answers ")
class KeptTheClock(_Pure):
    @hookimpl
    def score(self) -> int:
        return int(self.clock.now() // 100) % 101


_OF_THE_MODULE: list[str] = []


@caught(PURE, "AddsToTheModule.score, which says that it is pure, answers ")
class AddsToTheModule(_Pure):
    @hookimpl
    def score(self, pod: Pod) -> int:
        _OF_THE_MODULE.append(pod.name)
        return len(_OF_THE_MODULE) % 101


@caught(WAYS, "KeptTheNodes answers differently from memory")
class KeptTheNodes(_Pure):
    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        pods = sum(len(each.pods) for each in self.nodes.node_infos)
        return (pods + len(node_info.node.labels)) % 101


@caught(CHANCE, "draws from the global random generator")
class PureGambling(_Pure):
    @hookimpl
    def score(self) -> int:
        return random.randint(0, 100)


@caught(CHANCE, "reads the wall clock")
class PureLookAtTheClock(_Pure):
    @hookimpl
    def score(self) -> int:
        return int(time.time() / 100_000) % 100


# --- What users write --------------------------------------------------------------------------------------------

USERS = "nothing_that_users_write_makes_a_hook_raise"


@caught(USERS, "of pods and nodes (example.com/racks)")
class TrustsAnnotations(Plugin):
    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return Status.skip() if int(pod.annotations.get("example.com/racks", "0")) else None


@caught(USERS, "TrustsNodeLabels.score raised ValueError: ")
class TrustsNodeLabels(Plugin):
    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return min(100, max(0, int(node_info.node.labels.get("speed", "1"))))


@caught(USERS, "hint for NodeAdd raised ValueError: ")
class TrustsInHints(Plugin):
    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [ClusterEvent(EventResource.NODE, ActionType.ADD, self.hint)]

    def hint(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        node = new or old
        return QueueingHint.QUEUE if float(node.labels.get("speed", "1")) else QueueingHint.SKIP


# --- Following pods ----------------------------------------------------------------------------------------------

FOLLOWING = "following_pods_is_undone_and_never_reaches_the_original_state"
COUNTS = StateKey[dict[str, int]]("counts")


class Counting(Plugin):
    """At most one pod more in the cluster than there was, counted per node."""

    name = "Counting"

    @hookimpl
    def pre_filter(self, state: CycleState, nodes: Sequence[NodeInfo]) -> None:
        state.write(COUNTS, {info.name: len(info.pods) for info in nodes})

    @hookimpl
    def filter(self, state: CycleState, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable(f"node(s) had {state.read(COUNTS)[node_info.name]} pods")


@caught(FOLLOWING, "on a clone of the cycle state changes what filter answers from the original")
class NoClone(Counting):
    @hookimpl
    def pre_filter_add_pod(self, state: CycleState, node_info: NodeInfo) -> None:
        state.read(COUNTS)[node_info.name] += 1

    @hookimpl
    def pre_filter_remove_pod(self, state: CycleState, node_info: NodeInfo) -> None:
        state.read(COUNTS)[node_info.name] -= 1


@caught(FOLLOWING, "of the same pod, filter answers otherwise than before")
class DoesNotUndo(Counting):
    @hookimpl
    def pre_filter_add_pod(self, state: CycleState, node_info: NodeInfo) -> None:
        counts = state.read(COUNTS)
        state.write(COUNTS, {**counts, node_info.name: counts[node_info.name] + 1})

    @hookimpl
    def pre_filter_remove_pod(self) -> None: ...


@caught(FOLLOWING, "has pre_filter_add_pod but not pre_filter_remove_pod")
class OnlyAdds(Counting):
    @hookimpl
    def pre_filter_add_pod(self) -> None: ...


# --- Books -------------------------------------------------------------------------------------------------------

GIVES_BACK = "unreserve_gives_back_what_reserve_took"
TWICE = "a_second_unreserve_gives_nothing_back"
NEVER_WAS = "unreserve_copes_with_a_reserve_that_never_was"
PERMIT = "a_wait_at_permit_is_finite_and_ends"


RESTORED = "a_restored_plugin_answers_as_when_it_was_saved"
FORGOTTEN = "failed_attempts_can_be_forgotten"


class Licences(Plugin):
    """Two licences for the whole cluster."""

    name = "Licences"

    def __init__(self, args: None, handle: Any) -> None:
        super().__init__(args, handle)
        self.free = 2

    @hookimpl
    def pre_filter(self) -> Status | None:
        return None if self.free > 0 else Status.unschedulable("no licence is free")

    @hookimpl
    def reserve(self) -> None:
        self.free -= 1


@caught(GIVES_BACK, "unreserve has to give back, all of it")
class Leaks(Licences): ...


class OnceOnly(Plugin):
    """Keeps off nodes where a place was reserved before, which `unreserve` doesn't undo."""

    name = "OnceOnly"

    def __init__(self, args: None, handle: Any) -> None:
        super().__init__(args, handle)
        self.seen = [""]

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("node(s) had their turn") if node_info.name in self.seen else None

    @hookimpl
    def reserve(self, node_name: str) -> None:
        self.seen.append(node_name)

    @hookimpl
    def unreserve(self) -> None: ...

    def forget_attempts(self) -> None:
        del self.seen[1:]


@caught(RESTORED, "belongs into the token of `save_state`, as a copy")
class NeverSaved(OnceOnly): ...


@caught(RESTORED, "belongs into the token of `save_state`, as a copy")
class SavesNoCopy(OnceOnly):
    def save_state(self) -> list[str]:
        return self.seen

    def restore_state(self, token: list[str]) -> None:
        self.seen = token


@caught(FORGOTTEN, "what is known of attempts that came to nothing")
class BearsGrudges(OnceOnly):
    def save_state(self) -> tuple[str, ...]:
        return tuple(self.seen)

    def restore_state(self, token: tuple[str, ...]) -> None:
        self.seen = list(token)

    def forget_attempts(self) -> None: ...


@caught(TWICE, "it must be idempotent")
class GivesBackTwice(Licences):
    @hookimpl
    def unreserve(self) -> None:
        self.free += 1


@caught(NEVER_WAS, "OnlyIfReserved.unreserve raised KeyError")
class OnlyIfReserved(Plugin):
    def __init__(self, args: None, handle: Any) -> None:
        super().__init__(args, handle)
        self.reserved: dict[str, str] = {}

    @hookimpl
    def reserve(self, pod: Pod, node_name: str) -> None:
        self.reserved[pod.uid] = node_name

    @hookimpl
    def unreserve(self, pod: Pod) -> None:
        del self.reserved[pod.uid]


@caught(NEVER_WAS, "without a reserve")
class GivesWhatItHasNot(Plugin):
    free = 0

    @hookimpl
    def pre_filter(self) -> Status | None:
        return None if self.free > 0 else Status.unschedulable("no licence is free")

    @hookimpl
    def unreserve(self) -> None:
        self.free += 1


@caught(PERMIT, "Forever.permit asks to wait for inf seconds")
class Forever(Plugin):
    @hookimpl
    def permit(self) -> Status:
        return Status.wait(float("inf"))


@caught(PERMIT, "Untimed.permit asks to wait for None seconds")
class Untimed(Plugin):
    @hookimpl
    def permit(self) -> Status:
        from kschedfw import Code

        return Status(Code.WAIT)


@caught(PERMIT, "unreserve has to forget, however the wait has ended")
class NeverForgets(Plugin):
    """Lets pods go once two are there."""

    def __init__(self, args: None, handle: Any) -> None:
        super().__init__(args, handle)
        self.there: set[str] = set()

    @hookimpl
    def permit(self, pod: Pod) -> Status | None:
        self.there.add(pod.uid)
        return Status.wait(10) if len(self.there) < 2 else None


# --- The queue ---------------------------------------------------------------------------------------------------

ORDER = "queue_sort_is_a_strict_weak_order"
ENQUEUE = "pre_enqueue_answers_the_same_twice_and_changes_nothing"
EVENTS = "events_are_cluster_events_and_their_hints_answer"


@caught(ORDER, "NotStrict.queue_sort is no strict weak order")
class NotStrict(Plugin):
    @hookimpl
    def queue_sort(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        return first.pod.priority >= second.pod.priority


@caught(ORDER, "Circular.queue_sort is no strict weak order")
class Circular(Plugin):
    @hookimpl
    def queue_sort(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        return (first.sequence - second.sequence) % 3 == 1


@caught(ENQUEUE, "answers otherwise when asked again")
class LetsInTheSecondTime(Plugin):
    def __init__(self, args: None, handle: Any) -> None:
        super().__init__(args, handle)
        self.seen: set[str] = set()

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        if pod.uid in self.seen:
            return None
        self.seen.add(pod.uid)
        return Status.pending("is new here")


@caught(EVENTS, "events_to_register returned")
class NamesEvents(Plugin):
    @hookimpl
    def events_to_register(self) -> Any:
        return ["Node/Add"]


@caught(EVENTS, "resource: expected an EventResource or a CustomKind, found 'Node'")
class NamesResources(Plugin):
    @hookimpl
    def events_to_register(self) -> Any:
        return [ClusterEvent("Node", ActionType.ADD)]  # type: ignore[arg-type]  # that is what is wrong


@caught(EVENTS, "NamesWhatNeverHappens.events_to_register names NodeUpdatePodLabel, which never happens")
class NamesWhatNeverHappens(Plugin):
    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [ClusterEvent(EventResource.NODE, ActionType.UPDATE_POD_LABEL)]


@caught(EVENTS, "the hint for NodeDelete raised AttributeError")
class ForgetsDeletions(Plugin):
    @hookimpl
    def events_to_register(self) -> Any:
        return [ClusterEvent(EventResource.NODE, ActionType.DELETE, self.hint)]

    def hint(self, pod: Pod, old: Any, new: Any) -> QueueingHint:
        return QueueingHint.QUEUE if new.labels else QueueingHint.SKIP


@caught(EVENTS, "the hint for NodeAdd returned True")
class HintsTruth(Plugin):
    @hookimpl
    def events_to_register(self) -> Any:
        return [ClusterEvent(EventResource.NODE, ActionType.ADD, lambda pod, old, new: True)]  # type: ignore[arg-type, return-value]  # that is what is wrong


@caught(EVENTS, "the pre_hint for NodeAdd returned None")
class ForgetsToReturn(Plugin):
    """Its pre_hint answers nothing, and no hint queues a pod."""

    @hookimpl
    def events_to_register(self) -> Any:
        def skip(pod: Pod, old: Any, new: Any) -> QueueingHint:
            return QueueingHint.SKIP

        def forgets(old: Any, new: Any) -> Any:
            pass

        return [ClusterEvent(EventResource.NODE, ActionType.ADD, skip, pre_hint=forgets)]


@caught(EVENTS, "the hint for NodeAdd queues a pod, and its pre_hint says that none is")
class HintsMoreThanItsPreHint(Plugin):
    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        hint, nobody = (lambda pod, old, new: QueueingHint.QUEUE), (lambda old, new: False)
        return [ClusterEvent(EventResource.NODE, ActionType.ADD, hint, pre_hint=nobody)]


WAKING = "a_pod_that_waited_is_placed_as_by_a_new_scheduler"


@caught(WAKING, "refused isn't tried again when Node node-")
class HearsOfNewNodesAlone(Plugin):
    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("node(s) had taints") if node_info.node.spec.taints else None

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [ClusterEvent(EventResource.NODE, ActionType.ADD)]


class OpenInEvenMinutes(Plugin):
    """Its answers depend on the time alone, and each refusal says when it ends."""

    name = "OpenInEvenMinutes"

    @hookimpl
    def filter(self) -> Status | None:
        minute = self.handle.clock.now() // 60
        return None if minute % 2 == 0 else Status.unschedulable("node(s) rest", retry_at=(minute + 1) * 60)

    @hookimpl
    def events_to_register(self) -> Sequence[ClusterEvent]:
        return [ClusterEvent(EventResource.NODE, ActionType.ADD)]


class OpenForMoments(OpenInEvenMinutes):
    """Open for 5 of 37 seconds, so that most attempts miss it."""

    name = "OpenForMoments"

    @hookimpl
    def filter(self) -> Status | None:
        now = self.handle.clock.now()
        return None if now % 37 < 5 else Status.unschedulable("node(s) rest", retry_at=now - now % 37 + 37)


@caught(WAKING, "a refusal that ends by itself needs `retry_at`")
class ReopensInSecret(OpenInEvenMinutes):
    @hookimpl
    def filter(self) -> Status | None:
        return None if self.handle.clock.now() // 60 % 2 == 0 else Status.unschedulable("node(s) rest")


@caught(WAKING, "refused isn't tried again when")
class ReopensLaterThanItIsOpen(OpenInEvenMinutes):
    @hookimpl
    def filter(self) -> Status | None:
        now = self.handle.clock.now()
        return None if now // 60 % 2 == 0 else Status.unschedulable("node(s) rest", retry_at=now + 3_600)


# --- Making room, and binding ------------------------------------------------------------------------------------

POST_FILTER = "post_filter_nominates_a_node_that_exists_and_only_tries_things_out"
PRE_FLIGHT = "pre_bind_pre_flight_says_whether_there_is_work_to_do_and_does_none"
PRE_BIND = "pre_bind_prepares_and_does_not_bind"
BIND = "bind_binds_to_the_chosen_node_or_says_why_not"
GONE = "bind_fails_with_a_status_for_a_pod_that_is_gone"
POST_BIND = "post_bind_never_fails"


@caught(POST_FILTER, "nominates 'nowhere', and there is no such node")
class NominatesNowhere(Plugin):
    @hookimpl
    def post_filter(self) -> tuple[PostFilterResult, None]:
        return PostFilterResult.nominate("nowhere"), None


@caught(POST_FILTER, "a snapshot's NodeInfo is read-only; change a clone() of it")
class EvictsForReal(Plugin):
    @hookimpl
    def post_filter(self) -> tuple[None, Status]:
        for info in self.handle.snapshot.node_infos:
            for each in list(info.pods):
                info.remove_pod(each.pod)
        return None, Status.unschedulable("it was no use")


@caught(POST_FILTER, "return a pair")
class ForgetsThePair(Plugin):
    @hookimpl
    def post_filter(self) -> Any:
        return Status.unschedulable("it was no use")


@caught(PRE_FLIGHT, "RefusesTooLate.pre_bind_pre_flight returned Status(code=<Code.UNSCHEDULABLE")
class RefusesTooLate(Plugin):
    @hookimpl
    def pre_bind_pre_flight(self) -> Status:
        return Status.unschedulable("too late")

    @hookimpl
    def pre_bind(self) -> None: ...


@caught(PRE_FLIGHT, "ActsTooEarly.pre_bind_pre_flight changes the objects in the cluster")
class ActsTooEarly(Plugin):
    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod) -> None:
        self.handle.cluster.patch_pod_status(pod, nominated_node_name="elsewhere")

    @hookimpl
    def pre_bind(self) -> None: ...


@caught(PRE_BIND, "BindsEarly.pre_bind binds the pod, to 'node-")
class BindsEarly(Plugin):
    @hookimpl
    def pre_bind(self, pod: Pod, node_name: str) -> None:
        self.handle.cluster.bind(pod, node_name)


@caught(BIND, "ForgetsToBind.bind answered Success; the pod, for 'node-")
class ForgetsToBind(Plugin):
    @hookimpl
    def bind(self) -> None: ...


@caught(BIND, "BindsAndSkips.bind answered Skip; the pod, for 'node-")
class BindsAndSkips(Plugin):
    @hookimpl
    def bind(self, pod: Pod, node_name: str) -> Status:
        self.handle.cluster.bind(pod, node_name)
        return Status.skip()


@caught(BIND, "is bound to 'elsewhere'")
class BindsElsewhere(Plugin):
    @hookimpl
    def bind(self, pod: Pod) -> None:
        self.handle.cluster.bind(pod, "elsewhere")


@caught(GONE, "BindsOnly.bind raised NotFoundError")
class BindsOnly(Plugin):
    @hookimpl
    def bind(self, pod: Pod, node_name: str) -> None:
        self.handle.cluster.bind(pod, node_name)


@caught(GONE, "bind answered Success for a pod that was deleted meanwhile")
class KeepsQuiet(Plugin):
    @hookimpl
    def bind(self, pod: Pod, node_name: str) -> None:
        try:
            self.handle.cluster.bind(pod, node_name)
        except Exception:
            return


@caught(POST_BIND, "NeedsThePod.post_bind raised AttributeError")
class NeedsThePod(Plugin):
    @hookimpl
    def post_bind(self, pod: Pod) -> None:
        stored: Any = self.handle.cluster.get(Pod, pod.key)
        assert stored.node_name


# --- The tests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("plugin", "check", "text"), PLUGINS, ids=[each[0].__name__ for each in PLUGINS])
def test_a_bad_plugin_is_caught_and_its_author_told(plugin: type[Plugin[Any]], check: str, text: str) -> None:
    with pytest.raises(AssertionError) as raised:
        getattr(contract_of(plugin), check)()
    said = str(raised.value)
    assert text in said
    assert "\n  → " in said, "it says what to do"


def test_a_failure_shows_the_cluster_in_manifests() -> None:
    with pytest.raises(AssertionError) as raised:
        getattr(contract_of(Silent), f"test_{FILTER}")()
    (note,) = raised.value.__notes__
    assert note.startswith("in a cluster whose nodes and pods are like these:\n  {")
    assert note.count('"kind": "Node"') == note.count('"kind": "Pod"') == 1, (
        "one of each is enough for this plugin"
    )


class Polite(Plugin):
    """Nothing is wrong with it."""

    name = "Polite"

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("node(s) were full") if len(node_info.pods) > 1 else None


class OpensOnce(Plugin):
    """Its answers depend on the time until a time that it names, and then no more."""

    name = "OpensOnce"
    reads = Reads.NODE
    opening = 1_700_000_300.0  # five minutes after the contract's clock begins

    def sign(self, pod: Pod) -> Hashable:
        return ()

    @hookimpl
    def filter(self) -> Status | None:
        if self.handle.clock.now() >= self.opening:
            return None
        return Status.unresolvable("node(s) were closed", retry_at=self.opening)


def test_a_refusal_that_names_its_time_may_promise_that_answers_last() -> None:
    getattr(contract_of(OpensOnce), f"test_{EVALUATION}")()


@pytest.mark.parametrize("plugin", [OpenInEvenMinutes, OpenForMoments])
def test_a_refused_pod_may_wait_for_a_time_that_the_refusal_names(plugin: type[Plugin[Any]]) -> None:
    getattr(contract_of(plugin), f"test_{WAKING}")()


class EndsIn2030(Plugin):
    """Wrong, but only at the end of 2029."""

    name = "EndsIn2030"
    reads = Reads.NODE
    end = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)

    def sign(self, pod: Pod) -> Hashable:
        return ()

    @hookimpl
    def filter(self) -> Status | None:
        ended = self.handle.clock.now() >= self.end.timestamp()
        return Status.unresolvable("node(s) were out of support") if ended else None


def test_start_time_brings_the_clock_to_the_times_that_a_plugin_knows() -> None:
    getattr(contract_of(EndsIn2030), f"test_{EVALUATION}")()
    just_before = EndsIn2030.end - datetime.timedelta(minutes=2)
    with pytest.raises(AssertionError, match="answers differently from memory"):
        getattr(contract_of(EndsIn2030, start_time=just_before), f"test_{EVALUATION}")()


def test_a_plugin_that_another_process_cannot_import_is_not_asked_there() -> None:
    class Local(Polite):
        name = "Local"

    with pytest.raises(
        unittest.SkipTest, match=r"another process can't make .*Local: .*at the top of a module"
    ):
        getattr(contract_of(Local), f"test_{ELSEWHERE}")()


def checks_of(contract: type[PluginContract]) -> set[str]:
    return {
        name for name in dir(contract) if name.startswith("test_") and getattr(contract, name) is not None
    }


def test_there_is_a_test_for_the_hooks_that_a_plugin_has_and_none_for_others() -> None:
    checks = checks_of(type(contract_of(Polite)))
    assert f"test_{FILTER}" in checks
    assert not {f"test_{check}" for check in (SCORE, RANGE, FOLLOWING, PERMIT, BIND)} & checks


def test_a_contract_inherited_for_another_plugin_has_that_ones_tests() -> None:
    contract = type("Other", (type(contract_of(Polite)),), {"plugin": BelowZero})
    assert f"test_{SCORE}" in checks_of(contract)
    assert f"test_{FILTER}" not in checks_of(contract)


def test_a_good_plugin_passes() -> None:
    contract = contract_of(Polite)
    for check in checks_of(type(contract)):
        getattr(contract, check)()


def test_every_check_has_a_plugin_that_it_catches() -> None:
    everything = {name for name in dir(PluginContract) if name.startswith("test_")}
    assert everything - {REFUSES, DIFFER} == {check for _, check, _ in PLUGINS}, (
        "those two only skip; see below"
    )


REFUSES = "test_filter_refuses_some_node"
DIFFER = "test_scores_differ_between_some_nodes"


class Gpus(Plugin):
    """Has an opinion on pods with a certain annotation alone."""

    name = "Gpus"

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return None if "gpus" in pod.annotations else Status.skip()

    @hookimpl
    def filter(self, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("node(s) were too full") if len(node_info.pods) > 1 else None

    @hookimpl
    def pre_score(self, pod: Pod) -> Status | None:
        return self.pre_filter(pod)

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return max(0, 100 - len(node_info.pods))


class Modest(Plugin):
    name = "Modest"
    pure = True

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        app = pod.labels.get("app")
        if app is None or app not in [each.pod.labels.get("app") for each in node_info.pods]:
            return None
        return Status.unschedulable("node(s) had one of these")

    @hookimpl
    def score(self, node_info: NodeInfo) -> int:
        return max(0, 100 - len(node_info.pods))


@pytest.mark.parametrize("check", [f"test_{PURE}", f"test_{WAYS}"])
def test_a_plugin_that_is_pure_breaks_no_rule(check: str) -> None:
    getattr(contract_of(Modest), check)()


class Content(Plugin):
    name = "Content"

    @hookimpl
    def filter(self) -> None: ...

    @hookimpl
    def score(self) -> int:
        return 7


class TestOpinions:
    """A contract that is kept because the plugin is never asked, or never says no, is told as such."""

    @pytest.mark.parametrize(
        ("plugin", "check", "text"),
        [
            (
                Gpus,
                REFUSES,
                "Gpus.filter refuses no node in the generated clusters (it was asked about none, since",
            ),
            (
                Gpus,
                DIFFER,
                "Gpus scores all nodes of a generated cluster alike, for every pod (it was asked about none",
            ),
            (
                Content,
                REFUSES,
                "Content.filter refuses no node in the generated clusters (it was asked about ",
            ),
            (
                Content,
                DIFFER,
                "Content scores all nodes of a generated cluster alike, for every pod (it was asked ab",
            ),
        ],
    )
    def test_without_any_a_test_is_skipped(self, plugin: type[Plugin[Any]], check: str, text: str) -> None:
        with pytest.raises(unittest.SkipTest) as raised:
            getattr(contract_of(plugin), check)()
        assert str(raised.value).startswith(text)
        assert "Override `pods` and `nodes`" in str(raised.value)

    def test_pods_that_concern_the_plugin_bring_it_forth(self) -> None:
        from kschedfw.testing import strategies

        def pods(self: PluginContract) -> Any:
            asking = FrozenDict({"gpus": "1"})
            return strategies.pods("pod").map(
                lambda pod: pod.with_metadata(attrs.evolve(pod.metadata, annotations=asking))
            )

        contract = contract_of(Gpus, pods=pods)
        getattr(contract, REFUSES)()
        getattr(contract, DIFFER)()
