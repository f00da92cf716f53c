"""The base class of plugins, and markers of hooks."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeAlias, cast, runtime_checkable

import pluggy
from typing_extensions import TypeVar

from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.reads import Reads

if TYPE_CHECKING:
    from kschedfw.framework.handle import Handle

PROJECT = "kschedfw"
"""pluggy's project name and the entry-point group that plugins register in."""

hookimpl = pluggy.HookimplMarker(PROJECT)

PLANNED_HOOKS = (
    "pre_filter",
    "filter",
    "filter_batch",
    "pre_score",
    "score",
    "score_batch",
    "normalize_score",
)
"""The hooks whose answers a plugin promises by `DecidesByAmounts.amounts_rule`."""

PURE_HOOKS = ("pre_filter", "filter", "pre_score", "score", "normalize_score")
"""The hooks that a plugin may promise to be pure by `Plugin.pure`."""

ArgsT = TypeVar("ArgsT", default=None)


class _Idle:
    """The signature of a pod that is none of a plugin's business: its pre_filter and pre_score skip the pod."""

    def __repr__(self) -> str:
        return "IDLE"


IDLE: Final = _Idle()
"""The signature of a pod that is none of a plugin's business: pre_filter and pre_score skip it, and write nothing."""


class AmountsRule(Enum):
    """The rules by which a plugin decides on nodes from amounts of resources alone; see `DecidesByAmounts`."""

    LEAST_ALLOCATED = "least-allocated"
    """Refuse nodes with too little left, and score by the free shares of CPU and memory.

    A refusal follows from which amounts are too small on the node; it doesn't say by how much.
    Extended resources count if `sign` returns a signature for the pod: a node must have what the pod requests.
    """
    MOST_ALLOCATED = "most-allocated"
    """Refuse nodes as LEAST_ALLOCATED does, and score by the used shares of CPU and memory."""
    BALANCED_ALLOCATION = "balanced-allocation"
    """Score by how evenly CPU and memory are used. The score of a pod that requests neither is skipped."""


class Plugin(Generic[ArgsT]):
    """A scheduling policy: a name, and methods marked `@hookimpl` named after the extension points it takes part in.

    The contract of each hook is its docstring in `kschedfw.framework.hookspecs`. A hook may take any subset of
    the arguments listed there, by name. One instance serves one profile for the life of a `Framework`;
    `filter` and `score` are called from several threads at once and must not change anything.

    A plugin with arguments names their attrs class:

        class Rack(Plugin[RackArgs]):
            name = "Rack"
            args_type = RackArgs

    `pure = True` is a promise: the answers of the hooks up to score (`PURE_HOOKS`) depend on the plugin's arguments,
    the pod, the node with its pods, and what the plugin's own pre_filter and pre_score wrote into the state. They
    depend on nothing else, such as the clock, the cluster, or attributes that change. Then the framework learns what
    the hooks read while they run, and asks them once for each distinct combination of the values read instead of about
    every node for every pod. A plugin whose pre_filter or pre_score looks something up in the cluster, or counts the
    nodes, names the hooks for which the promise holds instead: `pure = ("filter", "score")`.

    `reads` and `sign` are promises that let the framework reuse answers: for two pods with equal signatures,
    the answer for a node differs only if something within `reads` changed in between. normalize_score then depends on
    the signature and the raw scores alone, and not on which nodes have them. Where `reads` is `Reads.NODE`, pre_filter
    and pre_score are also called once for many pods: they write the same into the state for all pods of a signature
    while the node objects stay the same. What they write is shared and must not be changed, but by pre_filter_add_pod
    and pre_filter_remove_pod, which get a clone.

    `concerns` names the field of a pod's spec, such as "volumes", that the plugin is about: without it a pod is `IDLE`,
    and `sign` isn't called.
    """

    name: ClassVar[str]
    args_type: ClassVar[type[object] | None] = None
    pure: ClassVar[bool | Collection[str]] = False
    reads: ClassVar[Reads | None] = None
    concerns: str = ""

    def __init__(self, args: ArgsT, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    if TYPE_CHECKING:
        # Type checkers let any signature override this one: an override takes the pod, or nothing. `kschedfw.mypy`
        # compares overrides with `sign(self, pod: Pod)`.
        def sign(self, *args: Any, **kwargs: Any) -> Hashable | None: ...
    else:

        def sign(self, pod: Pod) -> Hashable | None:  # noqa: ARG002  # for plugins to override
            """Return everything of the pod that the hooks up to score depend on; None if their answers can't be reused.

            Return `IDLE` for a pod that pre_filter and pre_score would skip, whatever the plugin reads; then they
            aren't called for it. Other signatures of a plugin that reads the whole cluster count as None.

            An override that doesn't look at the pod may leave the argument out, as with hooks.
            """
            return None

    def sign_for_batch(self, pod: Pod) -> Hashable | None:  # noqa: ARG002  # for plugins to override
        """Return everything of the pod that filter and score depend on, if they see the pod and single nodes alone.

        Return None for a pod whose answers depend on other pods or nodes: its search isn't reused for others
        (OpportunisticBatching). This is kube-scheduler's SignPod. The default signs no pod, since batching
        changes decisions. In-tree plugins tell the same pods apart as kube-scheduler's do, which isn't always
        what `sign` does.
        """
        return None

    # The plugin's own state at the restore points of a WhatIf. No cycle is under way when these are called.

    def save_state(self) -> object:
        """Return a token of the plugin's state for `restore_state`. Plugins override both together or neither.

        A plugin needs it only for state that doesn't come back by itself. When a transaction is undone, places
        that were taken are unreserved, places that were given up are reserved and permitted again, objects go
        back with their events, and waiting pods wait as before; then `restore_state` is called. State that
        follows from the cluster or the snapshot need not be in the token.

        Called at the beginning of each transaction and of each operation in it, so it must be fast. The token
        must not change with the plugin: it holds copies of everything that changes. It may be restored several
        times.
        """
        return None

    def restore_state(self, token: Any) -> None:
        """Restore the state that the plugin had when `save_state` returned this token. Called last of all."""

    def forget_attempts(self) -> None:
        """Forget the traces of failed attempts, such as that a pod or its group is left alone for a while.

        Called before each question of a WhatIf. Its answers must be those of a scheduler that has just started:
        the same question has the same answer, and its clock stands still, so nothing expires. Reservations and
        waiting pods are not to be forgotten. Never called in a scheduler that runs, where events and time do
        this.
        """

    def __repr__(self) -> str:
        return f"<plugin {self.name}>"


@runtime_checkable
class DecidesByAmounts(Protocol):
    """A plugin that decides on nodes from amounts of resources alone."""

    @property
    def amounts_rule(self) -> AmountsRule | None:
        """The rule that the hooks up to score follow; None where they follow none.

        By a rule, all nodes are decided on together, from columns of amounts: filter, pre_score and score aren't
        called. A subclass that overrides one of the hooks must override this, too; otherwise it isn't asked.
        """
        ...


@runtime_checkable
class TakesMembersAlike(Protocol):
    """A plugin that may treat equal members of a group alike while the group is tried.

    Only plugins with reserve, unreserve, permit, post_filter or placement_feasible need to say so, and those that give
    the pod no signature. If all of these do, and no other plugin is asked about the pods, a placement is tried without
    calls for single members.
    """

    def takes_members_alike(self, pod: Pod) -> bool:
        """Promise that for such a pod

        * a pre_filter or pre_score that skips it does so also when other members have places,
        * reserve and unreserve do nothing,
        * permit's answer depends only on the number of scheduled members: WAIT below some number, success from it on,
        * placement_feasible's answer depends only on the numbers of members, and a refusal stays one with fewer left,
        * post_filter changes nothing, nominates no node, and answers the same on the same snapshot.

        A subclass that overrides one of these hooks must override this, too.
        """
        ...


def keeps_promise(plugin: AnyPlugin, method: str, hooks: Collection[str]) -> bool:
    """Tell whether the plugin has a method that makes a promise for these hooks, and overrides none of them below it.

    A subclass that overrides one of the hooks must override the method, too.
    """
    for kind in type(plugin).__mro__:
        if method in vars(kind):
            return True
        if any(hook in vars(kind) for hook in hooks):
            return False
    return False


def is_pure(plugin: AnyPlugin, hook: str) -> bool:
    """Tell whether the plugin promises by `Plugin.pure` that this hook is pure.

    The promise of a base class isn't one for a hook that overrides the base's.
    """
    pure = plugin.pure
    if not (pure is True or (pure and hook in pure)):
        return False
    kinds = type(plugin).__mro__
    promising = next(index for index, kind in enumerate(kinds) if "pure" in vars(kind))
    owners = [index for index, kind in enumerate(kinds) if hook in vars(kind)]
    return not owners or owners[0] >= promising or owners[-1] < promising


AnyPlugin: TypeAlias = Plugin[Any]
"""A plugin whatever its arguments are; with `object` in place of Any, no plugin with arguments would be one."""


TRIAL_HOOKS: Final = ("reserve", "unreserve", "permit", "post_filter", "placement_feasible")
"""The hooks that are called for each member while a group is tried, if `takes_members_alike` doesn't say otherwise."""


def takes_members_alike(plugin: AnyPlugin, pod: Pod) -> bool:
    """Tell whether the plugin promises `TakesMembersAlike` for this pod, and for its own hooks, not for its base's."""
    hooks = (*TRIAL_HOOKS, "pre_filter", "pre_score")
    return keeps_promise(plugin, "takes_members_alike", hooks) and cast(
        "TakesMembersAlike", plugin
    ).takes_members_alike(pod)
