"""The ways of calling plugins in which the decisions on a scenario must be the same."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from random import Random

import attrs

from kschedfw.api.manifests import object_from_manifest, pod_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.metrics import NO_METRICS, NoMetrics
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.registry import Registry
from tests.conformance.changes import RunsChanges, SchedulersChanges
from tests.conformance.decide import PodRun
from tests.conformance.groups import GroupRun
from tests.conformance.scenario import GroupScenario, Json, Scenario, read_scenarios


def pod_scenarios(path: Path) -> Iterator[Scenario]:
    """Yield the scenarios of a file that has none with groups."""
    for scenario in read_scenarios(path):
        assert isinstance(scenario, Scenario), f"{scenario.name} has groups"
        yield scenario


class Mode(Enum):
    """The ways of calling plugins, and the changes between decisions."""

    SCALAR = "scalar"
    """Call the plugins node by node."""
    MEMO = "memo"
    """Call the plugins with the memo, as schedulers do."""
    CHANGES = "changes"
    """Call the plugins with the memo; before each decision, change the cluster and undo the changes."""
    PLAN = "plan"
    """Keep answers to each pod before it is decided on."""

    @property
    def evaluation(self) -> Evaluation:
        by_memo = self in (Mode.CHANGES, Mode.PLAN)
        return Evaluation.MEMO if by_memo else Evaluation(self.value)


class Recorder(NoMetrics):
    """A recorder of metrics. A framework measures for every recorder but the one that drops everything."""


@attrs.frozen
class Decided:
    """The decisions on the pending pods of a scenario, and the number of those that a plan made."""

    decisions: list[Json]
    planned: int = 0


def decide_in(mode: Mode, scenario: Scenario, registry: Registry, *, recorded: bool = False) -> Decided:
    """Return the decision on each pending pod, as `decide`; with a recorder of metrics if it is to be `recorded`."""
    metrics = Recorder() if recorded else NO_METRICS
    run = PodRun(scenario, registry, mode.evaluation, metrics)
    if mode is Mode.PLAN and run.nodes:
        return _by_kept_answers(run)
    if mode is not Mode.CHANGES or not run.nodes:
        return Decided(run.decisions())
    manifests = [*(scenario.objects.get("pods") or ()), *scenario.pending]
    pods = list(map(pod_from_manifest, manifests))
    return Decided(run.decisions(RunsChanges(run, pods, Random(scenario.name)).go_through))


def decide_groups_in(
    mode: Mode, scenario: GroupScenario, registry: Registry, *, recorded: bool = False
) -> list[Json]:
    """Return the rounds of a scenario with groups, as `decide_groups`; with a recorder if they are to be `recorded`."""
    run = GroupRun(scenario, registry, mode.evaluation, Recorder() if recorded else None)
    if mode is not Mode.CHANGES:
        return run.rounds()
    manifests = [pod for each in scenario.events if isinstance(pod := each.get("pod"), dict)]
    created = [object_from_manifest(each, "Pod") for each in manifests]
    return run.rounds(
        SchedulersChanges(run.scheduler, run.algorithm, created, Random(scenario.name)).go_through
    )


def _by_kept_answers(run: PodRun) -> Decided:
    """Return the decisions after each pod's signatures came twice, so that a plan keeps all answers that it may."""

    def keep(pod: Pod) -> None:
        run.cache.update_snapshot(run.snapshot)
        for _ in range(2):
            run.framework.run_pre_filter_plugins(CycleState(), pod)

    before = run.framework.decided_together
    return Decided(run.decisions(keep), run.framework.decided_together - before)
