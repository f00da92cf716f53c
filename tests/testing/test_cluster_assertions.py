"""Assertions about whole clusters hold where they should, and name what is otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from kschedfw_apiserver.processes import WITHOUT_HYPOTHESIS

from kschedfw import InMemoryCluster, Scheduler, make_node, make_pod
from kschedfw.api.pod import Pod
from kschedfw.testing import assert_evicted, assert_no_overcommit, assert_placed, assert_spread
from kschedfw.testing.waiting import PATIENCE

ZONE = "topology.kubernetes.io/zone"


def cluster_of(placed: Iterable[str], pending: int = 0) -> InMemoryCluster:
    """Nodes a1, a2 and b1 with room for 2 CPUs each, in the zones a and b; pods of 1 CPU on the named nodes."""
    nodes = [
        make_node(name).capacity(cpu=2, memory="4Gi", pods=10).labels({ZONE: name[0]}).build()
        for name in ("a1", "a2", "b1")
    ]
    bound = [
        make_pod(f"web-{index}").labels(app="web").requests(cpu=1).node(node).build()
        for index, node in enumerate(placed)
    ]
    waiting = [make_pod(f"late-{index}").labels(app="late").build() for index in range(pending)]
    return InMemoryCluster([*nodes, make_node("c1").build(), *bound, *waiting])


class TestSpread:
    def test_is_counted_by_domain_and_not_by_node(self) -> None:
        assert_spread(cluster_of(["a1", "a2", "b1"]), ZONE, pods="app=web")
        assert_spread(cluster_of(["a1", "a2", "b1"]), ZONE, pods="app=web", namespace="default")

    def test_failure_names_the_count_of_each_domain_also_of_an_empty_one(self) -> None:
        with pytest.raises(AssertionError) as failure:
            assert_spread(cluster_of(["a1", "a2"]), ZONE, pods="app=web")
        assert str(failure.value) == (
            f"pods with app=web should be spread by {ZONE} with a skew of at most 1, not 2 (a: 2, b: 0)"
        )
        assert_spread(cluster_of(["a1", "a2"]), ZONE, max_skew=2)

    @pytest.mark.parametrize(
        ("key", "pods", "said"),
        [
            ("zone", "", "no node has the label zone"),
            (ZONE, "app=wbe", f"no pod with app=wbe is on a node with the label {ZONE}"),
        ],
    )
    def test_nothing_to_count_is_a_failure(self, key: str, pods: str, said: str) -> None:
        with pytest.raises(AssertionError, match=said):
            assert_spread(cluster_of(["a1"]), key, pods=pods)


class TestOvercommit:
    def test_full_node_is_none(self) -> None:
        assert_no_overcommit(cluster_of(["a1", "a1"]))

    def test_failure_names_node_resource_and_amounts(self) -> None:
        crowd = [make_pod(f"tiny-{index}").node("b1").build() for index in range(11)]
        cluster = cluster_of(["a1"] * 3)
        for pod in crowd:
            cluster.add(pod)
        with pytest.raises(AssertionError) as failure:
            assert_no_overcommit(cluster)
        assert str(failure.value) == (
            "nodes have more on them than they can take: a1 has 3000m cpu of 2000m, b1 has 11 pods of 10"
        )


class TestPlaced:
    def test_share_of_the_selected_pods_is_enough(self) -> None:
        cluster = cluster_of(["a1", "a1", "b1"], pending=1)
        assert_placed(cluster, 0.75)
        assert_placed(cluster, pods="app=web")

    def test_failure_names_pods_without_a_node_and_counts_the_rest(self) -> None:
        with pytest.raises(AssertionError) as failure:
            assert_placed(cluster_of(["a1"], pending=12), 0.5)
        assert str(failure.value).startswith("50% of the pods should have a node, not 1 of 13; without one: ")
        assert str(failure.value).endswith("default/late-9 and 2 more")

    def test_no_pod_is_a_failure(self) -> None:
        with pytest.raises(AssertionError, match="there is no pod with app=x in prod"):
            assert_placed(cluster_of([]), pods="app=x", namespace="prod")


def test_evicted_pods_are_those_that_were_there_before() -> None:
    low = make_pod("low").requests(cpu=2).node("n").build()
    high = make_pod("high").requests(cpu=2).priority(10).build()
    cluster = InMemoryCluster([make_node("n").capacity(cpu=2, pods=10).build(), low, high])
    before = cluster.list(Pod)
    assert_evicted(cluster, [], before=before)
    scheduler = Scheduler(cluster)
    scheduler.run_until_idle()
    scheduler.close()
    assert_evicted(cluster, ["low"], before=before)
    with pytest.raises(AssertionError, match="evicted should be none, not default/low"):
        assert_evicted(cluster, [], before=before)


FAILING = """
from pathlib import Path
from kschedfw import InMemoryCluster, make_node, make_pod
from kschedfw.testing import assert_decision, assert_golden, assert_placed, decide

NODES = [make_node("a").build()]

def test_decision():
    assert_decision(decide(make_pod("pod").build(), nodes=NODES), node="b")

def test_golden(tmp_path):
    golden = tmp_path / "golden.json"
    golden.write_text('{"default/pod": "b"}')
    assert_golden(golden, [*NODES, make_pod("pod").build()], placements_only=True)

def test_nothing_to_schedule(tmp_path):
    assert_golden(tmp_path / "golden.json", NODES)

def test_placed():
    assert_placed(InMemoryCluster([make_pod("pod").build()]))
"""


@pytest.mark.slow
def test_failure_shows_the_tests_own_line_and_no_frame_of_kschedfw(tmp_path: Path) -> None:
    test = tmp_path / "test_failing.py"
    test.write_text(FAILING, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        *WITHOUT_HYPOTHESIS,
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
    ]
    result = subprocess.run(
        [*command, str(test)], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=PATIENCE
    )
    assert "4 failed" in result.stdout
    assert "* default/pod: b → a" in result.stdout
    assert "cluster_assertions.py" not in result.stdout
    assert "golden.py" not in result.stdout
    assert "decisions.py" not in result.stdout
