"""Whatever comes and goes: a gang is placed wholly or not at all, nobody waits for ever, and who fits is placed."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from kschedfw_coscheduling import POD_GROUP_LABEL, PodGroup
from tests.gang_stage import Stage, group, node, pod

from kschedfw import Node, Pod
from kschedfw.testing.properties import examples

SMALL = st.integers(1, 4)


class GangsOverTime(RuleBasedStateMachine):
    """Nodes, gangs and pods of their own come and go; after each change the scheduler does all it can at that time."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage()
        self.names = map(str, range(1_000_000))

    @rule(cpu=st.integers(1, 8))
    def a_node_comes(self, cpu: int) -> None:
        self.stage.run(node(f"node-{next(self.names)}", cpu))

    @rule(cpu=SMALL)
    def a_pod_comes(self, cpu: int) -> None:
        self.stage.run(pod(f"pod-{next(self.names)}", cpu=cpu))

    @rule(min_member=st.integers(1, 6), missing=st.integers(-2, 2), cpu=SMALL, group_last=st.booleans())
    def a_gang_comes(self, min_member: int, missing: int, cpu: int, group_last: bool) -> None:
        """Perhaps not all of it, perhaps with more pods than it needs; perhaps the PodGroup comes last."""
        name = f"gang-{next(self.names)}"
        pods = [pod(f"{name}-{i}", name, cpu=cpu) for i in range(min_member - missing)]
        if group_last:
            self.stage.run(*pods)
            self.stage.run(group(name, min_member))
        else:
            self.stage.run(group(name, min_member), *pods)

    @precondition(lambda self: self.stage.cluster.list(PodGroup))
    @rule(data=st.data())
    def a_sibling_comes(self, data: st.DataObject) -> None:
        gang = data.draw(st.sampled_from(self.stage.cluster.list(PodGroup))).name
        siblings = members(self.stage, gang)
        cpu = siblings[0].requests.amounts.milli_cpu // 1000 if siblings else 1
        self.stage.run(pod(f"extra-{next(self.names)}", gang, cpu=cpu))

    @precondition(lambda self: self.stage.cluster.list(Pod))
    @rule(data=st.data())
    def a_pod_or_its_whole_gang_goes(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(self.stage.cluster.list(Pod)))
        gang = chosen.labels.get(POD_GROUP_LABEL)
        for each in members(self.stage, gang) if gang else [chosen]:
            self.stage.cluster.delete(self.stage.pod(each.name))
        self.stage.run()

    @rule(seconds=st.sampled_from([0.5, 1, 10, 60]))
    def time_passes(self, seconds: float) -> None:
        self.stage.run(after=seconds)

    @invariant()
    def a_gang_is_placed_as_far_as_it_has_to_or_not_at_all(self) -> None:
        for gang in self.stage.cluster.list(PodGroup):
            bound = self.stage.bound(gang.name)
            assert not bound or len(bound) >= gang.spec.min_member

    @invariant()
    def nobody_holds_a_place_without_using_it(self) -> None:
        assert self.stage.waiting() == []
        (cached,) = {len(self.stage.scheduler.cache.dump().assumed)}
        assert cached == 0

    @invariant()
    def nobody_is_left_out_who_fits(self) -> None:
        for _ in range(3):  # backoff of pods and gangs comes to an end
            self.stage.run(after=10)
        for gang in self.stage.cluster.list(PodGroup):
            pods = members(self.stage, gang.name)
            pending = [each for each in pods if not each.node_name]
            if len(pods) >= gang.spec.min_member and pending:
                room = slots(self.stage, pending[0].requests.amounts.milli_cpu)
                missing = gang.spec.min_member - (len(pods) - len(pending))
                assert room < max(missing, 1), f"{gang.name} fits"


def members(stage: Stage, gang: str) -> list[Pod]:
    return [each for each in stage.cluster.list(Pod) if each.labels.get(POD_GROUP_LABEL) == gang]


def slots(stage: Stage, milli_cpu: int) -> int:
    """For how many pods of this size there is room."""
    used = dict.fromkeys((each.name for each in stage.cluster.list(Node)), 0)
    for each in stage.cluster.list(Pod):
        if each.node_name:
            used[each.node_name] += each.requests.amounts.milli_cpu
    return sum(
        (each.status.allocatable["cpu"].milli_value() - used[each.name]) // milli_cpu
        for each in stage.cluster.list(Node)
    )


TestGangsOverTime = GangsOverTime.TestCase
TestGangsOverTime.settings = settings(max_examples=examples(150), stateful_step_count=12)
