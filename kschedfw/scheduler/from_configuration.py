"""Construction of a scheduler from a configuration."""

from __future__ import annotations

from random import Random

from kschedfw.cluster import Cluster
from kschedfw.config import SchedulerConfiguration
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


def profiles_of(configuration: SchedulerConfiguration) -> tuple[Profile, ...]:
    """Return the profiles to run. Their NodeResourcesFit ignores the resources that only extenders manage."""
    return tuple(
        with_ignored_resources(profile.profile(), configuration.extenders)
        for profile in configuration.profiles
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
