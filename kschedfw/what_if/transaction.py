"""A transaction: changes of a cluster that can be undone, and questions about their consequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import attrs

from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import group_key
from kschedfw.cluster import ClusterError
from kschedfw.cluster.freeing import belongs_to_its_node
from kschedfw.explain import Explanation, GroupStep
from kschedfw.what_if.checks import WhatIfError, expect, expect_all, expect_count, title
from kschedfw.what_if.engine import Engine, Progress
from kschedfw.what_if.eviction import charge_budget, cordoned, template_node, template_pod, uncordoned
from kschedfw.what_if.objects import TransactionObjects, some_names
from kschedfw.what_if.results import Evictions, Feasibility, PodResult, Refused, Replicas, Schedule, Waiting
from kschedfw.what_if.scaling_plan import PlanCheck, ScalingPlan, check_plan
from kschedfw.what_if.undoing import Preempted, Undoable

if TYPE_CHECKING:
    # Imported here: the module makes transactions, and so imports this one.
    from kschedfw.what_if.what_if import WhatIf

NamedT = TypeVar("NamedT", bound=Named)


class Transaction(Undoable):
    """Changes that are undone at the end of the `with` block, unless they are committed.

    A write returns after all its consequences have happened. A pod that gets a place holds it like a pod whose
    binding hasn't begun: its resources are taken and plugins have reserved. Undoing runs unreserve, in reverse
    order. Committing the outermost transaction binds the pods.

    While a nested transaction is open, this one can't be used.
    """

    def __init__(self, engine: Engine, parent: WhatIf | Transaction, outer: Transaction | None) -> None:
        super().__init__(engine, parent, outer)
        self._objects = TransactionObjects(engine)
        self._everything = parent.objects

    # --- changing ---

    def add(self, *objects: Named) -> tuple[Named, ...]:
        """Create objects of any kinds. Return them as stored.

        Raises:
            WhatIfError: the kind and name of an object are taken.
        """
        wanted = expect_all(Named, objects, "objects")
        with self._change():
            return tuple(self._objects.write(self._engine.cluster.add, obj) for obj in wanted)

    def add_nodes(self, template: Node, count: int = 1) -> tuple[Node, ...]:
        """Create nodes like the template, named `<template>-1` and so on, or with the next free numbers.

        Their label `kubernetes.io/hostname` is their name.
        """
        expect(Node, template, "template")
        expect_count(count, "count", "nodes")
        with self._change():
            names, cluster = self._objects.free_names(Node, template), self._engine.cluster
            return tuple(cluster.add(template_node(template, next(names))) for _ in range(count))

    def update(self, obj: NamedT) -> NamedT:
        """Replace the object of that kind and name. Return it as stored.

        Raises:
            WhatIfError: there is none, or the update would move a pod to another node.
        """
        expect(Named, obj, "obj")
        with self._change():
            present = self._objects.present(obj)
            if isinstance(present, Pod) and isinstance(obj, Pod) and present.node_name != obj.node_name:
                raise WhatIfError(
                    f"an update can't change the node of {title(obj)}: delete it and add it, or schedule it"
                )
            # Without a version the update is unconditional: the caller's object may be older than a change in this
            # transaction.
            metadata = attrs.evolve(obj.metadata, uid=present.uid, resource_version="")
            return self._objects.write(self._engine.cluster.update, obj.with_metadata(metadata))

    def delete(self, *objects: Named) -> None:
        """Delete objects of any kinds, by name.

        Pods that are bound to a deleted node stay so, as in Kubernetes at first; pods that only have a place on
        it lose it, and are pending again.

        Raises:
            WhatIfError: there is no object of that kind and name.
        """
        wanted = expect_all(Named, objects, "objects")
        with self._change():
            for obj in wanted:
                present = self._objects.present(obj)
                for pod in self._engine.pods_on(present.name) if isinstance(present, Node) else (present,):
                    self._objects.give_up(pod)
                self._engine.cluster.delete(present)

    def cordon(self, *names: str) -> None:
        """Make nodes unschedulable, with the taint that Kubernetes adds then."""
        self._update_nodes(names, cordoned)

    def uncordon(self, *names: str) -> None:
        """Make nodes schedulable again."""
        self._update_nodes(names, uncordoned)

    def _update_nodes(self, names: Iterable[str], changed: Callable[[Node], Node]) -> None:
        wanted = expect_all(str, names, "names")
        with self._change():
            for node in [self._objects.node(name) for name in wanted]:
                self._engine.cluster.update(changed(node))

    def drain(self, *names: str) -> Evictions:
        """Cordon nodes and evict their pods, as `kubectl drain --ignore-daemonsets --force` does."""
        with self._change():
            self.cordon(*names)
            return self.evict(*(pod for name in names for pod in self._engine.pods_on(name)))

    def evict(self, *pods: Pod) -> Evictions:
        """Evict pods from their nodes, as the API server does.

        Pods of DaemonSets and mirror pods stay, and so do pods whose eviction a PodDisruptionBudget doesn't
        allow. An allowed eviction counts against the budget. The evicted pods are deleted, and pending again
        with the same names, as if their controllers had made them again.

        Raises:
            WhatIfError: one of them isn't on a node.
        """
        wanted = expect_all(Pod, pods, "pods")
        evicted: list[Pod] = []
        blocked: list[tuple[Pod, str]] = []
        staying: list[Pod] = []
        with self._change():
            # All are looked up before the first is evicted: that one may cost another its place, which is no error.
            for pod in [self._objects.on_node(pod) for pod in wanted]:
                if pod.is_terminating or belongs_to_its_node(pod):
                    staying.append(pod)
                elif not pod.node_name:
                    # The pod isn't bound; the eviction of another pod may have cost it its place.
                    self._objects.give_up(pod)
                    evicted.append(self._objects.present(pod))
                elif reason := charge_budget(self._engine.cluster, pod):
                    blocked.append((pod, reason))
                else:
                    evicted.append(self._objects.evict(pod))
        return Evictions(tuple(evicted), tuple(blocked), tuple(staying))

    def preempt(self, *pods: Pod) -> None:
        """Take pods off their nodes, as if they had never been there; `restore` puts them back.

        Raises:
            WhatIfError: one of them isn't on a node.
        """
        wanted = expect_all(Pod, pods, "pods")
        cluster, held = self._engine.cluster, self._engine.history.held
        with self._change():
            # The places first, since the loss of one may cost others of a gang theirs.
            places = [(present, held.get(present.uid)) for present in map(self._objects.on_node, wanted)]
            for present, placement in places:
                self._objects.give_up(present)
                position = cluster.position
                cluster.delete(present)
                self._preempted[present.key] = Preempted(placement, cluster.changes_since(position))

    def restore(self, *pods: Pod) -> None:
        """Put preempted pods back on their nodes, whether or not there is room.

        Raises:
            WhatIfError: one of them wasn't preempted in this transaction, or there is another of its name by now.
        """
        wanted = expect_all(Pod, pods, "pods")
        with self._change():
            for pod in wanted:
                if (preempted := self._preempted.get(pod.key)) is None:
                    known = some_names(self._preempted) or "none"
                    raise WhatIfError(
                        f"{title(pod)} isn't preempted, so it can't be restored; preempted: {known}"
                    )
                placement = preempted.placement
                if placement is not None:
                    self._objects.node(placement.node_name)
                try:
                    self._engine.cluster.undo(preempted.changes)
                except ClusterError as error:
                    raise WhatIfError(f"{title(pod)} can't be restored: {error}") from error
                del self._preempted[pod.key]
                if placement is not None:
                    self._engine.history.take_again(placement)

    # --- asking ---

    def can_schedule(self, pod: Pod) -> Feasibility:
        """Return the nodes on which the pod would fit now, without preemption.

        Looks at all nodes, and changes nothing.

        The pod need not be in the cluster.

        Raises:
            WhatIfError: the pod is on a node.
            SchedulingError: a plugin failed.
        """
        expect(Pod, pod, "pod")
        with self._engine.one_thread:
            self._check_open()
            present = self._engine.cluster.get(Pod, pod.key)
            if present is not None and pod.uid in ("", present.uid):
                self._objects.check_unplaced(present)
                pod = present
            with self._engine.in_cluster(pod) as asked:
                return self._engine.feasibility(asked)

    def schedule(
        self,
        pods: Iterable[Pod],
        *,
        preempt: bool = False,
        all_or_none: bool = False,
        progress: Progress | None = None,
    ) -> Schedule:
        """Give the pods places, one after another, in the order of the scheduling queue.

        Pods that aren't in the cluster are added to it. With `preempt`, pods of lower priority may be evicted,
        and the pod takes the place at once. Refused pods stay pending. Waiting ones have a place, and would
        only run if permitted. With `all_or_none`, nothing changes unless all pods would run; then all of them
        are refused. `progress` is called with the number of pods done, and of all pods.

        Raises:
            WhatIfError: a pod is on a node already, or is given twice.
            SchedulingError: a plugin failed.
        """
        wanted = expect_all(Pod, pods, "pods")
        twice = [key for key, count in Counter(pod.key for pod in wanted).items() if count > 1]
        if twice:
            raise WhatIfError(f"pods: expected each pod once, found twice: {some_names(twice)}")
        with self._change() as change:
            ordered = self._engine.in_queue_order([self._objects.pending(pod) for pod in wanted])
            outcomes = self._engine.place_all(ordered, preempt=preempt, progress=progress)
            found = Schedule.of(outcomes)
            if all_or_none and not found:
                change.is_undone = True
                return Schedule.none_of(outcomes)
            return found

    def explain(self, pod: Pod, pods: Iterable[Pod] = (), *, preempt: bool = False) -> Explanation:
        """Return the decision that `schedule` would make on the pod, and why; nothing changes.

        It is scheduled with the other `pods`: those that come before it in the queue get their places first.

        Raises:
            WhatIfError: one of them is on a node already, or no profile has the pod's scheduler name.
        """
        wanted = [*expect_all(Pod, pods, "pods"), expect(Pod, pod, "pod")]
        with self._change() as change:
            change.is_undone = True
            by_key = {each.key: self._objects.pending(each) for each in wanted}
            order = self._engine.in_queue_order(by_key.values())
            keys = [each.key for each in order]
            turn = keys.index(pod.key)
            return self._engine.explain_after(order[:turn], order[turn], preempt=preempt)

    def explain_group(
        self, members: Iterable[Pod], pods: Iterable[Pod] = (), *, preempt: bool = False
    ) -> GroupStep:
        """Return the decision that `schedule` would make on members of a PodGroup, and why; nothing changes.

        They are scheduled with the other `pods`: those that come before the first of them in the queue get their
        places first. Members with a node have no `MemberStep.decision`.

        Raises:
            WhatIfError: one of them is on a node already, or the members aren't of one PodGroup, or aren't scheduled
                together.
        """
        own, others = expect_all(Pod, members, "members"), expect_all(Pod, pods, "pods")
        if len({group_key(pod) for pod in own} - {""}) != 1:
            raise WhatIfError("members: expected pods of one PodGroup")
        with self._change() as change:
            change.is_undone = True
            keys = {pod.key for pod in own}
            # By key, since callers may give the members among the other pods, too.
            by_key = {each.key: self._objects.pending(each) for each in (*others, *own)}
            order = self._engine.in_queue_order(by_key.values())
            # As in the queue, from which the first member calls the others in.
            turn = next(place for place, pod in enumerate(order) if pod.key in keys)
            ordered = [pod for pod in order[turn:] if pod.key in keys]
            return self._engine.explain_group(order[:turn], ordered, preempt=preempt)

    def check(self, plan: ScalingPlan) -> PlanCheck:
        """Return where kube-scheduler would decide otherwise than an autoscaler's plan expects; nothing changes.

        The order is that of autoscalers: new nodes are there before pods are evicted, and drained nodes are cordoned
        until the pods have new places. Evictions count against PodDisruptionBudgets. The pods are then scheduled in
        the queue's order, with preemption.

        Raises:
            WhatIfError: a node or a pod of the plan isn't there, an added node is there already, or a part of the
                plan has another type.
            SchedulingError: a plugin failed.
        """
        return check_plan(self, plan)

    def pods_on(self, name: str) -> tuple[Pod, ...]:
        """Return the pods on the node, including those that only have a place there.

        Raises:
            WhatIfError: there is no node of that name.
        """
        with self._engine.one_thread:
            self._check_open()
            return tuple(self._engine.pods_on(self._objects.node(name).name))

    @property
    def waiting(self) -> tuple[Waiting, ...]:
        """The pods that have a place and wait for permission to run there, of all calls of `schedule`."""
        with self._engine.one_thread:
            self._check_open()
            return tuple(self._engine.all_waiting())

    def schedule_as_many(self, pod: Pod, *, at_most: int | None = None) -> Replicas:
        """Give places to as many pods like this one as fit, without preemption.

        They are new pods, named `<pod>-1` and so on. The first one that doesn't fit isn't added.
        """
        expect(Pod, pod, "pod")
        if at_most is not None:
            expect_count(at_most, "at_most", "pods")
        names = self._objects.free_names(Pod, pod)
        outcomes: list[PodResult] = []
        refusal: Refused | None = None
        with self._change():
            while refusal is None and (at_most is None or len(outcomes) < at_most):
                with self._change() as one:
                    replica = self._engine.cluster.add(template_pod(pod, next(names)))
                    (outcome,) = self._engine.place_all([replica], preempt=False)
                    if isinstance(outcome, Refused):
                        one.is_undone = True
                        refusal = outcome
                    else:
                        outcomes.append(outcome)
            found = Schedule.of(self._engine.as_of_now(outcomes))
        return Replicas(found.placed, refusal, found.waiting)

    def objects(self) -> Iterator[Named]:
        """Return all objects as they are now; see `WhatIf.objects`."""
        return self._everything()

    def transaction(self) -> Transaction:
        """Return a nested transaction."""
        with self._engine.one_thread:
            self._check_open()
            return Transaction(self._engine, self, self)
