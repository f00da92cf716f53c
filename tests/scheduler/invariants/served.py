"""A scheduler of a cluster behind an API server, between which everything goes wrong that can.

The truth is a cluster in memory; the scheduler sees it as it would a real one, over HTTP, through a client with its
threads. So a seed determines what is done, and not in which order the threads see it: what must hold does so at quiet
points, when nothing is changed and nothing goes wrong any more.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from threading import Condition
from types import TracebackType
from typing import Self, TypeVar

import attrs
from kschedfw_apiserver import ApiServer, Faults
from kschedfw_kubernetes.cluster import KubernetesCluster, connect

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.workloads import PodDisruptionBudget
from kschedfw.cluster import ConflictError, InMemoryCluster, NotFoundError, WatchEvent
from kschedfw.framework.clock import SystemClock
from kschedfw.framework.cluster_client import retry_on_conflict
from kschedfw.scheduler.queue.protocol import Place
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw.testing.waiting import PATIENCE
from tests.scheduler.invariants.objects import NODE_NAMES, POD_NAMES, random_budget, random_node, random_pod
from tests.scheduler.invariants.properties import nothing_fits, overfull

T = TypeVar("T")

SCHEDULER = "default-scheduler"
PACE = 200.0
"""How many times faster the scheduler's and the client's time goes by than real time."""
STEPS_BETWEEN_QUIET_POINTS = 50
_FOLLOWED = (Node, Pod)


class HurriedClock:
    """Real time, `PACE` times as fast: who waits for a second waits for five milliseconds."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self._now, self._began = self._real.now(), self._real.monotonic()

    def now(self) -> float:
        return self._now + self.monotonic()

    def monotonic(self) -> float:
        return (self._real.monotonic() - self._began) * PACE

    def wait_until(self, condition: Condition, deadline: float) -> None:
        condition.wait(min(max(0.0, (deadline - self.now()) / PACE), 1.0))


class NotingCluster(KubernetesCluster):
    """Notes on which nodes a pod may be although the scheduler was told of a failure: its place is given away then.

    So it is where no answer came, and where a request was delivered twice and the second answer is a conflict.
    """

    truth: InMemoryCluster
    uncertain: set[str]

    def bind(self, pod: Pod, node_name: str, *, deadline: float = math.inf) -> None:
        try:
            super().bind(pod, node_name, deadline=deadline)
        except Exception as error:
            present = self.truth.get(Pod, pod.key)
            is_there = present is not None and present.uid == pod.uid and present.node_name == node_name
            if is_there or not isinstance(error, ConflictError | NotFoundError):
                self.uncertain.add(node_name)
            raise


class ServedWorld:
    """Everything that a run consists of; a context manager, which ends its threads."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.steps = 0
        self.quiet_points = 0
        self.random = Random(seed)
        self.truth = InMemoryCluster(events_limit=1000)
        self.server = ApiServer(self.truth, seed=seed, history=300, bookmark_seconds=0.5)
        self.clock = HurriedClock()
        self.excused: set[str] = set()
        """Nodes that may hold too much through no fault of the scheduler's."""
        self.node_of: dict[str, str] = {}
        """Where each pod was bound to, by uid."""
        self.broken: list[str] = []
        self._uids = 0
        self._life = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as life:
            life.enter_context(self.server)
            life.callback(self.truth.journal(self._note))
            folder = Path(life.enter_context(tempfile.TemporaryDirectory()))
            kubeconfig = self.server.kubeconfig(folder / "kubeconfig")
            client = connect(kubeconfig, qps=-1, clock=self.clock, chance=Random(self.seed + 1))
            life.enter_context(client)
            self.cluster = NotingCluster(client)
            self.cluster.truth, self.cluster.uncertain = self.truth, set()
            life.enter_context(self.cluster)
            executor = life.enter_context(ThreadPoolExecutor(4, "binding"))
            for name in NODE_NAMES[:4]:
                self.truth.add(random_node(self.random, name, self._uid(name)))
            assert self.cluster.wait_for_sync(PATIENCE * PACE), "the client hasn't synced"
            self.scheduler = Scheduler(
                self.cluster, clock=self.clock, random=Random(self.seed + 2), executor=executor
            )
            life.callback(self.scheduler.close)
            self._life = life.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._life.close()

    def _note(self, event: WatchEvent) -> None:
        pod = event.object
        if isinstance(pod, Pod) and pod.node_name:
            first = self.node_of.setdefault(pod.uid, pod.node_name)
            if first != pod.node_name:
                self.broken.append(f"{pod.key} was bound to {first}, then to {pod.node_name}")

    # Steps

    def run(self, steps: int) -> None:
        """Take that many random steps, with quiet points between them.

        Raises:
            AssertionError: something doesn't hold; says after which steps of which seed.
        """
        names = list(STEPS)
        for _ in range(steps):
            self.steps += 1
            (name,) = self.random.choices(names, [STEPS[each][0] for each in names])
            try:
                STEPS[name][1](self)
                if self.steps % STEPS_BETWEEN_QUIET_POINTS == 0:
                    self.come_to_rest()
            except Exception as error:
                where = f"seed {self.seed}, step {self.steps} ({name})"
                raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error

    def add_pod(self) -> None:
        free = sorted(set(POD_NAMES) - {pod.name for pod in self.truth.list(Pod)})
        if free:
            name = self.random.choice(free)
            owner = self.random.choice((SCHEDULER, SCHEDULER, SCHEDULER, "somebody-else"))
            pod = random_pod(self.random, name, self._uid(name), owner)
            # The volumes' part is in `world.py`, where the waiting for them is.
            self.truth.add(attrs.evolve(pod, spec=attrs.evolve(pod.spec, volumes=())))

    def delete_pod(self) -> None:
        """As the API server does it: a pod on a node is told to end first."""
        if pod := self._any(self.truth.list(Pod)):
            if pod.node_name and not pod.is_terminating:
                self._change(pod, lambda metadata: attrs.evolve(metadata, deletion_timestamp=_LONG_AGO))
            elif not pod.node_name:
                self.truth.delete(pod)

    def finish_termination(self) -> None:
        if pod := self._any([pod for pod in self.truth.list(Pod) if pod.is_terminating]):
            self.truth.delete(pod)

    def relabel_pod(self) -> None:
        if pod := self._any(self.truth.list(Pod)):
            labels = FrozenDict({**pod.labels, "rev": str(self.random.randrange(3))})
            self._change(pod, lambda metadata: attrs.evolve(metadata, labels=labels))

    def _change(self, pod: Pod, change: Callable[[ObjectMeta], ObjectMeta]) -> None:
        """Change the pod's metadata, whatever the scheduler's threads write into its status meanwhile."""
        retry_on_conflict(self.truth, pod, lambda each: attrs.evolve(each, metadata=change(each.metadata)))

    def ungate(self) -> None:
        if pod := self._any([pod for pod in self.truth.list(Pod) if pod.spec.scheduling_gates]):
            retry_on_conflict(
                self.truth,
                pod,
                lambda each: attrs.evolve(each, spec=attrs.evolve(each.spec, scheduling_gates=())),
            )

    def bind_elsewhere(self) -> None:
        node = self._any(self.truth.list(Node))
        if node and (pod := self._any([pod for pod in self.truth.list(Pod) if _may_be_bound(pod)])):
            self.excused.add(node.name)
            self.truth.bind(pod, node.name)

    def add_node(self) -> None:
        if free := sorted(set(NODE_NAMES) - {node.name for node in self.truth.list(Node)}):
            name = self.random.choice(free)
            self.excused.add(name)  # pods of an earlier node of this name may still be there
            self.truth.add(random_node(self.random, name, self._uid(name)))

    def change_node(self) -> None:
        if node := self._any(self.truth.list(Node)):
            self.excused.add(node.name)  # it may have shrunk
            self.truth.update(random_node(self.random, node.name, node.uid))

    def delete_node(self) -> None:
        nodes = self.truth.list(Node)
        if len(nodes) > 1 and (node := self._any(nodes)):
            self.truth.delete(node)

    def change_budget(self) -> None:
        budgets = self.truth.list(PodDisruptionBudget)
        if budgets and self.random.random() < 0.5:
            self.truth.delete(self.random.choice(budgets))
            return
        budget = random_budget(self.random)
        if budget.key not in {each.key for each in budgets}:
            self.truth.add(budget)

    def schedule(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.scheduler.tick()
            self.scheduler.schedule_one()

    def wait(self) -> None:
        time.sleep(self.random.random() * 0.004)

    def change_weather(self) -> None:
        """Other things go wrong from now on, or nothing does."""
        chance = self.random.random
        if chance() < 0.3:
            self.server.faults = Faults()
            return

        def share() -> float:
            return chance() * 0.2 if chance() < 0.4 else 0.0

        self.server.faults = Faults(
            throttled=share(),
            failed_before=share(),
            failed_after=share(),
            lost=share(),
            half_sent=share(),
            duplicated=share(),
            late=share(),
            slow=share(),
            seconds=0.01,
            expired_watches=5 * share(),
            watch_seconds=0.02 + chance() * 0.1 if chance() < 0.4 else None,
            watch_events=self.random.randint(1, 10) if chance() < 0.4 else None,
            seed=self.random.randrange(1 << 30),
        )

    def cut_connections(self) -> None:
        self.server.cut_connections()

    def compact(self) -> None:
        self.server.compact()

    def pause(self) -> None:
        self.server.faults.paused = True
        time.sleep(0.01)
        self.server.faults.paused = False

    def restart(self) -> None:
        self.server.stop()
        self.server.start()

    # What must hold

    def come_to_rest(self) -> None:
        """Nothing goes wrong any more and nobody interferes: soon all has to be well."""
        self.server.faults = Faults()
        end, pause = time.perf_counter() + PATIENCE, 0.002
        while True:
            for pod in [pod for pod in self.truth.list(Pod) if pod.is_terminating]:
                self.truth.delete(pod)
            self.scheduler.run_until_idle()
            version = self.truth.resource_version
            wrong = self._what_is_wrong() or self._who_fits()
            if not wrong and self.truth.resource_version == version:
                break
            assert time.perf_counter() < end, f"not at rest after {PATIENCE:g} s: {wrong or 'it goes on'}"
            time.sleep(pause)  # who looks all the time keeps the other threads from getting there
            pause = min(2 * pause, 0.1)
        self.quiet_points += 1
        assert not self.broken, "; ".join(self.broken)
        over = overfull(self.truth) - self.excused - self.cluster.uncertain
        assert not over, f"too much on {over}"

    def _what_is_wrong(self) -> str:
        """The first thing that isn't (yet) as it has to be at rest; empty if all is well."""
        for kind in _FOLLOWED:
            seen = {obj.key: _without_versions(obj) for obj in self.cluster.list(kind)}
            there = {obj.key: _without_versions(obj) for obj in self.truth.list(kind)}
            if seen != there:
                wrong = [key for key in {**seen, **there} if seen.get(key) != there.get(key)]
                return f"the list of {kind.__name__}s is another one: {wrong}"
        dump, queue = self.scheduler.cache.dump(), self.scheduler.queue
        if dump.assumed:
            return f"assumed: {dump.assumed}"
        cached = {node.name: _without_versions(node) for node in dump.nodes}
        if cached != {node.name: _without_versions(node) for node in self.truth.list(Node)}:
            return "the cache has other nodes"
        bound = {pod.uid: _without_versions(pod) for pod in self.truth.list(Pod) if pod.node_name}
        if (cached_pods := {pod.uid: _without_versions(pod) for pod in dump.pods}) != bound:
            wrong = [uid for uid in {**cached_pods, **bound} if cached_pods.get(uid) != bound.get(uid)]
            return f"the cache has other pods on nodes: {wrong}"
        if in_flight := queue.in_flight_pods():
            return f"in flight: {[pod.key for pod in in_flight]}"
        waiting = {pod.uid for place in _WAITING for pod in queue.pods_in(place)}
        pending = {pod.uid for pod in self._pending()}
        return "" if waiting == pending else f"waits, or should: {waiting ^ pending}"

    def _who_fits(self) -> str:
        """A pod that waits though there is a node for it, as some do until their backoff or the next flush."""
        try:
            nothing_fits(self.scheduler, self._pending(gated=False))
        except AssertionError as error:
            return str(error)
        return ""

    def _pending(self, *, gated: bool = True) -> Sequence[Pod]:
        return [
            pod
            for pod in self.truth.list(Pod)
            if not pod.node_name
            and not pod.is_terminating
            and pod.spec.scheduler_name == SCHEDULER
            and (gated or not pod.spec.scheduling_gates)
        ]

    def _uid(self, name: str) -> str:
        self._uids += 1
        return f"{name}-{self._uids}"

    def _any(self, things: Sequence[T]) -> T | None:
        return self.random.choice(things) if things else None


def _may_be_bound(pod: Pod) -> bool:
    return not pod.node_name and not pod.is_terminating and not pod.spec.scheduling_gates


def _without_versions(obj: Named) -> Named:
    """The object without what the server gives it, and the cluster in memory hasn't."""
    metadata = attrs.evolve(obj.metadata, resource_version="", creation_timestamp=None, generation=0)
    return obj.with_metadata(metadata)


_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
_WAITING = (Place.BACKOFF, Place.UNSCHEDULABLE, Place.GATED)

STEPS: dict[str, tuple[float, Callable[[ServedWorld], None]]] = {
    "add_pod": (20, ServedWorld.add_pod),
    "schedule": (30, ServedWorld.schedule),
    "wait": (12, ServedWorld.wait),
    "delete_pod": (8, ServedWorld.delete_pod),
    "finish_termination": (8, ServedWorld.finish_termination),
    "relabel_pod": (3, ServedWorld.relabel_pod),
    "ungate": (3, ServedWorld.ungate),
    "bind_elsewhere": (0.5, ServedWorld.bind_elsewhere),
    "add_node": (2, ServedWorld.add_node),
    "change_node": (1, ServedWorld.change_node),
    "delete_node": (1, ServedWorld.delete_node),
    "change_budget": (2, ServedWorld.change_budget),
    "change_weather": (3, ServedWorld.change_weather),
    "cut_connections": (1, ServedWorld.cut_connections),
    "compact": (1, ServedWorld.compact),
    "pause": (0.3, ServedWorld.pause),
    "restart": (0.4, ServedWorld.restart),
}
"""What happens, and how often."""
