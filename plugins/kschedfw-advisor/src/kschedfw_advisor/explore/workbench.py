"""A cluster, the changes made to it by hand, and what becomes of its pods."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec

from kschedfw import InMemoryCluster, Node, Pod, Registry, SchedulerConfiguration, Transaction, WhatIf
from kschedfw.api import BoundedDict, Named, PodGroup, group_key
from kschedfw.cluster import Workload, freed, workload_of
from kschedfw.config import GENERIC_WORKLOAD
from kschedfw.explain import Explanation, GroupStep
from kschedfw.scheduler import FirstByNameSelector
from kschedfw.what_if import Schedule
from kschedfw_advisor.drain_plan import DrainPlan, plan_drain
from kschedfw_advisor.explore.changes import Change, ChangeError, ClusterChange, ConfigurationChange
from kschedfw_advisor.explore.configuration_document import ConfigurationDocument
from kschedfw_advisor.explore.outcome import Fate, SimulatedOutcome
from kschedfw_advisor.explore.work import Work

Changes = tuple[Change, ...]

_PREPARED = 3
"""The number of configurations whose schedulers are kept ready: the kept one, and those tried last."""
_REMEMBERED = 8
"""The number of states whose outcomes are remembered."""


class Workbench:
    """Tries changes, keeps them, undoes them; the cluster itself is never written to.

    Ties between nodes go to the first by name: if they were drawn, a change would also move pods that it has nothing to
    do with. Pending pods may preempt others. It isn't thread-safe.

    Raises:
        ConfigurationError: a Policy asks for something that a KubeSchedulerConfiguration can't say.
        PluginError, ProfileError: a profile can't run.
    """

    def __init__(
        self,
        cluster: InMemoryCluster,
        configuration: SchedulerConfiguration,
        registry: Registry | None = None,
        work: Work | None = None,
    ) -> None:
        self.registry = Registry() if registry is None else registry
        self.work = Work() if work is None else work
        self.original = configuration
        self.kept: Changes = ()
        self.revision = 0
        """The number of times that the cluster was replaced by a newer reading."""
        self._cluster = cluster
        self._done: list[Changes] = []
        self._undone: list[Changes] = []
        self._prepared: OrderedDict[bytes, tuple[SchedulerConfiguration, WhatIf]] = OrderedDict()
        self._outcomes: BoundedDict[bytes, SimulatedOutcome] = BoundedDict(_REMEMBERED)
        self.outcome()

    def close(self) -> None:
        for _, what_if in self._prepared.values():
            what_if.close()

    def replace(self, cluster: InMemoryCluster) -> None:
        """Go on with the cluster as it is now; kept changes are made to it.

        Raises:
            KschedfwError: a kept change can't be made any more; then the cluster stays the one before.
        """
        # The former schedulers are kept until the new outcome exists, to go back to if a change can't be made.
        before = self._cluster, self._prepared, self._outcomes
        self._cluster, self._prepared, self._outcomes = cluster, OrderedDict(), BoundedDict(_REMEMBERED)
        outdated = before[1]
        try:
            self.outcome()
            self.revision += 1
        except BaseException:
            outdated = self._prepared
            self._cluster, self._prepared, self._outcomes = before
            raise
        finally:
            for _, what_if in outdated.values():
                what_if.close()

    # --- keeping and undoing ---

    def keep(self, changes: Changes) -> None:
        """Keep the changes as one step.

        Raises:
            KschedfwError: they can't be made; then nothing is kept.
        """
        # First, since it raises an error if the changes can't be made. The outcome is remembered.
        self.outcome((*self.kept, *changes))
        self._done.append(self.kept)
        self._undone.clear()
        self.kept = (*self.kept, *changes)

    def undo(self) -> None:
        """Undo the last step; raises ChangeError if there is none."""
        if not self._done:
            raise ChangeError("there is nothing to undo")
        self._undone.append(self.kept)
        self.kept = self._done.pop()

    def redo(self) -> None:
        """Redo the step that was undone last; raises ChangeError if there is none."""
        if not self._undone:
            raise ChangeError("there is nothing to redo")
        self._done.append(self.kept)
        self.kept = self._undone.pop()

    @property
    def undoable(self) -> str | None:
        """Return the title of the step that `undo` would undo."""
        return _titles(self.kept[len(self._done[-1]) :]) if self._done else None

    @property
    def redoable(self) -> str | None:
        """Return the title of the step that `redo` would redo."""
        return _titles(self._undone[-1][len(self.kept) :]) if self._undone else None

    # --- asking ---

    def configuration(self, changes: Changes | None = None) -> SchedulerConfiguration:
        """The configuration with these changes, by default the kept ones."""
        return self._prepare(self.kept if changes is None else changes)[0]

    def document(self, changes: Changes | None = None) -> dict[str, object]:
        """Return the configuration with these changes as a KubeSchedulerConfiguration with every field written out."""
        return self._edited(self.kept if changes is None else changes).content

    def outcome(self, changes: Changes | None = None) -> SimulatedOutcome:
        """Return the fates of the pods after these changes, by default the kept ones.

        Raises:
            KschedfwError: a change can't be made, or a plugin failed.
        """
        changes = self.kept if changes is None else changes
        # Changes may contain dicts, so they have no hash.
        name = msgspec.json.encode(changes)
        known = self._outcomes.get(name)
        if known is None:
            known = self._outcomes[name] = self._tried(changes)
        return known

    def objects(self, changes: Changes | None = None) -> list[Named]:
        """The cluster's objects with these changes, before pending pods are placed."""
        with self._changed(self.kept if changes is None else changes) as (trial, _, _):
            return list(trial.objects())

    def explain(self, key: str, changes: Changes | None = None) -> Explanation:
        """Return the decision on a pod when its turn comes in the queue; a pod on a node counts as taken off now.

        Raises:
            ChangeError: there is no such pod.
        """
        with self._changed(self.kept if changes is None else changes, []) as (trial, what_if, _):
            pod = next((each for each in what_if.pods if each.key == key), None)
            if pod is None:
                raise ChangeError(f"there is no pod {key!r}")
            pending = what_if.pending
            if not pod.node_name:
                return trial.explain(pod, pending, preempt=True) if pod in pending else what_if.explain(pod)
            trial.preempt(pod)
            return trial.explain(freed(pod, what_if.cluster.get(Node, pod.node_name)))

    def explain_group(self, key: str, changes: Changes | None = None) -> GroupStep:
        """Return the decision on a group's members without a node, when the turn of the first comes in the queue.

        If all members have a node, decide as if they were taken off now.

        Raises:
            ChangeError: there is no such group, or it has no members.
            WhatIfError: pods are scheduled one by one.
        """
        with self._changed(self.kept if changes is None else changes, []) as (trial, what_if, _):
            members = [pod for pod in what_if.pods if group_key(pod) == key and not pod.is_terminal]
            if not members:
                raise ChangeError(f"there is no group {key!r} with members")
            if waiting := [pod for pod in members if not pod.node_name]:
                return trial.explain_group(waiting, what_if.pending, preempt=True)
            trial.preempt(*members)
            nodes = what_if.cluster
            return trial.explain_group([freed(pod, nodes.get(Node, pod.node_name)) for pod in members])

    def replica(self, changes: Changes) -> WhatIf:
        """A cluster of its own with these changes and their configuration, to be closed by the caller."""
        cluster = InMemoryCluster(self.objects(changes))
        configuration = self.configuration(changes)
        return WhatIf(cluster, configuration, registry=self.registry, selector=FirstByNameSelector())

    def plan_drain(self, node: str, changes: Changes) -> DrainPlan:
        """Return the plan to drain the node, for the pods that are bound to it.

        Raises:
            WhatIfError: there is no such node.
        """
        with self._changed(changes) as (trial, what_if, _):
            return plan_drain(what_if, trial, [node], partial(self.work.step, "pods leave"))

    def workload(self, pod: Pod) -> Workload | None:
        """Return the workload that the pod is of; None for a pod by itself."""
        return workload_of(pod, self._cluster)

    def _tried(self, changes: Changes) -> SimulatedOutcome:
        early: list[Schedule] = []
        with self._changed(changes, early) as (trial, what_if, notes):
            there = {pod.key: pod for pod in what_if.pods}
            fates = {key: Fate(pod.node_name or None) for key, pod in there.items() if not pod.is_terminal}
            for schedule in (*early, self._schedule(trial, what_if)):
                for placed in schedule.placed:
                    if placed.pod.key in fates:
                        fates[placed.pod.key] = Fate(placed.node_name, is_new=True)
                    for victim in placed.victims:
                        fates[victim.key] = Fate(why=f"preempted by {placed.pod.key}")
                for refused in schedule.refused:
                    if refused.pod.key in fates:
                        fates[refused.pod.key] = Fate(why=refused.message)
            pods = [pod for pod in what_if.pods if not pod.is_terminal]
            for pod in pods:
                if not pod.node_name and not fates[pod.key].why:
                    fates[pod.key] = Fate(why=_set_aside(pod, trial))
            return SimulatedOutcome(what_if.nodes, pods, fates, notes, _groups(what_if))

    def _schedule(self, trial: Transaction, what_if: WhatIf) -> Schedule:
        """Schedule the pending pods."""
        step = partial(self.work.step, "pods are scheduled")
        return trial.schedule(what_if.pending, preempt=True, progress=step)

    @contextmanager
    def _changed(
        self, changes: Changes, early: list[Schedule] | None = None
    ) -> Iterator[tuple[Transaction, WhatIf, list[str]]]:
        """Open a transaction, make the changes of the cluster in it, and yield it with the notes on them.

        With `early`, the pending pods are scheduled before late changes, and `early` gets the results.
        """
        _, what_if = self._prepare(changes)
        with what_if.transaction() as trial:
            notes: list[str] = []
            for change in changes:
                if isinstance(change, ClusterChange):
                    if early is not None and change.is_late:
                        early.append(self._schedule(trial, what_if))
                    notes += change.apply(trial, what_if)
            yield trial, what_if, notes

    def _edited(self, changes: Changes) -> ConfigurationDocument:
        document = ConfigurationDocument(self.original, self.registry)
        for change in changes:
            if isinstance(change, ConfigurationChange):
                change.edit(document)
        return document

    def _prepare(self, changes: Changes) -> tuple[SchedulerConfiguration, WhatIf]:
        """The configuration, and a scheduler that runs it."""
        document = self._edited(changes)
        # By content: different changes may lead to the same configuration.
        name = msgspec.json.encode(document.content)
        if name not in self._prepared:
            configuration = document.configuration()
            what_if = WhatIf(
                self._cluster, configuration, registry=self.registry, selector=FirstByNameSelector()
            )
            self._prepared[name] = configuration, what_if
        self._prepared.move_to_end(name)
        while len(self._prepared) > _PREPARED:
            _, (_, oldest) = self._prepared.popitem(last=False)
            oldest.close()
        return self._prepared[name]


def _groups(what_if: WhatIf) -> dict[str, PodGroup] | None:
    """The PodGroups by key; None where their members are scheduled one by one."""
    if not what_if.feature_gates.enabled(GENERIC_WORKLOAD):
        return None
    return {group.key: group for group in what_if.cluster.list(PodGroup)}


def _titles(changes: Sequence[Change]) -> str:
    return ", ".join(change.title for change in changes)


def _set_aside(pod: Pod, trial: Transaction) -> str:
    """Return the reason why a pod without a node isn't scheduled."""
    if pod.is_terminating:
        return "it is being deleted"
    return (
        trial.can_schedule(pod).message
        or f"no profile schedules it: spec.schedulerName is {pod.spec.scheduler_name}"
    )
