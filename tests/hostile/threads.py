"""Schedules with threads, plugins that raise anything at all, slow bindings and executors that are shut down.

`python -m tests.hostile.threads SECONDS [FIRST_SEED]` drills one scheduler after the other for that long. The exit code
is 1 after the first drill in which a pod is lost, something stays reserved, or nothing goes on.
"""

from __future__ import annotations

import logging
import resource
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from random import Random
from typing import Final

import attrs

from kschedfw import InMemoryCluster, Node, Parallelizer, Pod, Registry, Scheduler, Status
from kschedfw.cluster import ClusterError
from kschedfw.framework.clock import SystemClock
from kschedfw.testing.waiting import PATIENCE
from tests.framework.support import PluginClass, answering, plugin
from tests.hostile.trial import say, show_threads, watch
from tests.scheduler.stage import NODE_ADDED, node, pod, with_default_plugins

DRILL = 2.0  # seconds of trouble, after which everything has to come to a good end
GRACE = PATIENCE  # seconds that the good end may take, and the trouble that is asked for
LEAST: Final[Mapping[str, int]] = {"binding cycles cancelled": 1}
MOST_PODS = 150  # there is room for all of them
NODES: Final = 20

_THREADS: Final = 8

FAILURES: Final[tuple[type[BaseException], ...]] = (RuntimeError, MemoryError, SystemExit)
"""What costs an attempt."""
UNEXPECTED: Final = ("an attempt failed in a way that it shouldn't", "%s couldn't be given back")
"""What is logged where a last resort was needed."""


class Stopping(BaseException):
    """What ends everything, as KeyboardInterrupt does."""


class BreakingExecutor:
    """Threads that are shut down now and then, and the tasks that wait for them are cancelled."""

    def __init__(self) -> None:
        self.cancelled = 0
        self._pool = ThreadPoolExecutor(_THREADS)
        self._submitted = threading.Event()

    def submit(self, task: Callable[[], None], /) -> Future[None]:
        future = self._pool.submit(task)
        future.add_done_callback(self._count)
        self._submitted.set()
        return future

    def shut_down(self, patience: float = 0.0) -> None:
        """End all threads. With `patience`, in seconds, wait for a task that comes too late and is cancelled."""
        freed = threading.Event()
        for _ in range(_THREADS):  # whatever is submitted behind these has to wait
            self._pool.submit(freed.wait)
        self._submitted.clear()
        self._submitted.wait(patience)
        self._pool.shutdown(wait=False, cancel_futures=True)
        freed.set()

    def replace(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS)

    def _count(self, future: Future[None]) -> None:
        self.cancelled += future.cancelled()


class _Unexpected(logging.Handler):
    """Takes what is logged, and keeps what never should be."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg in UNEXPECTED:
            error = record.exc_info[1] if record.exc_info else None
            self.found.append(f"{record.getMessage()}: {error!r}")


@attrs.define(eq=False)
class Drill:
    """A cluster, a scheduler on a thread of its own, and threads that get in its way."""

    seed: int
    told: Counter[str] = attrs.field(factory=Counter, init=False)
    """How many times what happened, to show that it did."""
    cluster: InMemoryCluster = attrs.field(init=False)
    scheduler: Scheduler = attrs.field(init=False)
    _random: Random = attrs.field(init=False)
    _executor: BreakingExecutor = attrs.field(factory=BreakingExecutor, init=False)
    _reserved: Counter[str] = attrs.field(factory=Counter, init=False)
    _violations: list[str] = attrs.field(factory=list, init=False)
    _trouble: bool = attrs.field(default=True, init=False)
    _over: threading.Event = attrs.field(factory=threading.Event, init=False)
    """Nobody makes trouble any more, and the scheduler has been told to stop."""

    def __attrs_post_init__(self) -> None:
        self._random = Random(self.seed)
        self.cluster = InMemoryCluster(
            [node(f"n{number}", cpu=8) for number in range(NODES)], events_limit=1000
        )
        self.scheduler = self._new_scheduler()

    def run(self, seconds: float = DRILL, least: Mapping[str, int] = LEAST) -> None:
        """Make trouble for that long, and until the `least` has happened; then all pods have to be bound.

        Raises:
            AssertionError: something is lost, left over, or doesn't end.
        """
        unexpected = _Unexpected()
        logger = logging.getLogger("kschedfw")
        logger.addHandler(unexpected)
        before, logger.propagate = logger.propagate, False
        try:
            self._run(seconds, least)
        finally:
            logger.removeHandler(unexpected)
            logger.propagate = before
        assert not unexpected.found, unexpected.found
        assert not self._violations, self._violations

    def _run(self, seconds: float, least: Mapping[str, int]) -> None:
        scheduling = self._thread(self._schedule)
        troublemakers = [
            self._thread(work, number)
            for number, work in enumerate((self._feed, self._feed, self._decide, self._break, self._change))
        ]
        time.sleep(seconds)
        self._wait_for(lambda: self._has_happened(least), f"there wasn't {dict(least)}")
        self._trouble = False
        self._join(*troublemakers)
        self.cluster.add(node("last", cpu=8))  # whoever was refused may try again
        self._wait_for(self._all_are_bound, "pods are lost")
        self._wait_for(lambda: not self._left_over(), "something is left over")
        # Once more, and in the middle of it the executor ends, and the scheduler has to.
        self.told["pods"] += 20
        for number in range(20):
            self.cluster.add(pod(f"late-{number}", cpu="10m"))
        time.sleep(self._random.uniform(0, 0.05))
        self._executor.shut_down()
        self._over.set()
        self.scheduler.stop()
        self._join(scheduling)
        assert not (left := self._left_over(is_closed=True)), left
        assert not (wrong := self.scheduler.debugger.compare()).redundant_pods, wrong

    # Who schedules

    def _new_scheduler(self) -> Scheduler:
        plugins = self._plugins()
        registry = Registry()
        for each in plugins:
            registry.register(each)
        return Scheduler(
            self.cluster,
            [with_default_plugins(*plugins)],
            registry=registry,
            random=Random(self.seed),
            executor=self._executor,
            parallelizer=Parallelizer(2),
            initial_backoff=0.01,
            max_backoff=0.1,
        )

    def _schedule(self) -> None:
        """Whenever a plugin has ended it, nothing is left over, and another scheduler goes on."""
        while not self._over.is_set():
            try:
                self.scheduler.run()
            except (KeyboardInterrupt, Stopping):
                self.told["interruptions"] += 1
                if left := self._left_over(is_closed=True):
                    self._violations.append(f"after an interruption: {left}")
                self.scheduler = self._new_scheduler()

    # Who makes trouble

    def _feed(self, number: int) -> None:
        """Pods come, and some of them go, wherever they are."""
        random = Random(self.seed + number)
        for serial in count():
            if not self._trouble:
                return
            pods = self.cluster.list(Pod)
            try:
                if len(pods) < MOST_PODS and random.random() < 0.8:
                    self.told["pods"] += 1
                    self.cluster.add(pod(f"pod-{number}-{serial}", cpu="100m", priority=random.randint(0, 2)))
                elif pods:
                    self.cluster.delete(random.choice(pods))
            except ClusterError:  # the other one was faster
                pass
            time.sleep(random.uniform(0, 0.005))

    def _decide(self, number: int) -> None:
        """Pods that wait for permission get it, or are refused, and when all is over all get it."""
        random = Random(self.seed + number)
        while self._trouble or len(self.scheduler.waiting_pods):
            for waiting in self.scheduler.waiting_pods:
                if not self._trouble or random.random() < 0.8:
                    waiting.allow("Troublemaker")
                else:
                    waiting.reject("Troublemaker", "not today")
            time.sleep(0.01)

    def _break(self, number: int) -> None:
        random = Random(self.seed + number)
        while self._trouble:
            time.sleep(random.uniform(0.01, 0.2))
            self.told["executors shut down"] += 1
            self._executor.shut_down(patience=0.2)
            time.sleep(random.uniform(0, 0.01))
            self._executor.replace()

    def _change(self, number: int) -> None:
        """Nodes change, which brings refused pods back."""
        random = Random(self.seed + number)
        while self._trouble:
            self.cluster.update(random.choice(self.cluster.list(Node)))
            time.sleep(0.02)

    def _plugins(self) -> Sequence[PluginClass]:
        def reserve(pod: Pod) -> None:
            self._reserved[pod.uid] += 1

        def release(pod: Pod) -> None:
            self._reserved[pod.uid] -= 1

        def permit() -> Status | None:
            self._strike()
            return Status.wait(5) if self._happens(0.1) else None

        def bind(pod: Pod, node_name: str) -> Status:
            self._strike()
            if self._happens(0.05):
                time.sleep(self._random.uniform(0, 0.1))
            if self._happens(0.02):
                self.cluster.bind(pod, node_name)
                raise TimeoutError("the answer got lost")
            return Status.skip()

        def strike() -> None:
            self._strike()

        def score() -> int:
            self._strike(0.002)
            return 0

        ledger = plugin("Ledger", reserve=reserve, unreserve=release, post_bind=release)
        troublemaker = plugin(
            "Troublemaker",
            pre_filter=strike,
            filter=lambda: self._strike(0.002),
            pre_score=strike,
            score=score,
            reserve=strike,
            unreserve=lambda: self._strike(kinds=FAILURES),
            permit=permit,
            pre_bind=strike,
            bind=bind,
            post_bind=strike,
            events_to_register=answering([NODE_ADDED]),
        )
        return ledger, troublemaker

    def _happens(self, probability: float) -> bool:
        return self._trouble and self._random.random() < probability

    def _strike(
        self,
        probability: float = 0.01,
        kinds: Sequence[type[BaseException]] = (*FAILURES * 10, KeyboardInterrupt, Stopping),
    ) -> None:
        if self._happens(probability):
            kind = self._random.choice(kinds)
            self.told[kind.__name__] += 1
            raise kind

    # What has to hold

    def _all_are_bound(self) -> bool:
        return all(each.node_name for each in self.cluster.list(Pod))

    def _left_over(self, *, is_closed: bool = False) -> str:
        """What should have ended with the binding cycles, and hasn't.

        Who has closed may have missed that the cluster confirmed a binding, if another thread was just telling.
        """
        scheduler = self.scheduler
        assumed = scheduler.cache.dump().assumed
        if is_closed:
            assumed &= {each.uid for each in self.cluster.list(Pod) if not each.node_name}
        found = {
            "assumed": assumed,
            "in flight": [each.key for each in scheduler.queue.in_flight_pods()],
            "waiting": [each.pod.key for each in scheduler.waiting_pods],
            "in pre_bind": [each.pod.key for each in scheduler.pods_in_pre_bind],
            "reserved": [uid for uid, times in dict(self._reserved).items() if times],
        }
        return "; ".join(f"{name}: {what}" for name, what in found.items() if what)

    def _has_happened(self, least: Mapping[str, int]) -> bool:
        self.told["binding cycles cancelled"] = self._executor.cancelled
        return all(self.told[what] >= times for what, times in least.items())

    def _wait_for(self, condition: Callable[[], object], otherwise: str) -> None:
        deadline = time.monotonic() + GRACE
        while not condition():
            assert time.monotonic() < deadline, f"seed {self.seed}: {otherwise}: {self._state()}"
            time.sleep(0.01)

    def _state(self) -> str:
        queue = self.scheduler.queue
        places = {each.key: queue.place(each.uid) for each in self.cluster.list(Pod) if not each.node_name}
        return f"{places}; {self._left_over()}"

    def _thread(self, work: Callable[..., None], *arguments: object) -> threading.Thread:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException:
                self._violations.append(traceback.format_exc())

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def _join(self, *threads: threading.Thread) -> None:
        for thread in threads:
            thread.join(GRACE)
            assert not thread.is_alive(), f"seed {self.seed}: a thread doesn't end: {self._state()}"


def main(arguments: Sequence[str]) -> int:
    """Drill for arguments[0] seconds, and at least once, from seed arguments[1] on if given."""
    clock = SystemClock()
    seconds = float(arguments[0])
    first = int(arguments[1]) if len(arguments) > 1 else int(clock.now())
    began = clock.monotonic()
    told: Counter[str] = Counter()
    for seed in count(first):
        watch(2 * GRACE)
        drill = Drill(seed)
        try:
            drill.run()
        except AssertionError as error:
            say(f"FAILED: seed {seed}: {error}")
            show_threads()
            return 1
        told += drill.told
        took = clock.monotonic() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        what = ", ".join(f"{number} {name}" for name, number in sorted(told.items()))
        say(f"{took:.0f} s: seeds {first}–{seed}: {what}; {memory} MiB at most")
        if took >= seconds:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
