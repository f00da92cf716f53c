"""What a scheduler keeps is bounded: pods that come and go leave nothing behind."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from kschedfw import make_node, make_pod
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.scheduler.scheduler import Scheduler


def own_objects() -> Counter[str]:
    """The number of live objects of this project's classes, by class."""
    gc.collect()
    kinds = (type(obj) for obj in gc.get_objects())
    return Counter(kind.__qualname__ for kind in kinds if str(kind.__module__).startswith("kschedfw"))


@pytest.mark.slow
def test_pods_that_come_and_go_leave_nothing_behind() -> None:
    nodes = [
        make_node(f"n{number}").capacity(cpu="4", pods="9").labels(zone=f"z{number % 2}").build()
        for number in range(4)
    ]
    cluster = InMemoryCluster(nodes, events_limit=100)
    scheduler = Scheduler(cluster)

    def churn(first: int, count: int) -> None:
        for number in range(first, first + count):
            cluster.add(make_pod(f"p{number}").requests(cpu="1").labels(app="a").build())
            scheduler.run_until_idle()
            if number >= 10 and (old := cluster.get(Pod, f"default/p{number - 10}")) is not None:
                cluster.delete(old)

    # The events of the first pods have been dropped by then.
    churn(0, 150)
    before = own_objects()
    churn(150, 200)
    grown = {name: count for name, count in (own_objects() - before).items() if count > 5}
    assert not grown
    assert len(cluster.events) == 100
