"""What is worked out once per pod: requests and affinity terms."""

from __future__ import annotations

import pytest

from kschedfw import PodInfo, make_pod
from kschedfw.api import PodBuilder
from kschedfw.api.affinity import PodAffinityTerm
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.selectors import LabelSelector
from kschedfw.framework.nodes.pod_info import AffinityTerm, QueuedPodInfo

WEB = LabelSelector(match_labels=FrozenDict({"app": "web"}))
EVERYTHING = LabelSelector()
OWNER = make_pod("owner").namespace("shop").build()


def term(**fields: object) -> AffinityTerm:
    return AffinityTerm.of(PodAffinityTerm("zone", **{"label_selector": WEB, **fields}), OWNER.namespace)  # type: ignore[arg-type]


def matches(
    affinity_term: AffinityTerm, namespace: str, labels: dict[str, str], **namespace_labels: str
) -> bool:
    pod = make_pod().namespace(namespace).labels(labels).build()
    return affinity_term.matches(pod, namespace_labels)


class TestNamespacesOfATerm:
    def test_a_term_without_namespaces_means_its_own_pods(self) -> None:
        assert term().namespaces == {"shop"}
        assert matches(term(), "shop", {"app": "web"})
        assert not matches(term(), "other", {"app": "web"})

    def test_named_namespaces_replace_it(self) -> None:
        named = term(namespaces=("a", "b"))
        assert matches(named, "a", {"app": "web"})
        assert not matches(named, "shop", {"app": "web"})

    def test_an_empty_namespace_selector_means_all_namespaces(self) -> None:
        everywhere = term(namespace_selector=EVERYTHING)
        assert everywhere.namespaces == frozenset()
        assert matches(everywhere, "anywhere", {"app": "web"})

    def test_a_namespace_selector_looks_at_the_namespaces_labels(self) -> None:
        selected = term(namespace_selector=LabelSelector(match_labels=FrozenDict({"team": "blue"})))
        assert matches(selected, "x", {"app": "web"}, team="blue")
        assert not matches(selected, "x", {"app": "web"}, team="red")
        assert not matches(selected, "shop", {"app": "web"})

    def test_named_and_selected_namespaces_are_added_up(self) -> None:
        both = term(
            namespaces=("a",), namespace_selector=LabelSelector(match_labels=FrozenDict({"team": "blue"}))
        )
        assert matches(both, "a", {"app": "web"})
        assert matches(both, "b", {"app": "web"}, team="blue")
        assert not matches(both, "b", {"app": "web"})


def test_the_pods_labels_must_match() -> None:
    assert not matches(term(), "shop", {"app": "db"})


def test_an_absent_label_selector_matches_no_pod() -> None:
    assert not matches(term(label_selector=None), "shop", {"app": "web"})


@pytest.mark.parametrize(
    ("builder", "counts"),
    [
        (make_pod(), (0, 0, 0, 0)),
        (make_pod().pod_affinity("zone", {"a": "b"}), (1, 0, 0, 0)),
        (make_pod().pod_anti_affinity("zone", {"a": "b"}), (0, 1, 0, 0)),
        (make_pod().pod_affinity("zone", {"a": "b"}, weight=7), (0, 0, 1, 0)),
        (make_pod().pod_anti_affinity("zone", {"a": "b"}, weight=7), (0, 0, 0, 1)),
    ],
)
def test_any_kind_of_term_is_affinity(builder: PodBuilder, counts: tuple[int, ...]) -> None:
    info = PodInfo.of(builder.build())
    assert counts == (
        len(info.required_affinity_terms),
        len(info.required_anti_affinity_terms),
        len(info.preferred_affinity_terms),
        len(info.preferred_anti_affinity_terms),
    )
    assert info.has_affinity is any(counts)
    for weighted in (*info.preferred_affinity_terms, *info.preferred_anti_affinity_terms):
        assert weighted.weight == 7


def test_requests_are_the_pods() -> None:
    pod = make_pod().requests(cpu="250m", memory="1Gi").build()
    assert PodInfo.of(pod).requests == pod.requests
    assert pod.requests.amounts.milli_cpu == 250


def test_a_queued_pod_knows_its_pod() -> None:
    info = PodInfo.of(OWNER)
    queued = QueuedPodInfo(info, timestamp=3.0)
    assert queued.pod is OWNER
    assert queued.attempts == 0
