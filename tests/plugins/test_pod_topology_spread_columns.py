"""PodTopologySpread in columns: batch, scalar and a plain-loop oracle agree, on any cluster and after any change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw.api.affinity import UnsatisfiableAction
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.framework.results import Verdicts
from kschedfw.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from kschedfw.testing import strategies
from kschedfw.testing.properties import examples
from tests.plugins import spread_oracle as oracle
from tests.plugins.cycles import Cycle, make, make_node, make_pod, short

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web"}

HARD, SOFT = UnsatisfiableAction.DO_NOT_SCHEDULE, UnsatisfiableAction.SCHEDULE_ANYWAY

NODE_NAMES = ("a", "b", "c", "d", "e")
POD_LABELS = st.sampled_from([{}, WEB, WEB, {"app": "db"}, {**WEB, "rev": "1"}])
SELECTORS = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": WEB},
        {"matchLabels": WEB},
        {"matchExpressions": [{"key": "rev", "operator": "DoesNotExist"}]},
    ]
)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    labels = {
        ZONE: draw(st.sampled_from(["", "x", "x", "y", "z", None])),
        HOST: draw(st.sampled_from([name, name, name, "shared", None])),
        "disk": draw(st.sampled_from(["ssd", "hdd", None])),
    }
    taints = draw(st.sampled_from([(), (), ("t:NoSchedule",), ("t:PreferNoSchedule",), ("u:NoExecute",)]))
    return make_node(name, {key: value for key, value in labels.items() if value is not None}, *taints)


@st.composite
def others(draw: st.DrawFn, on: str = "") -> Pod:
    """Pods that may be counted."""
    leaving = {"deletionTimestamp": "2024-01-01T00:00:00Z"} if draw(st.integers(0, 4)) == 0 else {}
    return make_pod(
        f"other-{draw(st.integers(0, 10**9))}",
        draw(POD_LABELS),
        on=on,
        namespace=draw(st.sampled_from(["default", "default", "elsewhere"])),
        metadata=leaving,
    )


@st.composite
def node_infos(draw: st.DrawFn, name: str) -> NodeInfo:
    return NodeInfo.of(draw(nodes(name)), draw(st.lists(others(on=name), max_size=4)))


def clusters() -> st.SearchStrategy[list[NodeInfo]]:
    names = st.lists(st.sampled_from(NODE_NAMES), min_size=1, unique=True)
    return names.flatmap(lambda chosen: st.tuples(*map(node_infos, chosen)).map(list))


@st.composite
def constraints(draw: st.DrawFn, actions: Sequence[str]) -> dict[str, Any]:
    constraint: dict[str, Any] = {
        "maxSkew": draw(st.integers(1, 3)),
        "topologyKey": draw(st.sampled_from([ZONE, HOST, "disk"])),
        "whenUnsatisfiable": draw(st.sampled_from(actions)),
        "nodeAffinityPolicy": draw(st.sampled_from(["Honor", "Ignore"])),
        "nodeTaintsPolicy": draw(st.sampled_from(["Honor", "Ignore"])),
    }
    if (selector := draw(SELECTORS)) is not None:
        constraint["labelSelector"] = selector
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and draw(st.booleans()):
        constraint["minDomains"] = draw(st.integers(1, 4))
    return constraint


@st.composite
def pending(draw: st.DrawFn, actions: Sequence[str] = ("DoNotSchedule", "ScheduleAnyway")) -> Pod:
    not_hdd = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["hdd"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [not_hdd]}}
    return make_pod(
        "incoming",
        draw(POD_LABELS),
        topologySpreadConstraints=draw(
            st.lists(
                constraints(actions),
                min_size=1,
                max_size=3,
                unique_by=lambda each: (each["topologyKey"], each["whenUnsatisfiable"]),
            )
        ),
        nodeSelector=draw(st.sampled_from([{}, {}, {"disk": "ssd"}])),
        affinity=draw(st.sampled_from([{}, {}, {"nodeAffinity": required}])),
        tolerations=draw(st.sampled_from([[], [{"key": "t", "operator": "Exists"}]])),
    )


def cycle(infos: Sequence[NodeInfo], *objects: Any, **args: Any) -> Cycle:
    run = Cycle.of(PodTopologySpread, PodTopologySpreadArgs(**args), (), (), objects)
    run.snapshot.replace(infos)
    return run


def the_plugin(run: Cycle) -> PodTopologySpread:
    assert isinstance(run.plugin, PodTopologySpread)
    return run.plugin


def words(verdicts: Verdicts) -> list[str]:
    return [short(verdicts.of(index)) for index in range(len(verdicts.codes))]


def assert_filters_agree(run: Cycle, expected: oracle.Hard, state: CycleState, rows: list[int]) -> None:
    """For these rows and for all: the oracle, `filter`, and `filter_batch`."""
    plugin, table = the_plugin(run), run.snapshot.table
    verdicts = [expected.verdict(info.node.labels) for info in table.node_infos]
    assert [short(plugin.filter(state, info)) for info in table.node_infos] == verdicts
    together, some = (
        plugin.filter_batch(state, table, each) for each in (table.all_rows, np.array(rows, dtype=np.int64))
    )
    assert words(together) == verdicts
    assert words(some) == [verdicts[row] for row in rows]


def assert_pre_filter_agrees(run: Cycle, pod: Pod, rows: list[int]) -> oracle.Hard | None:
    """Begin a cycle, and compare; None if the pod has no hard constraints."""
    plugin = the_plugin(run)
    hard = plugin.constraints(pod, HARD)
    status = run.pre_filter(pod)
    if not hard:
        assert status is not None
        assert status.is_skip
        return None
    assert status is None
    expected = oracle.Hard.of(pod, hard, run.snapshot.node_infos)
    assert_filters_agree(run, expected, run.state, rows)
    return expected


def assert_scores_agree(run: Cycle, pod: Pod, rows: list[int], *, require_all: bool = True) -> None:
    """With these rows feasible: the oracle, `score`, and `score_batch`, with nodes in a selection or in a list."""
    plugin, table = the_plugin(run), run.snapshot.table
    soft = plugin.constraints(pod, SOFT)
    if not soft:
        assert run.skips_scoring(pod)
        return
    every_row = list(range(len(table)))
    selections = (
        (rows, NodeSelection(table, np.array(rows, dtype=np.int64))),
        (every_row, NodeSelection.whole(table)),
    )
    for chosen, selection in selections:
        feasible = [table.node_infos[row] for row in chosen]
        expected = oracle.scores(pod, soft, feasible, table.node_infos, require_all=require_all)
        state = CycleState()
        assert plugin.pre_score(state, pod, selection) is None
        batch = plugin.score_batch(state, selection.rows)
        assert batch.dtype == np.int64
        assert batch.tolist() == expected[0]
        assert plugin.normalize_score(state, selection, batch.copy()).tolist() == expected[1]
        assert run.score(pod, [info.name for info in feasible]) == expected


def some_rows(data: st.DataObject, infos: Sequence[object]) -> list[int]:
    """Some rows in any order."""
    order = data.draw(st.permutations(range(len(infos))))
    return order[: data.draw(st.integers(0, len(infos)))]


@given(clusters(), pending(), st.data())
def test_arrays_filter_as_loops_do(infos: list[NodeInfo], pod: Pod, data: st.DataObject) -> None:
    assert_pre_filter_agrees(cycle(infos), pod, some_rows(data, infos))


@given(clusters(), pending(["DoNotSchedule"]), st.data())
def test_pods_that_come_and_go_are_counted_by_clones_alone(
    infos: list[NodeInfo], pod: Pod, data: st.DataObject
) -> None:
    run = cycle(infos)
    plugin, rows = the_plugin(run), some_rows(data, infos)
    expected = assert_pre_filter_agrees(run, pod, rows)
    assert expected is not None
    late = data.draw(node_infos("late"))
    changed, clone = oracle.Hard.of(pod, expected.constraints, infos), run.state.clone()
    for _ in range(data.draw(st.integers(1, 4))):
        info = data.draw(st.sampled_from([*infos, late]))
        going = data.draw(st.sampled_from([None, *info.pods]))
        if going is not None:
            changed.change(going.pod, info.node, -1)
            plugin.pre_filter_remove_pod(clone, going, info)
        else:
            coming = data.draw(others())
            changed.change(coming, info.node, 1)
            plugin.pre_filter_add_pod(clone, PodInfo.of(coming), info)
        if data.draw(st.booleans()):
            clone = clone.clone()
    assert_filters_agree(run, changed, clone, rows)
    assert_filters_agree(run, expected, run.state, rows)


@given(clusters(), pending(["ScheduleAnyway"]), st.data())
def test_arrays_score_as_loops_do(infos: list[NodeInfo], pod: Pod, data: st.DataObject) -> None:
    assert_scores_agree(cycle(infos), pod, some_rows(data, infos))


@given(clusters(), st.data())
def test_so_they_do_with_the_systems_defaults(infos: list[NodeInfo], data: st.DataObject) -> None:
    service = make("Service", "web", "default", spec={"selector": WEB})
    pod = make_pod(labels=data.draw(POD_LABELS))
    assert_scores_agree(cycle(infos, service), pod, some_rows(data, infos), require_all=False)


@pytest.mark.slow
@settings(max_examples=examples(40))  # drawing all that pods can have takes long
@given(strategies.clusters(), st.data())
def test_so_they_do_on_clusters_of_all_kinds(cluster: strategies.DrawnCluster, data: st.DataObject) -> None:
    run = Cycle.of(PodTopologySpread, PodTopologySpreadArgs(), cluster.nodes, cluster.bound)
    for pod in cluster.pending:
        rows = some_rows(data, cluster.nodes)
        assert_pre_filter_agrees(run, pod, rows)
        assert_scores_agree(run, pod, rows)


@given(st.lists(pending(), min_size=1, max_size=2), st.data())
def test_what_is_kept_from_cycle_to_cycle_follows_every_change(pods: list[Pod], data: st.DataObject) -> None:
    infos = data.draw(clusters())
    run = cycle(infos)
    for _ in range(data.draw(st.integers(1, 4))):
        for pod in pods:
            rows = some_rows(data, infos)
            assert_pre_filter_agrees(run, pod, rows)
            assert_scores_agree(run, pod, rows)
        if data.draw(st.integers(0, 2)) == 0:
            known = {info.name: info for info in infos}
            names = data.draw(st.lists(st.sampled_from(NODE_NAMES), min_size=1, unique=True))
            infos = [known.get(name) or data.draw(node_infos(name)) for name in names]
            run.snapshot.replace(infos)
            continue
        row = data.draw(st.integers(0, len(infos) - 1))
        info = infos[row] = infos[row].clone()
        if data.draw(st.booleans()):
            info.set_node(data.draw(nodes(info.name)))
        for leaving in [each for each in info.pods if data.draw(st.booleans())]:
            info.remove_pod(leaving.pod)
        info.add_pod(PodInfo.of(data.draw(others(on=info.name))))
        run.snapshot.update([info])
