"""The contenders of the evaluation: policies of GpuShare, plugins and configurations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

import attrs

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    KschedfwError,
    Profile,
    Registry,
    Scheduler,
    SchedulerConfiguration,
    scheduler_from_configuration,
)
from kschedfw_gpushare.args import GpuShareArgs, Policy
from kschedfw_gpushare.openb.trace import GPU, Trace
from kschedfw_gpushare.plugin import GpuShare

SCHEDULER = "default-scheduler"
"""The scheduler name of the trace's pods."""

PLUGIN_POLICY = Policy.BEST_FIT
"""GpuShare's policy beside another plugin.

It determines how devices are picked, and how GpuShare scores if it scores.
"""

MakeScheduler = Callable[[InMemoryCluster, Random], Scheduler]


class Contender(Protocol):
    """A contender of the evaluation. It can be pickled, since other processes run it, too."""

    def make_scheduler(self, trace: Trace) -> MakeScheduler:
        """Return a function that makes schedulers for the trace's pods, which name `default-scheduler`."""
        ...


@attrs.frozen
class OfPolicy:
    """A policy of GpuShare as the only score.

    The default filters other than those enabled here never refuse one of the trace's pods.
    """

    policy: Policy

    def make_scheduler(self, trace: Trace) -> MakeScheduler:
        return _with_scores(EnabledPlugin("GpuShare", weight=1000), trace, self.policy)


@attrs.frozen
class OfPlugin:
    """An installed plugin with default arguments as the only score. GpuShare filters nodes and picks devices."""

    plugin: str

    def make_scheduler(self, trace: Trace) -> MakeScheduler:
        return _with_scores(EnabledPlugin(self.plugin), trace, PLUGIN_POLICY)


@attrs.frozen
class OfConfiguration:
    """A configuration. If its GpuShare has no typical pods, they are derived from the trace."""

    configuration: SchedulerConfiguration

    def make_scheduler(self, trace: Trace) -> MakeScheduler:
        configuration = attrs.evolve(
            self.configuration,
            profiles=tuple(
                attrs.evolve(each, args={name: _knowing(args, trace) for name, args in each.args.items()})
                for each in self.configuration.profiles
            ),
        )
        return lambda cluster, random: scheduler_from_configuration(
            configuration, cluster, registry=_registry(), random=random
        )


def distributions_of(name: str, contender: Contender, trace: Trace) -> Sequence[str]:
    """Return the distributions of the contender's plugins, each as a name and a version.

    Raises KschedfwError: the contender makes no scheduler, or none that takes the trace's pods.
    """
    registry, scheduler = _registry(), contender.make_scheduler(trace)(InMemoryCluster(), Random(0))
    try:
        if SCHEDULER not in scheduler.frameworks:
            raise KschedfwError(f"{name}: has no profile {SCHEDULER}, which the trace's pods want")
        plugins = {plugin for framework in scheduler.frameworks.values() for plugin in framework.plugins}
    finally:
        scheduler.close()
    return sorted({found for plugin in plugins if (found := registry.distribution(plugin)) is not None})


def _with_scores(rating: EnabledPlugin, trace: Trace, policy: Policy) -> MakeScheduler:
    # A dict, since the rating plugin may be one of the others.
    plugins = dict.fromkeys(("PrioritySort", "NodeResourcesFit", "GpuShare", rating.name, "DefaultBinder"))
    profile = Profile(
        list(plugins),
        points={"score": [rating]},  # type: ignore[dict-item]
        args={
            "NodeResourcesFit": {"ignoredResources": [GPU]},
            "GpuShare": GpuShareArgs(policy=policy, typical_pods=trace.typical),
        },
        percentage_of_nodes_to_score=100,
    )
    return lambda cluster, random: Scheduler(cluster, [profile], registry=_registry(), random=random)


def _knowing(args: object, trace: Trace) -> object:
    if isinstance(args, GpuShareArgs) and not args.typical_pods:
        return attrs.evolve(args, typical_pods=trace.typical)
    return args


def _registry() -> Registry:
    registry = Registry()
    # Without the distribution's metadata, its entry points aren't found.
    if "GpuShare" not in registry.names():
        registry.register(GpuShare)
    return registry
