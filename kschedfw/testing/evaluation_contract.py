"""Properties that hold for a plugin whose answers are given in batches or remembered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.evaluation import Evaluation
from kschedfw.framework.framework import Framework
from kschedfw.framework.node_info import NodeInfo
from kschedfw.framework.node_selection import NodeSelection
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.pod_info import PodInfo
from kschedfw.framework.profile import Profile
from kschedfw.framework.registry import Registry
from kschedfw.framework.snapshot import Snapshot, with_image_states
from kschedfw.framework.status import Status

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class EvaluationContract:
    """Tests, to be inherited, that a plugin answers the same however it is asked.

        class TestRack(EvaluationContract):
            plugin = Rack
            args = RackArgs(size=3)

    `filter_batch` and `score_batch` must say what `filter` and `score` say, and what `reads` and `sign` promise must
    hold: answers are remembered for pods with equal signatures while a generated cluster changes. Where pods or nodes
    need something particular for the plugin to have an opinion, override `pods` and `nodes`.
    """

    plugin: ClassVar[type[AnyPlugin] | str]
    """The plugin's class, or the name under which it is installed."""
    args: ClassVar[object] = None
    objects: ClassVar[Sequence[Named]] = ()
    """What the plugin finds in the cluster beside nodes and pods."""
    max_examples: ClassVar[int] = 15

    def pods(self) -> SearchStrategy[Pod]:
        """Pods, pending ones and those on nodes; names, uids and places don't matter."""
        from kschedfw.testing import strategies

        return strategies.pods("pod")

    def nodes(self) -> SearchStrategy[Node]:
        """Nodes; they get names of their own, and labels that have the name follow."""
        from kschedfw.testing import strategies

        return strategies.nodes("node")

    def test_every_evaluation_gives_the_same_answers_while_the_cluster_changes(self) -> None:
        # First, as it says what is missing where hypothesis is.
        import kschedfw.testing.strategies  # noqa: F401  # isort: skip
        from hypothesis import HealthCheck, given, settings
        from hypothesis import strategies as st

        registry = Registry()
        name = self.plugin if isinstance(self.plugin, str) else registry.register(self.plugin).name

        @settings(
            max_examples=self.max_examples,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
        @given(
            st.integers(0, 2**32 - 1),
            st.lists(self.nodes(), min_size=3, max_size=3),
            st.lists(self.pods(), min_size=3, max_size=3),
        )
        def through_a_history(seed: int, nodes: Sequence[Node], pods: Sequence[Pod]) -> None:
            world = _World(Random(seed), nodes, pods)
            frameworks = {each: self._framework(registry, name, world.snapshot, each) for each in Evaluation}
            for _ in range(4):
                for pod in world.pending():
                    rows = world.rows()
                    expected = _answers(frameworks[Evaluation.SCALAR], pod, rows)
                    for evaluation, framework in frameworks.items():
                        answers = _answers(framework, pod, rows)
                        assert answers == expected, f"{evaluation.value} differs from scalar"
                world.change()

        through_a_history()

    def _framework(
        self, registry: Registry, name: str, snapshot: Snapshot, evaluation: Evaluation
    ) -> Framework:
        return Framework(
            registry,
            Profile([name], args={} if self.args is None else {name: self.args}),
            cluster=InMemoryCluster(self.objects),
            snapshot=snapshot,
            parallelizer=Parallelizer(1),
            evaluation=evaluation,
        )


def _answers(framework: Framework, pod: Pod, rows: Sequence[int]) -> Mapping[str, object]:
    """All that filtering the rows and scoring what passes comes to."""
    table, state = framework.handle.snapshot.table, CycleState()
    result, status, _ = framework.run_pre_filter_plugins(state, pod)
    answers: dict[str, object] = {"pre_filter": (result, status, sorted(state.skip_filter_plugins))}
    if not status.is_success:
        return answers
    in_order = list(rows) == list(range(len(table)))
    nodes = NodeSelection.whole(table) if in_order else NodeSelection(table, np.array(rows, dtype=np.int64))
    found = framework.filter_nodes(state, pod, nodes)
    answers["feasible"] = found.feasible.names
    answers["refused"] = list(found.refused)
    answers["error"] = _text(found.error)
    status = framework.run_pre_score_plugins(state, pod, found.feasible)
    answers["pre_score"] = (_text(status), sorted(state.skip_score_plugins))
    if not status.is_success:
        return answers
    totals, status = framework.total_scores(state, pod, found.feasible)
    answers["totals"] = _text(status)
    if totals is not None:
        answers["totals"] = totals.values.tolist()
        answers["best"] = [totals.index_of_best(nth) for nth in range(totals.number_of_best)]
    scores, status = framework.run_score_plugins(state, pod, found.feasible)
    answers["scores"] = _text(status)
    if scores is not None:
        answers |= {
            name: (each.raw.tolist(), each.normalized.tolist()) for name, each in scores.by_plugin.items()
        }
    return answers


def _text(status: Status | None) -> object:
    return None if status is None else (str(status.code), status.reasons)


class _World:
    """A cluster of up to eight nodes, made of a few nodes and pods, that changes at random."""

    def __init__(self, random: Random, nodes: Sequence[Node], pods: Sequence[Pod]) -> None:
        self._random, self._nodes, self._pods = random, nodes, pods
        self._made = 0
        self._infos: dict[str, NodeInfo] = {}
        for number in range(random.randint(1, 8)):
            self._put(f"node-{number}")
        self.snapshot = Snapshot()
        self._bring_along()

    def pending(self) -> Iterator[Pod]:
        """Pods alike and not alike, so that signatures meet: each is one of a few, or a mixture of two."""
        for _ in range(3):
            pod, other = (self._random.choice(self._pods) for _ in range(2))
            if self._random.randint(0, 1):
                field = self._random.choice(attrs.fields(type(pod.spec))).name
                pod = attrs.evolve(pod, spec=attrs.evolve(pod.spec, **{field: getattr(other.spec, field)}))
            if not self._random.randint(0, 3):
                pod = attrs.evolve(pod, metadata=other.metadata)
            yield self._new(pod, "")

    def rows(self) -> Sequence[int]:
        """All rows in order, or any of them in any."""
        rows = list(range(len(self.snapshot)))
        if self._random.randint(0, 2):
            return rows
        return self._random.sample(rows, self._random.randint(1, len(rows)))

    def change(self) -> None:
        for _ in range(self._random.randint(1, 3)):
            name = self._random.choice(sorted(self._infos))
            match self._random.randint(0, 7):
                case 0:
                    self._put(f"node-{self._random.randint(0, 9)}")
                case 1 if len(self._infos) > 1:
                    del self._infos[name]
                case 2:
                    changed = self._infos[name] = self._infos[name].clone()
                    changed.set_node(self._node(name))
                case 3 | 4 if self._infos[name].pods:
                    changed = self._infos[name] = self._infos[name].clone()
                    changed.remove_pod(self._random.choice(changed.pods).pod)
                case _:
                    changed = self._infos[name] = self._infos[name].clone()
                    changed.add_pod(PodInfo.of(self._new(self._random.choice(self._pods), name)))
        self._bring_along()

    def _bring_along(self) -> None:
        """As a cache does it: nodes whose images have spread are others now, too."""
        self._infos |= {info.name: info for info in with_image_states(list(self._infos.values()))}
        if list(self._infos) == [info.name for info in self.snapshot.node_infos]:
            self.snapshot.update(
                [info for info in self._infos.values() if info is not self.snapshot.get(info.name)]
            )
        else:
            self.snapshot.replace(self._infos.values())

    def _put(self, name: str) -> None:
        """A node, or another in its place."""
        self._infos[name] = NodeInfo.of(self._node(name))

    def _node(self, name: str) -> Node:
        node = self._random.choice(self._nodes)
        # the hostname, whatever its key
        labels = {key: name if value == node.name else value for key, value in node.labels.items()}
        return attrs.evolve(node, metadata=attrs.evolve(node.metadata, name=name, labels=FrozenDict(labels)))

    def _new(self, pod: Pod, node_name: str) -> Pod:
        self._made += 1
        metadata = attrs.evolve(pod.metadata, name=f"pod-{self._made}", uid=f"uid-{self._made}")
        return pod.with_metadata(metadata).bound_to(node_name)
