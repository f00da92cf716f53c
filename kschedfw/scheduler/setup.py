"""Schedulers from configurations: of one, and of one of several that a cluster is scheduled under in turn."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

import attrs

from kschedfw.api import KschedfwError, Named, Pod
from kschedfw.api.records import frozen
from kschedfw.cluster import Cluster, InMemoryCluster
from kschedfw.config.extenders import with_ignored_resources
from kschedfw.framework.clock import Clock
from kschedfw.framework.metrics import NO_METRICS, MetricsRecorder
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.bindings import BindingExecutor
from kschedfw.scheduler.extenders import make_extenders
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.select import HostSelector

if TYPE_CHECKING:
    # A scheduler that is made by hand needs no configuration, so it doesn't import one.
    from kschedfw.config.configuration import SchedulerConfiguration


def profiles_of(configuration: SchedulerConfiguration) -> tuple[Profile, ...]:
    """Return the profiles to run. Their NodeResourcesFit ignores the resources that only extenders manage."""
    return tuple(
        with_ignored_resources(profile, configuration.extenders) for profile in configuration.profiles
    )


def scheduler_from_configuration(
    configuration: SchedulerConfiguration,
    cluster: Cluster,
    *,
    registry: Registry | None = None,
    clock: Clock | None = None,
    random: Random | None = None,
    executor: BindingExecutor | None = None,
    selector: HostSelector | None = None,
    metrics: MetricsRecorder = NO_METRICS,
    idle: bool = False,
) -> Scheduler:
    """Return a scheduler with the configuration's profiles, extenders, parallelism, sampling and backoffs.

    `registry` has to offer the same plugins as when the configuration was loaded; for the other arguments see
    `Scheduler`. `leader_election` and `client_connection` are ignored: they concern the cluster.

    Raises:
        PluginError, ProfileError: a profile can't run after all.
        ExtensionError, MissingExtraError: there are extenders, and their client isn't installed (see
            `make_extenders`).
    """
    return Scheduler(
        cluster,
        profiles_of(configuration),
        registry=registry,
        clock=clock,
        random=random,
        executor=executor,
        selector=selector,
        parallelizer=Parallelizer(configuration.parallelism),
        extenders=make_extenders(configuration.extenders, clock=clock),
        percentage_of_nodes_to_score=configuration.percentage_of_nodes_to_score,
        initial_backoff=float(configuration.pod_initial_backoff_seconds),
        max_backoff=float(configuration.pod_max_backoff_seconds),
        metrics=metrics,
        idle=idle,
        feature_gates=configuration.gates,
    )


class UnknownProfileError(KschedfwError, ValueError):
    """The error of a profile's name that a configuration doesn't have."""

    def __init__(self, source: str, name: str, there_are: Sequence[str]) -> None:
        super().__init__(source, name, there_are)
        self.source = source
        self.name = name
        self.there_are = tuple(there_are)

    def __str__(self) -> str:
        return f"{self.source}: no profile {self.name!r}; there are {', '.join(self.there_are)}"


@frozen
class Setup:
    """The set-up of a run: a configuration with a label, and the pods that it schedules.

    With `takes_every_pod`, its only profile schedules all pending pods, whatever their schedulerName. Otherwise each
    profile schedules the pods that name it.
    """

    label: str
    configuration: SchedulerConfiguration
    takes_every_pod: bool = False

    @classmethod
    def of(
        cls, label: str, configuration: SchedulerConfiguration, scheduler_name: str | None = None
    ) -> Setup:
        """Return a set-up with all profiles of the configuration, or with one profile that takes every pod.

        `scheduler_name` chooses that profile.

        Raises:
            UnknownProfileError: there is no such profile.
        """
        if scheduler_name is None:
            return cls(label, configuration)
        profiles = {profile.scheduler_name: profile for profile in configuration.profiles}
        if scheduler_name not in profiles:
            raise UnknownProfileError(configuration.source, scheduler_name, list(profiles))
        only = attrs.evolve(configuration, profiles=(profiles[scheduler_name],))
        return cls(label, only, takes_every_pod=True)

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The profiles to run; see `profiles_of`."""
        return profiles_of(self.configuration)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the report: the plugins that a profile names and that don't run."""
        return tuple(
            f"profile {profile.scheduler_name}: not in this version, left out: {', '.join(names)}"
            for profile in self.configuration.profiles
            if (names := profile.absent_by_name)
        )

    def cluster_of(self, objects: Sequence[Named]) -> InMemoryCluster:
        """Return a cluster for this set-up, with these objects."""
        if not self.takes_every_pod:
            return InMemoryCluster(objects)
        name = self.profiles[0].scheduler_name
        return InMemoryCluster(
            _naming(name, obj) if isinstance(obj, Pod) and not obj.node_name else obj for obj in objects
        )


def _naming(scheduler_name: str, pod: Pod) -> Pod:
    if pod.spec.scheduler_name == scheduler_name:
        return pod
    return attrs.evolve(pod, spec=attrs.evolve(pod.spec, scheduler_name=scheduler_name))


def objects_of(cluster: Cluster) -> Sequence[Named]:
    """Return all objects of the cluster, in the order in which they were added."""
    objects: list[Named] = []
    # `list` needs a kind. Watching first sends the objects of all kinds that are there, in this order.
    cluster.watch(lambda event: objects.append(event.object))()
    return objects
