"""Plugins, nodes and frameworks in one line each, for the tests of this floor and the scheduler's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kschedfw import Parts, make_node, make_pod
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.clock import Clock
from kschedfw.framework.extender import Extender
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.testing import FakeClock

PluginClass = type[Plugin[Any]]


def plugin(name: str, base: PluginClass = Plugin, /, **members: Any) -> PluginClass:
    """A plugin class whose hooks are the given functions; a hook takes any subset of its spec's arguments, no self."""
    own: dict[str, object] = {"name": name}
    for member, value in members.items():
        own[member] = (
            staticmethod(hookimpl(value)) if callable(value) and not isinstance(value, type) else value
        )
    return type(name, (base,), own)


def answering(answer: object) -> Callable[[], object]:
    """A hook that takes no argument and always answers this; an exception is raised."""

    def hook() -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return hook


def make_framework(
    *plugins: PluginClass,
    nodes: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    snapshot: Snapshot | None = None,
    profile: Profile | None = None,
    nominator: Nominator | None = None,
    clock: Clock | None = None,
    extenders: Sequence[Extender] = (),
    parallelism: int = 1,
    evaluation: Evaluation = Evaluation.MEMO,
    args: Mapping[str, object] | None = None,
    metrics: MetricsRecorder | None = None,
) -> Framework:
    """A framework with these plugins in this order, unless a profile says otherwise."""
    registry = Registry(entry_points=False)
    for each in plugins:
        registry.register(each)
    return Framework(
        registry,
        profile or Profile([each.name for each in plugins], args=args or {}),
        Parts(
            InMemoryCluster(),
            snapshot=Snapshot.of(nodes, pods) if snapshot is None else snapshot,
            nominator=Nominator() if nominator is None else nominator,
            clock=clock or FakeClock(),
            parallelizer=Parallelizer(parallelism),
            extenders=extenders,
            metrics=NO_METRICS if metrics is None else metrics,
        ),
        evaluation=evaluation,
    )


def nodes(*names: str) -> list[Node]:
    return [make_node(name).build() for name in names]


def node_info(name: str = "n") -> NodeInfo:
    return NodeInfo.of(make_node(name).build())


def pod(name: str = "pod", *, priority: int = 0) -> Pod:
    return make_pod(name).uid(f"uid-{name}").priority(priority).build()


def traceback_names(status: Status) -> list[str]:
    """The functions in the traceback of the exception at the bottom of a failure."""
    error: BaseException | None = status.error
    assert error is not None
    while error.__cause__ is not None:
        error = error.__cause__
    names = []
    traceback = error.__traceback__
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return names
