"""The base class of plugins, and how a method becomes a hook."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias

import pluggy
from typing_extensions import TypeVar

from kschedfw.api.pod import Pod
from kschedfw.framework.nodes.reads import Reads

if TYPE_CHECKING:
    from kschedfw.framework.handle import Handle

PROJECT = "kschedfw"
"""pluggy's project name and the entry-point group that plugins register in."""

hookimpl = pluggy.HookimplMarker(PROJECT)

PER_SIGNATURE = f"{PROJECT}_per_signature"
"""The attribute of a hook that is marked `per_signature`."""

ArgsT = TypeVar("ArgsT", default=None)
FunctionT = TypeVar("FunctionT", bound=Callable[..., object])


def per_signature(hook: FunctionT) -> FunctionT:
    """Promise that a hook depends on nothing of the pod but its signature (`Plugin.sign`), and on nothing else.

    Marks a `pre_filter` or `pre_score` that answers the same, and writes the same values into the state, for all pods
    of a signature, whatever is on the nodes. It is then called once for many pods. What it writes is shared by them
    and must not be changed, but by `pre_filter_add_pod` and `pre_filter_remove_pod`, which get a clone.

    Marks a `normalize_score` whose answer depends on the signature and the raw scores alone, and not on which nodes
    have them.

        @hookimpl
        @per_signature
        def pre_filter(self, state: CycleState, pod: Pod) -> Status | None: ...

    A subclass that overrides the hook makes a promise of its own, or none.
    """
    setattr(hook, PER_SIGNATURE, True)
    return hook


class Plugin(Generic[ArgsT]):
    """A scheduling policy: a name, and methods marked `@hookimpl` named after the extension points it takes part in.

    The contract of each hook is its docstring in `kschedfw.framework.hookspecs`. A hook may take any subset of
    the arguments listed there, by name. One instance serves one profile for the life of a `Framework`;
    `filter` and `score` are called from several threads at once and must not change anything.

    A plugin with arguments names their attrs class:

        class Rack(Plugin[RackArgs]):
            name = "Rack"
            args_type = RackArgs

    `reads` and `sign` are promises that let the framework reuse answers: for two pods with equal signatures,
    the answer for a node differs only if something within `reads` changed in between.
    """

    name: ClassVar[str]
    args_type: ClassVar[type[object] | None] = None
    reads: ClassVar[Reads | None] = None

    def __init__(self, args: ArgsT, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def sign(self, pod: Pod) -> Hashable | None:  # noqa: ARG002  # for plugins to override
        """Everything of the pod that filter and score depend on, or None where this pod's answers can't be reused."""
        return None

    def __repr__(self) -> str:
        return f"<plugin {self.name}>"


AnyPlugin: TypeAlias = Plugin[Any]
"""A plugin whatever its arguments are; with `object` in place of Any, no plugin with arguments would be one."""
