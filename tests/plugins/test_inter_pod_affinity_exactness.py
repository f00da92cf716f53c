"""InterPodAffinity answers as if it looked at every pod for every node, however it comes by its answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw.api.meta import ObjectMeta
from kschedfw.api.pod import Pod
from kschedfw.api.workloads import Namespace
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import AffinityTerm, PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from kschedfw.testing.properties import examples
from tests.plugins.cycles import Cycle, make, make_node, make_pod, short
from tests.topologies import LABELS, Step, affinities, histories, pods

pytestmark = pytest.mark.slow

BLUE = {"team": "blue"}


@attrs.frozen
class Oracle:
    """The rules, pod by pod and term by term."""

    nodes: Sequence[NodeInfo]
    namespaces: Mapping[str, Mapping[str, str]]
    args: InterPodAffinityArgs = attrs.field(factory=InterPodAffinityArgs)

    def about(self, term: AffinityTerm, pod: Pod) -> bool:
        """Tell whether the term of an existing pod is about the pod."""
        return term.matches(pod, self.namespaces.get(pod.namespace, {}))

    def own_about(self, term: AffinityTerm, pod: Pod) -> bool:
        """Tell whether the term of the incoming pod is about the pod: a negative selector is about all namespaces."""
        return self.about(term, pod) or term.matches(pod, {})

    def is_company(self, terms: Sequence[AffinityTerm], pod: Pod) -> bool:
        return bool(terms) and all(self.own_about(term, pod) for term in terms)

    def existing(self) -> Iterator[tuple[PodInfo, Mapping[str, str]]]:
        return ((existing, info.node.labels) for info in self.nodes for existing in info.pods)

    def skips_filter(self, pod: Pod) -> bool:
        own = PodInfo.of(pod)
        return not (
            own.required_affinity_terms
            or own.required_anti_affinity_terms
            or any(
                term.topology_key in labels and self.about(term, pod)
                for existing, labels in self.existing()
                for term in existing.required_anti_affinity_terms
            )
        )

    def verdict(self, pod: Pod, node_labels: Mapping[str, str]) -> str:
        own = PodInfo.of(pod)
        wanted = own.required_affinity_terms

        def near(term: AffinityTerm, labels: Mapping[str, str]) -> bool:
            domain = node_labels.get(term.topology_key)
            return domain is not None and domain == labels.get(term.topology_key)

        if wanted:
            company = [labels for each, labels in self.existing() if self.is_company(wanted, each.pod)]
            reachable = any(term.topology_key in labels for labels in company for term in wanted)
            first = not reachable and self.is_company(wanted, pod)
            for term in wanted:
                if term.topology_key not in node_labels:
                    return "affinity"
                if not first and not any(near(term, labels) for labels in company):
                    return "affinity"
        for term in own.required_anti_affinity_terms:
            if any(near(term, labels) and self.own_about(term, each.pod) for each, labels in self.existing()):
                return "anti-affinity"
        for each, labels in self.existing():
            if any(
                near(term, labels) and self.about(term, pod) for term in each.required_anti_affinity_terms
            ):
                return "existing anti-affinity"
        return "ok"

    def weights(self, pod: Pod) -> Iterator[tuple[str, str, int]]:
        """Topology key, domain, and weight of every match that counts."""
        own = PodInfo.of(pod)
        preferred = [(each.term, each.weight) for each in own.preferred_affinity_terms]
        preferred += [(each.term, -each.weight) for each in own.preferred_anti_affinity_terms]
        if self.args.ignore_preferred_terms_of_existing_pods and not preferred:
            return
        hard = self.args.hard_pod_affinity_weight
        for existing, labels in self.existing():
            theirs = [(each.term, each.weight) for each in existing.preferred_affinity_terms]
            theirs += [(each.term, -each.weight) for each in existing.preferred_anti_affinity_terms]
            theirs += [(term, hard) for term in existing.required_affinity_terms if hard > 0]
            for about, terms, other in (
                (self.own_about, preferred, existing.pod),
                (self.about, theirs, pod),
            ):
                for term, weight in terms:
                    if term.topology_key in labels and about(term, other):
                        yield term.topology_key, labels[term.topology_key], weight

    def score(self, pod: Pod, node_labels: Mapping[str, str]) -> int:
        return sum(weight for key, domain, weight in self.weights(pod) if node_labels.get(key) == domain)


def namespaces(cluster: InMemoryCluster) -> Mapping[str, Mapping[str, str]]:
    return {space.name: space.labels for space in cluster.list(Namespace)}


def some_rows(data: st.DataObject, snapshot: Snapshot) -> IntArray:
    rows = data.draw(st.permutations(range(len(snapshot))))
    return np.array(rows[: data.draw(st.integers(0, len(rows)))], dtype=np.int64)


def assert_verdicts(
    plugin: InterPodAffinity, state: CycleState, pod: Pod, oracle: Oracle, rows: IntArray
) -> None:
    """Node by node and all at once, the verdicts are those of the rules."""
    table = plugin.handle.snapshot.table
    expected = [oracle.verdict(pod, info.node.labels) for info in table.node_infos]
    assert [short(plugin.filter(state, info)) for info in table.node_infos] == expected
    answer = plugin.filter_batch(state, table, rows)
    assert answer.codes.shape == rows.shape
    assert [short(answer.of(index)) for index in range(len(rows))] == [expected[row] for row in rows]
    for index, row in enumerate(rows.tolist()):
        assert answer.of(index) == plugin.filter(state, table.node_infos[row])


def assert_all_right(run: Cycle, pod: Pod, oracle: Oracle, rows: IntArray) -> None:
    plugin = run.plugin
    assert isinstance(plugin, InterPodAffinity)
    status = run.pre_filter(pod)
    assert (status is not None) == oracle.skips_filter(pod)
    if status is None:
        assert_verdicts(plugin, run.state, pod, oracle, rows)
    else:
        assert status.is_skip
        assert {oracle.verdict(pod, info.node.labels) for info in oracle.nodes} <= {"ok"}

    assert run.skips_scoring(pod) == (not list(oracle.weights(pod)))
    if not run.skips_scoring(pod):
        expected = [oracle.score(pod, info.node.labels) for info in oracle.nodes]
        assert [plugin.score(run.state, info) for info in oracle.nodes] == expected
        batch = plugin.score_batch(run.state, run.snapshot.table, rows)
        assert batch.dtype == np.int64
        assert batch.tolist() == [expected[row] for row in rows]


def cycle(nodes: Iterable[NodeInfo] = (), **args: bool | int) -> tuple[Cycle, InMemoryCluster]:
    run = Cycle.of(
        InterPodAffinity,
        InterPodAffinityArgs(**args),  # type: ignore[arg-type]  # of the right type for each
        (),
        (),
        [make("Namespace", "there", labels=BLUE)],
    )
    run.snapshot.replace(nodes)
    cluster = run.plugin.handle.cluster
    assert isinstance(cluster, InMemoryCluster)
    return run, cluster


@settings(max_examples=examples(100))
@given(
    histories(),
    st.lists(pods(), min_size=1, max_size=3),
    st.data(),
    st.sampled_from([0, 1, 10]),
    st.booleans(),
)
def test_answers_are_those_of_the_rules_however_the_cluster_has_changed(
    steps: list[Step], pending: list[Pod], data: st.DataObject, hard_weight: int, ignore: bool
) -> None:
    run, cluster = cycle(hard_pod_affinity_weight=hard_weight, ignore_preferred_terms_of_existing_pods=ignore)
    args = InterPodAffinityArgs(hard_weight, ignore)
    for step in steps:
        step.apply(run.snapshot)
        if data.draw(st.integers(0, 2)) == 0:  # namespaces change without telling nodes or pods
            old = cluster.get(Namespace, "there")
            assert old is not None
            labels = data.draw(st.sampled_from([{}, BLUE]))
            cluster.update(
                attrs.evolve(
                    old,
                    metadata=attrs.evolve(old.metadata, labels=make("Namespace", "x", labels=labels).labels),
                )
            )
        oracle = Oracle(run.snapshot.node_infos, namespaces(cluster), args)
        for pod in pending:
            assert_all_right(run, pod, oracle, some_rows(data, run.snapshot))


@settings(max_examples=examples(100))
@given(histories(most=2), pods(), st.data())
def test_what_if_pods_came_and_went_is_answered_as_if_they_had(
    steps: list[Step], pod: Pod, data: st.DataObject
) -> None:
    run, cluster = cycle()
    for step in steps:
        step.apply(run.snapshot)
    plugin, before = run.plugin, list(run.snapshot.node_infos)
    assert isinstance(plugin, InterPodAffinity)
    if run.pre_filter(pod) is not None or not before:
        return
    state = run.state.clone()
    infos = [info.clone() for info in before]
    for info in infos:
        for leaving in [each for each in info.pods if data.draw(st.booleans())]:
            info.remove_pod(leaving.pod)
            plugin.pre_filter_remove_pod(state, leaving, info)
        for coming in data.draw(st.lists(pods(on=info.name), max_size=1)):
            coming_info = PodInfo.of(coming)
            info.add_pod(coming_info)
            plugin.pre_filter_add_pod(state, coming_info, info)
    rows = some_rows(data, run.snapshot)
    assert_verdicts(plugin, state, pod, Oracle(infos, namespaces(cluster)), rows)
    # The state that the clone was made of hasn't changed.
    assert_verdicts(plugin, run.state, pod, Oracle(before, namespaces(cluster)), rows)


@settings(max_examples=examples(50))
@given(histories(most=1), pods(), st.data())
def test_putting_back_undoes_taking_away(steps: list[Step], pod: Pod, data: st.DataObject) -> None:
    run, cluster = cycle()
    steps[0].apply(run.snapshot)
    plugin, infos = run.plugin, list(run.snapshot.node_infos)
    assert isinstance(plugin, InterPodAffinity)
    if run.pre_filter(pod) is not None:
        return
    for info in infos:
        for each in info.pods:
            plugin.pre_filter_remove_pod(run.state, each, info)
    for info in infos:
        for each in info.pods:
            plugin.pre_filter_add_pod(run.state, each, info)
    rows = some_rows(data, run.snapshot)
    assert_verdicts(plugin, run.state, pod, Oracle(infos, namespaces(cluster)), rows)


@given(st.sampled_from(LABELS), affinities(), st.sampled_from(["default", "there"]))
def test_pods_made_alike_have_equal_signatures(
    labels: dict[str, str], affinity: dict[str, object], namespace: str
) -> None:
    plugin = cycle()[0].plugin
    one, other = (
        make_pod(name, labels, namespace=namespace, priority=priority, affinity=affinity)
        for priority, name in enumerate(("one", "other"))
    )
    assert plugin.sign(one) == plugin.sign(other)
    assert hash(plugin.sign(one)) == hash(plugin.sign(other))


def test_a_namespace_that_joins_a_group_is_looked_at_from_then_on() -> None:
    about_blue = {
        "topologyKey": "zone",
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": BLUE},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [about_blue]}}
    run, cluster = cycle([NodeInfo.of(make_node("a", zone="z"), [make_pod("x", on="a", namespace="new")])])
    pod = make_pod(affinity=affinity)
    assert run.fits(pod) == ["a"]
    cluster.add(Namespace(ObjectMeta(name="new", labels=make("Namespace", "new", labels=BLUE).labels)))
    assert run.fits(pod) == []
