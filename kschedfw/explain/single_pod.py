"""Explains what would be decided on a pod in a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import Pod
from kschedfw.cluster import Cluster
from kschedfw.explain.explanation import Explanation
from kschedfw.explain.recording import ExplainingScheduler
from kschedfw.framework.clock import Clock
from kschedfw.framework.extender import Extender
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.evaluation import Evaluation
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.generic_scheduler import GenericScheduler
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.scheduler.select import HostSelector


class NoProfileError(KschedfwError):
    """No profile has the scheduler name that a pod asks for."""

    def __init__(self, pod: Pod, names: Sequence[str]) -> None:
        wanted, known = pod.spec.scheduler_name, ", ".join(names)
        super().__init__(f"pod {pod.key}: spec.schedulerName: no profile has {wanted!r}; there is {known}")


def explain_pod(
    cluster: Cluster,
    pod: Pod,
    *,
    profiles: Sequence[Profile] | None = None,
    registry: Registry | None = None,
    extenders: Sequence[Extender] = (),
    percentage_of_nodes_to_score: int = 0,
    selector: HostSelector | None = None,
    seed: int = 0,
    clock: Clock | None = None,
    evaluation: Evaluation = Evaluation.MEMO,
    beyond: bool = True,
) -> Explanation:
    """The decision of a scheduler that has just started, if this pod were its first; the cluster doesn't change.

    For the arguments see `Scheduler`; for `beyond` see `Explaining`.

    Raises:
        NoProfileError: the pod is for another scheduler.
        ProfileError, PluginError: a profile can't run.
    """
    scheduler = Scheduler(
        cluster,
        profiles,
        registry=registry,
        clock=clock,
        random=Random(seed),
        extenders=extenders,
        percentage_of_nodes_to_score=percentage_of_nodes_to_score,
        selector=selector,
        evaluation=evaluation,
    )
    framework = scheduler.frameworks.get(pod.spec.scheduler_name)
    if framework is None:
        raise NoProfileError(pod, list(scheduler.frameworks))
    assert isinstance(scheduler.algorithm, GenericScheduler)
    try:
        return ExplainingScheduler(scheduler.algorithm, beyond=beyond).explain(framework, pod)
    finally:
        scheduler.close()
