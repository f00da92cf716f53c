"""The extension points. Each docstring is the contract of its hook; there is no logic here.

A plugin implements a hook by a method of that name marked `@hookimpl`, taking any subset of the arguments by
name. Unless a hook says otherwise:

* Success is None (or `Status.success()`). An exception is an ERROR status that names the plugin and keeps the
  traceback; it costs this attempt of this pod and nothing else. The same goes for SystemExit.
* A refusal (UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE or PENDING) may name a time, `retry_at`, in seconds on the
  handle's clock. Then the pod is tried again at that time, or after its backoff if that ends later, unless an event
  has brought it back before. Of several times the earliest counts. Gates (pre_enqueue) are asked again at that time.
* Hooks of one point run in profile order, each plugin at most once.
* The scheduling cycle (pre_filter … permit) is serial: one pod at a time, on the scheduler's thread, against one
  snapshot. `filter` and `score` are called from several threads of the parallelizer within it. The binding
  cycle (pre_bind_pre_flight … post_bind) runs concurrently with later scheduling cycles.
* What hooks are handed is read-only, but for the `state` and the `scores` of normalize_score: writing to a NodeInfo,
  to columns of the NodeTable or to rows raises. A `clone()` or `copy()` may be changed.
* The reference is kube-scheduler v1.36; see the scheduling framework, KEP-624.
"""

# The signatures are documentation; nothing calls these functions, so their arguments are not used.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import NodeToStatus
from kschedfw.framework.events import ClusterEvent
from kschedfw.framework.groups import GroupPlacement, PlacedGroup, QueuedGroup
from kschedfw.framework.hook_spec import HookSpec, declared_hooks, hookspec
from kschedfw.framework.metrics import MeasuredPoint
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo, QueuedPodInfo
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.profile import ExtensionPoint
from kschedfw.framework.results import PostFilterResult, PreBindPreFlightResult, PreFilterResult, Verdicts
from kschedfw.framework.status import Code, Status

REFUSED: Final = (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
REFUSED_OR_PENDING: Final = (*REFUSED, Code.PENDING)


@hookspec(ExtensionPoint.PRE_ENQUEUE, measured=MeasuredPoint.PRE_ENQUEUE, codes=REFUSED_OR_PENDING)
def pre_enqueue(pod: Pod) -> Status | None:
    """Decide whether a pod may enter the active queue.

    Called whenever the pod would become active, on the thread that adds it; must be fast and must not call
    out. The first answer other than success keeps the pod gated: UNSCHEDULABLE,
    UNSCHEDULABLE_AND_UNRESOLVABLE or PENDING with reasons, or ERROR.
    """


@hookspec(ExtensionPoint.QUEUE_SORT)
def queue_sort(first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
    """Tell whether `first` is scheduled before `second`.

    A profile has exactly one. It must be a strict weak order, and depend on its arguments alone: the
    queue relies on answers that don't change.
    """


@hookspec(ExtensionPoint.PRE_FILTER, measured=MeasuredPoint.PRE_FILTER, codes=(*REFUSED, Code.SKIP))
def pre_filter(state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> PreFilterResult | Status | None:
    """Look at the pod and all nodes once, before any is filtered.

    Write to `state` what `filter` will read. Answers:

    * None: go on. `PreFilterResult`: go on with only these nodes (results of several plugins are intersected; the
      other nodes count as UNSCHEDULABLE_AND_UNRESOLVABLE).
    * SKIP: this plugin's filter, pre_filter_add_pod and pre_filter_remove_pod are not called for this pod.
    * UNSCHEDULABLE: the pod fits nowhere now; the remaining pre_filters still run, since preemption may follow.
    * UNSCHEDULABLE_AND_UNRESOLVABLE: the pod fits nowhere, stop here.
    * anything else is an ERROR, PENDING too: kube-scheduler expects it of pre_enqueue, filter, reserve and permit only.
      A pod that waits for something outside the cluster is UNSCHEDULABLE here, or refused by `filter`.
    """


@hookspec(
    ExtensionPoint.PRE_FILTER, measured=MeasuredPoint.PRE_FILTER_ADD_POD, codes=(), goes_with="pre_filter"
)
def pre_filter_add_pod(
    state: CycleState, pod: Pod, pod_info_to_add: PodInfo, node_info: NodeInfo
) -> Status | None:
    """Update what pre_filter wrote as if `pod_info_to_add` were on the node (it is in `node_info` already).

    Called on a clone of the state, for nominated pods and in preemption's dry runs. Anything but success is an
    ERROR. Must undo `pre_filter_remove_pod` of the same pod.
    """


@hookspec(
    ExtensionPoint.PRE_FILTER, measured=MeasuredPoint.PRE_FILTER_REMOVE_POD, codes=(), goes_with="pre_filter"
)
def pre_filter_remove_pod(
    state: CycleState, pod: Pod, pod_info_to_remove: PodInfo, node_info: NodeInfo
) -> Status | None:
    """Update what pre_filter wrote as if the pod were not on the node (it is removed from `node_info` already).

    Called on a clone of the state, in preemption's dry runs. Anything but success is an ERROR.
    """


@hookspec(ExtensionPoint.FILTER, measured=MeasuredPoint.FILTER, codes=REFUSED_OR_PENDING)
def filter(state: CycleState, pod: Pod, node_info: NodeInfo) -> Status | None:
    """Decide whether the pod can run on the node.

    Called concurrently for different nodes; must not change state, pod or node. For a node, plugins are asked in
    profile order until one refuses: UNSCHEDULABLE if removing pods from this node could help,
    UNSCHEDULABLE_AND_UNRESOLVABLE if not, PENDING if something outside the cluster must happen first, each with
    reasons that begin "node(s) …" since they are counted over nodes; any other code is an ERROR. Where nominated
    pods of equal or higher priority exist, a node is asked twice, with and without them, and must pass both times.
    """


@hookspec(ExtensionPoint.FILTER, measured=MeasuredPoint.FILTER, goes_with="filter")
def filter_batch(state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts | None:
    """Answer `filter` for many nodes at once.

    `rows` are distinct indices into the table's columns, shape (k,), in no particular order; `Verdicts.codes` has
    shape (k,), too. Must agree exactly with `filter`, which is still called for a few nodes, for nodes with
    nominated pods, and in dry runs. None leaves this pod to `filter`.
    """


@hookspec(ExtensionPoint.POST_FILTER, measured=MeasuredPoint.POST_FILTER, codes=REFUSED)
def post_filter(
    state: CycleState, pod: Pod, node_to_status: NodeToStatus
) -> tuple[PostFilterResult | None, Status | None]:
    """Try to make room for a pod that fits nowhere.

    `node_to_status` says why, for every node. Plugins run in order until one answers success (room will be
    there: the pod is nominated to the result's node and waits), UNSCHEDULABLE_AND_UNRESOLVABLE or ERROR;
    UNSCHEDULABLE passes on to the next, and the reasons of all are joined.

    A pre_filter that refuses the pod may keep later ones from being called: what this plugin's pre_filter writes may be
    missing. A StateKeyError, raised or in the status, is then no failure of the plugin.
    """


@hookspec(ExtensionPoint.PRE_SCORE, measured=MeasuredPoint.PRE_SCORE, codes=[Code.SKIP])
def pre_score(state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
    """Prepare scoring, given the feasible nodes.

    SKIP switches this plugin's score off for this pod. Anything else but success is an ERROR.
    """


@hookspec(ExtensionPoint.SCORE, measured=MeasuredPoint.SCORE)
def score(state: CycleState, pod: Pod, node_info: NodeInfo) -> int | Status:
    """Rate a feasible node; higher is better.

    Called concurrently for different nodes; must not change state, pod or node. Any integer that fits
    int64 if the plugin has normalize_score, else 0–100. A status is an ERROR.
    """


@hookspec(ExtensionPoint.SCORE, measured=MeasuredPoint.SCORE, goes_with="score")
def score_batch(state: CycleState, pod: Pod, nodes: NodeTable, rows: IntArray) -> IntArray | None:
    """Answer `score` for many nodes at once: int64, shape (k,) for `rows` of shape (k,).

    Must agree exactly with `score`. None leaves this pod to `score`.
    """


@hookspec(ExtensionPoint.SCORE, measured=MeasuredPoint.NORMALIZE_SCORE, codes=(), goes_with="score")
def normalize_score(
    state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: IntArray
) -> IntArray | Status | None:
    """Bring this plugin's scores into 0–100.

    `scores` has one int64 per node of `nodes`. Return the new array, or change `scores` in place and return
    None. The range is checked afterwards. A status other than success is an ERROR.
    """


@hookspec(ExtensionPoint.RESERVE, measured=MeasuredPoint.RESERVE, codes=REFUSED_OR_PENDING)
def reserve(state: CycleState, pod: Pod, node_name: str) -> Status | None:
    """Reserve in the plugin's own state what the pod needs on the chosen node, before the next pod is scheduled.

    The first answer other than success ends the attempt; then `unreserve` of *all* plugins is called.
    UNSCHEDULABLE(_AND_UNRESOLVABLE) or PENDING reject the pod; any other code is an ERROR.
    """


@hookspec(ExtensionPoint.RESERVE, measured=MeasuredPoint.UNRESERVE)
def unreserve(state: CycleState, pod: Pod, node_name: str) -> None:
    """Undo `reserve`. Called in reverse profile order when reserve or anything later fails.

    Must be idempotent, must cope with a `reserve` that was never called, and can't fail.
    """


@hookspec(ExtensionPoint.PERMIT, measured=MeasuredPoint.PERMIT, codes=(*REFUSED_OR_PENDING, Code.WAIT))
def permit(state: CycleState, pod: Pod, node_name: str) -> Status | None:
    """Allow or refuse the pod for the last time before binding, or ask to wait.

    `Status.wait(timeout)` holds the pod, with its place reserved, until every plugin that asked to wait has allowed it
    (`handle.waiting_pods`), one has rejected it, or the first timeout has passed (then it is
    UNSCHEDULABLE). Timeouts are capped at 15 minutes. UNSCHEDULABLE(_AND_UNRESOLVABLE) or PENDING reject at once;
    any other code is an ERROR.
    """


@hookspec(
    ExtensionPoint.PRE_BIND,
    measured=MeasuredPoint.PRE_BIND_PRE_FLIGHT,
    codes=[Code.SKIP],
    goes_with="pre_bind",
)
def pre_bind_pre_flight(
    state: CycleState, pod: Pod, node_name: str
) -> PreBindPreFlightResult | Status | None:
    """Say whether this plugin's pre_bind has something to do for the pod.

    Called at the beginning of the binding cycle, before a pod that permit holds back begins to wait; must be fast and
    must not change anything. A plugin without this hook counts as one that answers None. Answers:

    * None: pre_bind has work to do, and runs after all pre_binds before it.
    * `PreBindPreFlightResult(allow_parallel=True)`: the same, but it may run at the same time as the pre_binds next to
      it in profile order that allow it, too, on other threads. With parallelism 1 they run one after another.
    * SKIP: pre_bind isn't called for this pod; those after it still run after those before it.
    * `PreBindPreFlightResult(allow_parallel=True, skip=True)`: pre_bind isn't called, and those before and after it
      count as next to each other. For plugins that allow it whenever they have work to do.
    * anything else is an ERROR.

    Where a pre_bind has work to do, or permit holds the pod back, the pod's `status.nominated_node_name` is set to the
    node first, so that others know where it will be. Semantics: KEP-5278.
    """


@hookspec(ExtensionPoint.PRE_BIND, measured=MeasuredPoint.PRE_BIND, codes=REFUSED_OR_PENDING)
def pre_bind(state: CycleState, pod: Pod, node_name: str) -> Status | None:
    """Do what must be done before the pod can run on the node, such as binding its volumes. May block.

    Binding cycle. Not called where pre_bind_pre_flight skipped it. The first answer other than success ends the
    attempt: the pod is unreserved, and tried again after a backoff. No event is waited for, not even after a refusal;
    a refusal only makes the pod's condition Unschedulable, with the plugin's message.

    A preemption may need the pod's room meanwhile. Then the pod isn't bound, whatever pre_bind answers, and
    `handle.pods_in_pre_bind.get(pod.uid).cancelled` says why. A hook that waits for something looks there from time to
    time.
    """


@hookspec(ExtensionPoint.BIND, measured=MeasuredPoint.BIND, codes=(*REFUSED_OR_PENDING, Code.SKIP))
def bind(state: CycleState, pod: Pod, node_name: str) -> Status | None:
    """Bind the pod to the node. May block.

    Binding cycle. Plugins are asked in order; SKIP passes on to the next, and the first other answer, success or
    not, is final. After a refusal the pod is tried again as after one of `pre_bind`.
    """


@hookspec(ExtensionPoint.POST_BIND, measured=MeasuredPoint.POST_BIND)
def post_bind(state: CycleState, pod: Pod, node_name: str) -> None:
    """React to the binding of the pod, such as by cleaning up. Binding cycle; can't fail."""


@hookspec(
    ExtensionPoint.PLACEMENT_GENERATE, measured=MeasuredPoint.PLACEMENT_GENERATE, codes=(Code.UNSCHEDULABLE,)
)
def placement_generate(
    state: CycleState, group: QueuedGroup, placement: GroupPlacement
) -> Sequence[GroupPlacement] | Status:
    """Divide the nodes of a placement into those on which the group may be placed as a whole.

    Called once in the cycle of a group, with all nodes of the snapshot; the members are then tried on each answer by
    itself, and each sees all other pods of the cluster. `state.read(MEMBER_STATES)` has the members that are scheduled
    already. Each placement has a name of its own, and nodes of the given one; there are at most 100,000. A profile has
    at most one such plugin; without one, the placement is all nodes. No placement makes the group unschedulable, and so
    does a status that refuses; any other status is an ERROR.
    """


@hookspec(
    ExtensionPoint.PLACEMENT_FEASIBLE,
    measured=MeasuredPoint.PLACEMENT_FEASIBLE,
    codes=(Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.WAIT),
)
def placement_feasible(
    state: CycleState, group: QueuedGroup, placed: PlacedGroup, left: int, scheduled: int
) -> Status | None:
    """Say whether the placement that is being tried suffices for the group, or still may.

    Called as v1.37 or later, on each placement before the first member is tried and after each one.
    `placed.node_names` has the members that found a node there so far, `left` is how many haven't been tried, and
    `scheduled` how many have a node, those from before this cycle included. Success means that the group is scheduled
    with what there is, WAIT that it isn't yet but may be with further members: these are tried, too. A refusal ends
    the trial of this placement, and its other members aren't tried. The last answer decides: after WAIT or a refusal
    the group is unschedulable there, with the answer's message, and a group none of whose members found a node is
    unschedulable in any case. If several plugins answer, a refusal counts before WAIT. Any other status is an ERROR,
    which ends the group's cycle. With such a plugin members are tried one by one.

    Semantics: PlacementFeasible of kube-scheduler v1.37 (`schedule_one_podgroup.go` @ff3e4a37), public to plugins
    since v1.38 (kubernetes/kubernetes#141314). Taken from its source; no decisions were recorded.
    """


@hookspec(ExtensionPoint.PLACEMENT_SCORE, measured=MeasuredPoint.PLACEMENT_SCORE)
def placement_score(state: CycleState, group: QueuedGroup, placed: PlacedGroup) -> int | Status:
    """Rate a placement on which the group can be scheduled; higher is better.

    Called only if there are several. `placed.node_names` has the members that found a node there. The NodeInfos of
    `placed.placement` are without these members. Any integer that fits int64 if the plugin has
    normalize_placement_score, else 0–100. A status is an ERROR.
    """


@hookspec(ExtensionPoint.PLACEMENT_SCORE, goes_with="placement_score")
def normalize_placement_score(
    state: CycleState, group: QueuedGroup, scores: Mapping[str, int]
) -> Mapping[str, int]:
    """Bring this plugin's scores, by the names of the placements, into 0–100. The range is checked afterwards."""


@hookspec(
    ExtensionPoint.POD_GROUP_POST_FILTER,
    measured=MeasuredPoint.POD_GROUP_POST_FILTER,
    codes=(Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
)
def pod_group_post_filter(
    state: CycleState, group: QueuedGroup, preempt: Callable[[], Status]
) -> Status | None:
    """Try to make room for a group that has no place.

    Called as v1.37 or later, once at the end of the group's cycle, if its members may preempt; `state` is for these
    plugins alone. `preempt` looks for victims, has them evicted after the cycle, and nominates the members; it returns
    the status of that. Plugins are asked in order: the first success ends it, and so does
    UNSCHEDULABLE_AND_UNRESOLVABLE, which says that nothing helps. DefaultPreemption answers what `preempt` does, so a
    group doesn't preempt where it isn't enabled here. The message is in the group's condition. Any other status is an
    ERROR.

    Semantics: PodGroupPostFilter of kube-scheduler v1.37 (`framework/interface.go`). Taken from its source; no
    decisions were recorded.
    """


@hookspec()
def events_to_register() -> Sequence[ClusterEvent]:
    """Name the cluster events that may make a pod schedulable which this plugin rejected.

    Called once, when the framework is made. An empty answer says that no event helps: the pods that the plugin
    rejected are retried at their `retry_at`, else after five minutes. Without this hook they are retried on every
    event or, if `pre_filter` and `filter` alone reject pods and are pure, on changes of what these read. An event
    that never happens, such as UPDATE_POD_LABEL of a NODE, is an error.
    """


HOOKS: Final[Mapping[str, HookSpec]] = declared_hooks(globals())
"""All hooks, by name."""
