"""TopologyPlacementGenerator makes a placement of each domain of the group's topology key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import CycleState, Pod, QueuedGroup, make_node, make_pod
from kschedfw.api import ObjectMeta, PodGroup
from kschedfw.api.pod_groups import PodGroupSchedulingConstraints, PodGroupSpec, TopologyConstraint
from kschedfw.framework.groups import MEMBER_STATES, GroupPlacement, MemberStates
from kschedfw.framework.nodes.selection import NodeSelection
from kschedfw.plugins.topology_placement_generator import TopologyPlacementGenerator
from kschedfw.testing import FrameworkHarness

PLUGIN: Any = TopologyPlacementGenerator
RACK = "rack"

racks = st.lists(st.sampled_from([None, "", "a", "b", "c"]), min_size=1, max_size=12)


def placements(
    racks: Sequence[str | None], rows: Sequence[int], scheduled: Sequence[Pod] = ()
) -> Mapping[str, list[int]]:
    """Return the rows of each placement of a group of nodes in these racks; None stands for a node without a rack."""
    nodes = [
        make_node(f"node-{row}").labels({} if rack is None else {RACK: rack}).build()
        for row, rack in enumerate(racks)
    ]
    harness = FrameworkHarness(PLUGIN, nodes=nodes)
    spec = PodGroupSpec(scheduling_constraints=PodGroupSchedulingConstraints((TopologyConstraint(RACK),)))
    group = QueuedGroup("default/g", PodGroup(ObjectMeta("g", "default"), spec), (make_pod().build(),))
    states = MemberStates()
    for pod in scheduled:
        states.put(pod)
    state = CycleState()
    state.write(MEMBER_STATES, states)
    whole = NodeSelection(harness.snapshot.table, np.array(rows, dtype=np.int64))
    found, status = harness.framework.run_placement_generate_plugins(state, group, GroupPlacement("", whole))
    assert status.is_success, status
    return {each.name: each.nodes.rows.tolist() for each in found}


@given(racks, st.data())
def test_a_placement_has_the_nodes_of_one_domain_in_visiting_order(
    racks: Sequence[str | None], data: st.DataObject
) -> None:
    rows = data.draw(st.permutations(range(len(racks))))
    found = placements(racks, rows)
    domains = sorted({rack for rack in racks if rack is not None})
    assert list(found) == domains
    assert found == {rack: [row for row in rows if racks[row] == rack] for rack in domains}


def test_where_members_are_scheduled_theirs_is_the_only_domain() -> None:
    there = make_pod("there").node("node-1").build()
    assert placements(["a", "b", "a", "b"], range(4), [there]) == {"b": [1, 3]}
