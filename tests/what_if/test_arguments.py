"""Wrong arguments and wrong uses: one line says what is expected, and nothing is left in the transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from kschedfw import Node, Pod, Profile, Transaction, WhatIf, make_pod
from kschedfw.config import SchedulerConfiguration
from kschedfw.what_if import ConcurrentUseError, ScalingPlan, WhatIfError
from tests.what_if.builders import node, running, what_if

POD = make_pod("new").build()
NODE = node("n9").build()


@pytest.fixture
def cluster() -> WhatIf:
    return what_if(node("n1").build(), running("on-1", "n1"), make_pod("wait").requests(cpu="1").build())


def wrong(argument: object) -> Pod:
    """What a type checker would refuse."""
    return cast(Pod, argument)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            lambda trial: trial.add(wrong(make_pod("x"))),
            "objects: expected objects such as nodes and pods, found a",
        ),
        (
            lambda trial: trial.add(wrong([POD])),
            "objects: expected objects such as nodes and pods, found list",
        ),
        (
            lambda trial: trial.add_nodes(wrong(node("n"))),
            "template: expected a node, found a NodeBuilder that isn't",
        ),
        (
            lambda trial: trial.add_nodes(NODE, cast(int, "2")),
            "count: expected a number of nodes from 0 on, found '2'",
        ),
        (
            lambda trial: trial.update(wrong("x")),
            "obj: expected an object such as a node or a pod, found 'x'",
        ),
        (
            lambda trial: trial.delete(wrong(None)),
            "objects: expected objects such as nodes and pods, found None",
        ),
        (lambda trial: trial.cordon(cast(str, NODE)), "names: expected names of nodes, found node n9"),
        (lambda trial: trial.uncordon(cast(str, ["n1"])), "names: expected names of nodes, found list"),
        (lambda trial: trial.drain(cast(str, NODE)), "names: expected names of nodes, found node n9"),
        (lambda trial: trial.evict(wrong("on-1")), "pods: expected pods, found 'on-1'"),
        (lambda trial: trial.preempt(wrong("on-1")), "pods: expected pods, found 'on-1'"),
        (lambda trial: trial.restore(wrong("on-1")), "pods: expected pods, found 'on-1'"),
        (
            lambda trial: trial.can_schedule(wrong(make_pod("x"))),
            "pod: expected a pod, found a PodBuilder that isn't",
        ),
        (
            lambda trial: trial.schedule(cast(list[Pod], POD)),
            "pods: expected a list of pods, found pod default/new",
        ),
        (lambda trial: trial.schedule("web"), "pods: expected a list of pods, found 'web'"),
        (lambda trial: trial.schedule([wrong(NODE)]), "pods: expected pods, found node n9"),
        (lambda trial: trial.schedule([POD, POD]), "pods: expected each pod once, found twice: default/new"),
        (lambda trial: trial.explain(wrong("x")), "pod: expected a pod, found 'x'"),
        (lambda trial: trial.explain(POD, [wrong(7)]), "pods: expected pods, found int"),
        (
            lambda trial: trial.schedule_as_many(wrong(make_pod("x"))),
            "pod: expected a pod, found a PodBuilder that isn't",
        ),
        (
            lambda trial: trial.schedule_as_many(POD, at_most=-1),
            "at_most: expected a number of pods from 0 on, found -1",
        ),
        (
            lambda trial: trial.check(cast(ScalingPlan, {"remove": ["n1"]})),
            "plan: expected a ScalingPlan, found dict",
        ),
        (
            lambda trial: trial.check(ScalingPlan(add=cast(tuple[Node, ...], NODE))),
            "plan.add: expected a list of nodes, found node n9",
        ),
        (
            lambda trial: trial.check(ScalingPlan(remove=cast(tuple[str, ...], "n1"))),
            "plan.remove: expected a list of names of nodes, found 'n1'",
        ),
        (
            lambda trial: trial.check(ScalingPlan(pods=cast(dict[str, str], ["default/wait"]))),
            "plan.pods: expected names of nodes by the keys of pods, found list",
        ),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_expected(
    cluster: WhatIf, operation: Callable[[Transaction], object], message: str
) -> None:
    with cluster.transaction() as trial:
        before = list(trial.objects())
        with pytest.raises(WhatIfError) as raised:
            operation(trial)
        assert str(raised.value).startswith(message)
        assert "\n" not in str(raised.value)
        assert list(trial.objects()) == before


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("cluster.yaml", "found 'cluster.yaml'; read_manifests reads files"),
        (Path("cluster.yaml"), "found 'cluster.yaml'; read_manifests reads files"),
        ({"kind": "Node"}, "found dict"),
        (None, "found None"),
        (NODE, "found node n9"),
        (node("n1"), r"found a NodeBuilder that isn't built: call .build\(\)"),
    ],
)
def test_a_wrong_source_is_named_with_what_is_expected(source: object, message: str) -> None:
    expected = f"source: expected manifests, objects, a cluster or a scheduler, {message}"
    with pytest.raises(WhatIfError, match=expected):
        WhatIf(source)  # type: ignore[arg-type]


def test_wrong_parts_of_a_source_and_of_its_scheduler_are_named() -> None:
    with pytest.raises(
        WhatIfError, match=r"source: expected objects .*, found a PodBuilder that isn't built"
    ):
        WhatIf([NODE, cast(Node, make_pod("x"))])
    with pytest.raises(
        WhatIfError, match=r"configuration: expected a SchedulerConfiguration, found 'c\.yaml'; load_c"
    ):
        WhatIf([NODE], cast(SchedulerConfiguration, "c.yaml"))
    with pytest.raises(WhatIfError, match="profiles: expected Profiles, found 'default-scheduler'"):
        WhatIf([NODE], profiles=[cast(Profile, "default-scheduler")])
    with pytest.raises(WhatIfError, match="pod: expected a pod, found 'x'"):
        WhatIf([NODE]).explain(wrong("x"))


def test_an_operation_that_fails_half_way_leaves_nothing(cluster: WhatIf) -> None:
    bound = cluster.pods[0]
    with cluster.transaction() as trial:
        before = list(trial.objects())
        for operation in (
            lambda: trial.schedule([POD, bound]),
            lambda: trial.add(POD, bound),
            lambda: trial.delete(bound, POD),
            lambda: trial.drain("n1", "n9"),
            lambda: trial.preempt(bound, POD),
            lambda: trial.evict(bound, POD),
        ):
            with pytest.raises(WhatIfError):
                operation()
            assert list(trial.objects()) == before
        with pytest.raises(WhatIfError, match="isn't preempted"):
            trial.restore(bound)


class TestThreads:
    def test_another_thread_is_refused_while_a_transaction_is_open(self, cluster: WhatIf) -> None:
        with ThreadPoolExecutor(1) as other, cluster.transaction() as trial:
            for use in (
                lambda: cluster.pods,
                lambda: cluster.pending,
                lambda: list(cluster.objects()),
                lambda: cluster.explain(POD),
                lambda: cluster.transaction().__enter__(),
                lambda: trial.schedule([POD]),
                lambda: trial.can_schedule(POD),
                trial.commit,
                cluster.close,
            ):
                with pytest.raises(ConcurrentUseError, match="in use on another thread"):
                    other.submit(use).result()
            assert trial.schedule([POD])

    def test_it_may_be_handed_over_between_transactions(self, cluster: WhatIf) -> None:
        def ask() -> bool:
            with cluster.transaction() as trial:
                return bool(trial.schedule(cluster.pending))

        with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
            assert all(pool.submit(ask).result() for pool in (one, other, one, other))
        assert ask()

    def test_threads_that_use_it_at_the_same_time_leave_it_as_it_was(self, cluster: WhatIf) -> None:
        before = list(cluster.objects())
        start = threading.Barrier(4)

        def ask() -> int:
            start.wait()
            refused = 0
            for _ in range(50):
                try:
                    with cluster.transaction() as trial:
                        assert trial.schedule([*cluster.pending, POD])
                        trial.drain("n1")
                except ConcurrentUseError:
                    refused += 1
            return refused

        with ThreadPoolExecutor(4) as pool:
            refusals = [each.result() for each in [pool.submit(ask) for _ in range(4)]]
        assert sum(refusals) < 200, "somebody was served"
        assert list(cluster.objects()) == before
