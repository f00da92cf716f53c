"""The topology index, however the snapshot has changed, counts what a look at every pod would count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.pod import Pod
from kschedfw.api.selectors import EVERYTHING, NOTHING, Operator, Requirement, Selector
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.nodes.pod_info import AffinityTerm, PodInfo
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nodes.topology import PodCounter, TermKind, TermTally
from kschedfw.framework.nodes.topology import matching as matching_module
from kschedfw.framework.nodes.topology import pods as pods_module
from kschedfw.framework.nodes.topology import terms as terms_module
from kschedfw.framework.nodes.topology.domains import DomainSums
from kschedfw.framework.nodes.topology.matching import AskedLabels, LabelIndex, SelectorIndex
from kschedfw.testing.properties import examples
from tests.plugins.cycles import make_node, make_pod
from tests.topologies import KEYS, LABELS, SPACES, Step, histories


@attrs.frozen(cache_hash=True)
class Query:
    """Pods of a namespace that aren't on their way out."""

    namespace: str
    selector: Selector

    @property
    def label_keys(self) -> frozenset[str]:
        return self.selector.keys

    def matches(self, pod: Pod) -> bool:
        return (
            pod.namespace == self.namespace
            and not pod.is_terminating
            and self.selector.matches(pod.metadata.labels)
        )


WEB = Selector((Requirement("app", Operator.IN, ("web",)),))
SELECTORS = (
    WEB,
    Selector((Requirement("app", Operator.IN, ("web", "db")), Requirement("tier", Operator.EXISTS))),
    Selector((Requirement("tier", Operator.DOES_NOT_EXIST),)),
    EVERYTHING,
    NOTHING,
)
QUERIES = [Query(space, selector) for space in SPACES for selector in SELECTORS]

BLUE: FrozenDict[str, str] = FrozenDict({"team": "blue"})
ASKING = [
    (make_pod("asking", labels, namespace=space), team)
    for labels in LABELS
    for space in SPACES
    for team in (BLUE, FrozenDict[str, str]())
]


def by_name(snapshot: Snapshot, sums: DomainSums) -> dict[str, int]:
    column = snapshot.table.label(sums.domains.key)
    assert sums.sums.shape == (column.size,)
    assert sums.occupied.tolist() == [*(sums.sums > 0).tolist(), False]
    return {str(column.values[code]): count for code, count in enumerate(sums.sums.tolist()) if count}


def assert_counts(snapshot: Snapshot, query: Query) -> None:
    """The counter says what a look at every pod says."""
    counter = snapshot.topology.counter(query)
    per_node = [sum(query.matches(each.pod) for each in info.pods) for info in snapshot.node_infos]
    assert counter.per_node.tolist() == per_node
    for key in KEYS:
        expected = Counter[str]()
        for info, count in zip(snapshot.node_infos, per_node, strict=True):
            if key in info.node.labels:
                expected[info.node.labels[key]] += count
        assert by_name(snapshot, counter.in_domains(key)) == +expected
        assert counter.in_domains(key).count == expected.total()
        assert counter.by_domain(key) is counter.in_domains(key).sums


def terms_of(info: PodInfo) -> Iterator[tuple[TermKind, AffinityTerm, int]]:
    for term in info.required_affinity_terms:
        yield TermKind.REQUIRED_AFFINITY, term, 1
    for term in info.required_anti_affinity_terms:
        yield TermKind.REQUIRED_ANTI_AFFINITY, term, 1
    for weighted in info.preferred_affinity_terms:
        yield TermKind.PREFERRED, weighted.term, weighted.weight
    for weighted in info.preferred_anti_affinity_terms:
        yield TermKind.PREFERRED, weighted.term, -weighted.weight


def assert_tally(snapshot: Snapshot, tally: TermTally, pod: Pod, namespace_labels: Mapping[str, str]) -> None:
    """The tally says what a look at every term says."""
    terms = [term for info in snapshot.node_infos for its in info.pods for _, term, _ in terms_of(its)]
    assert tally.is_empty != any(term.matches(pod, namespace_labels) for term in terms)
    for kind in TermKind:
        weights: dict[str, Counter[str]] = {key: Counter() for key in KEYS}
        found = Counter[str]()
        for info in snapshot.node_infos:
            for its_kind, term, weight in (each for its in info.pods for each in terms_of(its)):
                domain = info.node.labels.get(term.topology_key)
                if its_kind is kind and domain is not None and term.matches(pod, namespace_labels):
                    weights[term.topology_key][domain] += weight
                    found[term.topology_key] += 1
        sums = tally.of(kind)
        for key in KEYS:
            expected = {domain: weight for domain, weight in weights[key].items() if weight}
            assert (by_name(snapshot, sums[key]) if key in sums else {}) == expected
            assert (sums[key].count if key in sums else 0) == found[key]


def assert_right(snapshot: Snapshot) -> None:
    index = snapshot.topology
    for query in QUERIES:
        assert_counts(snapshot, query)
    for pod, namespace_labels in ASKING:
        assert_tally(snapshot, index.terms_about(pod, namespace_labels), pod, namespace_labels)
    infos = [each for info in snapshot.node_infos for each in info.pods]
    assert index.has_terms == any(info.has_affinity for info in infos)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(histories(), st.data())
def test_an_index_that_follows_is_as_good_as_a_look_at_every_pod(
    steps: list[Step], data: st.DataObject
) -> None:
    snapshot = Snapshot()
    for step in steps:
        step.apply(snapshot)
        if data.draw(st.booleans()):  # so that answers are of different ages
            assert_right(snapshot)
    assert_right(snapshot)


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(histories())
def test_it_is_as_good_with_room_for_few_answers_and_many_on_a_node(steps: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pods_module, "_MOST_COUNTERS", 3)
        patch.setattr(pods_module, "_MOST_ADDED_SINGLY", 1)
        patch.setattr(matching_module, "_MOST_KEYS", 1)
        patch.setattr(terms_module, "_MOST_TALLIES", 2)
        patch.setattr(terms_module, "_MOST_ADDED_SINGLY", 1)
        patch.setattr(terms_module, "_MOST_CHANGES", 2)
        snapshot = Snapshot()
        for step in steps:
            step.apply(snapshot)
            assert_right(snapshot)


def kept_counter(snapshot: Snapshot, query: Query) -> PodCounter:
    """The counter of a query that has come twice, a pod having been placed in between."""
    snapshot.topology.counter(query)
    info = snapshot.node_infos[0].clone()
    info.add_pod(PodInfo.of(make_pod("other", {"app": "other"}, on=info.name)))
    snapshot.update([info])
    counter = snapshot.topology.counter(query)
    assert isinstance(counter, PodCounter)
    return counter


class TestCounters:
    def test_are_kept_from_the_second_time_on(self) -> None:
        snapshot = Snapshot.of([make_node("a")], [make_pod("web", {"app": "web"}, on="a")])
        once = snapshot.topology.counter(Query("default", WEB))
        assert snapshot.topology.counter(Query("default", WEB)) is once  # nothing has changed
        kept = kept_counter(snapshot, Query("default", WEB))
        assert kept is not once
        assert kept_counter(snapshot, Query("default", WEB)) is kept
        assert kept.per_node.tolist() == [1]

    def test_that_nobody_asked_for_long_go(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pods_module, "_MOST_COUNTERS", 4)
        snapshot = Snapshot.of([make_node("a")])
        old, older, *others = QUERIES[:4]
        kept = kept_counter(snapshot, old)
        gone, *_ = [kept_counter(snapshot, query) for query in (older, *others)]
        snapshot.topology.counter(old)
        kept_counter(snapshot, QUERIES[4])
        assert snapshot.topology.counter(old) is kept
        assert snapshot.topology.counter(older) is not gone

    def test_pods_are_told_apart_by_labels_that_are_asked_for(self) -> None:
        pods = [make_pod(f"web-{i}", {"app": "web", "index": str(i)}, on="a") for i in range(3)]
        snapshot = Snapshot.of([make_node("a")], pods)
        assert kept_counter(snapshot, Query("default", WEB)).per_node.sum() == 3
        second = Selector((Requirement("index", Operator.IN, ("1",)),))
        assert snapshot.topology.counter(Query("default", second)).per_node.sum() == 1
        assert snapshot.topology.counter(Query("default", WEB)).per_node.sum() == 3

    def test_of_a_query_that_comes_first_follow_a_node_into_another_domain(self) -> None:
        snapshot = Snapshot.of([make_node("a", zone="old")], [make_pod("web", {"app": "web"}, on="a")])
        query = Query("default", WEB)
        assert by_name(snapshot, snapshot.topology.counter(query).in_domains("zone")) == {"old": 1}
        moved = snapshot.get("a").clone()
        moved.set_node(make_node("a", zone="new"))
        snapshot.update([moved])
        assert by_name(snapshot, snapshot.topology.counter(query).in_domains("zone")) == {"new": 1}

    def test_follow_a_node_into_another_domain(self) -> None:
        snapshot = Snapshot.of([make_node("a", zone="old")], [make_pod("web", {"app": "web"}, on="a")])
        counter = kept_counter(snapshot, Query("default", WEB))
        assert by_name(snapshot, counter.in_domains("zone")) == {"old": 1}
        moved = snapshot.get("a").clone()
        moved.set_node(make_node("a", zone="new"))
        snapshot.update([moved])
        assert by_name(snapshot, counter.in_domains("zone")) == {"new": 1}
        snapshot.update([NodeInfo.of(make_node("a"))])
        again = snapshot.topology.counter(Query("default", WEB))
        assert by_name(snapshot, again.in_domains("zone")) == {}


def test_labels_that_are_always_new_are_followed_through_renumbering() -> None:
    snapshot = Snapshot.of([make_node("a")], [make_pod("web", {"app": "web"}, on="a")])
    counter = kept_counter(snapshot, Query("default", WEB))
    for version in range(200):
        moved = snapshot.get("a").clone()
        moved.set_node(make_node("a", zone=f"v{version}"))
        snapshot.update([moved])
        assert by_name(snapshot, counter.in_domains("zone")) == {f"v{version}": 1}
    assert snapshot.table.label("zone").epoch > 0


AVERSE_TO_WEB = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


class TestTallies:
    WEB = make_pod("asking", {"app": "web"})

    def averse(self, name: str) -> NodeInfo:
        return NodeInfo.of(make_node(name, zone=name), [make_pod(name, on=name, affinity=AVERSE_TO_WEB)])

    def assert_found(self, snapshot: Snapshot, *zones: str) -> None:
        tally = snapshot.topology.terms_about(self.WEB, BLUE)
        sums = tally.of(TermKind.REQUIRED_ANTI_AFFINITY)["zone"]
        assert by_name(snapshot, sums) == dict.fromkeys(zones, 1)
        assert sums.count == len(zones)

    def test_follow_when_the_last_of_equal_terms_leave_at_once(self) -> None:
        snapshot = Snapshot([self.averse("a"), self.averse("b")])
        self.assert_found(snapshot, "a", "b")
        snapshot.update([NodeInfo.of(info.node) for info in snapshot.node_infos])
        self.assert_found(snapshot)
        assert not snapshot.topology.has_terms

    def test_find_terms_that_have_been_gone_for_a_while(self) -> None:
        snapshot = Snapshot([self.averse("a"), self.averse("b")])
        self.assert_found(snapshot, "a", "b")
        snapshot.update([NodeInfo.of(info.node) for info in snapshot.node_infos])
        snapshot.update([self.averse("b")])
        self.assert_found(snapshot, "b")

    def test_are_summed_up_anew_after_many_changes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(terms_module, "_MOST_CHANGES", 4)
        snapshot = Snapshot([self.averse("a"), self.averse("b")])
        self.assert_found(snapshot, "a", "b")
        for _ in range(20):
            snapshot.update([self.averse("b")])
        snapshot.update([NodeInfo.of(snapshot.get("a").node)])
        self.assert_found(snapshot, "b")


class TestAskedLabels:
    LABELS: FrozenDict[str, str] = FrozenDict({"app": "web", "hash": "7f9"})

    def test_are_none_at_first_and_all_where_too_many_are_asked_for(self) -> None:
        asked = AskedLabels()
        assert asked.of(self.LABELS) == {}
        assert asked.ask_for({"app"})
        assert not asked.ask_for({"app"})
        assert asked.of(self.LABELS) == {"app": "web"}
        assert asked.ask_for(set(map(str, range(64))))
        assert asked.of(self.LABELS) == self.LABELS
        assert not asked.ask_for({"hash"})


class TestSelectorIndex:
    @given(st.lists(st.sampled_from(SELECTORS)), st.sampled_from(LABELS))
    def test_candidates_are_all_that_match(self, selectors: list[Selector], labels: dict[str, str]) -> None:
        index = SelectorIndex[int]()
        for item, selector in enumerate(selectors):
            index.add(selector, item)
        found = list(index.candidates(labels))
        assert len(set(found)) == len(found)
        assert {item for item, selector in enumerate(selectors) if selector.matches(labels)} <= set(found)
        for item, selector in enumerate(selectors):
            index.discard(selector, item)
        assert list(index.candidates(labels)) == []

    def test_others_are_not_asked(self) -> None:
        index = SelectorIndex[str]()
        index.add(WEB, "web")
        assert list(index.candidates({"app": "db"})) == []
        assert list(index.candidates({"app": "web"})) == ["web"]


class TestLabelIndex:
    @given(st.lists(st.sampled_from(LABELS)), st.sampled_from(SELECTORS))
    def test_candidates_are_all_that_match(self, labels: list[dict[str, str]], selector: Selector) -> None:
        index = LabelIndex[int]()
        for item, its in enumerate(labels):
            index.add(its, item)
        found = list(index.candidates(selector))
        assert len(set(found)) == len(found)
        assert {item for item, its in enumerate(labels) if selector.matches(its)} <= set(found)
        for item, its in enumerate(labels):
            index.discard(its, item)
        assert list(index.candidates(selector)) == []

    def test_others_are_not_asked(self) -> None:
        index = LabelIndex[str]()
        index.add({"app": "db"}, "db")
        index.add({"app": "web", "tier": "front"}, "web")
        assert list(index.candidates(WEB)) == ["web"]
