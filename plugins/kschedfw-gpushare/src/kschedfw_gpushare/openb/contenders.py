"""What is measured: policies of GpuShare, plugins, and configurations."""

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
"""The profile that the trace's pods want."""

PLUGIN_POLICY = Policy.BEST_FIT
"""How GpuShare picks devices, and rates if it is to, where another plugin takes the policy's place."""

MakeScheduler = Callable[[InMemoryCluster, Random], Scheduler]


class Contender(Protocol):
    """What is measured. It can be pickled, since runs are done by other processes, too."""

    def make_scheduler(self, trace: Trace) -> MakeScheduler:
        """Makes schedulers for the trace's pods, which are those of `default-scheduler`."""
        ...


@attrs.frozen
class OfPolicy:
    """The policy alone rates; of the default filters, the others have nothing to say about the trace's pods."""

    policy: Policy

    def make_scheduler(self, trace: Trace) -> MakeScheduler:
        return _with_scores(EnabledPlugin("GpuShare", weight=1000), trace, self.policy)


@attrs.frozen
class OfPlugin:
    """An installed plugin, with its default arguments, rates alone; GpuShare keeps the books and picks the devices."""

    plugin: str

    def make_scheduler(self, trace: Trace) -> MakeScheduler:
        return _with_scores(EnabledPlugin(self.plugin), trace, PLUGIN_POLICY)


@attrs.frozen
class OfConfiguration:
    """All is as the configuration says. A GpuShare in it that isn't told the typical pods gets those of the trace."""

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
    """The distributions of its plugins, each a name and a version.

    Raises KschedfwError: no scheduler can be made of it, or none that takes the trace's pods.
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
    if "GpuShare" not in registry.names():
        registry.register(GpuShare)
    return registry
