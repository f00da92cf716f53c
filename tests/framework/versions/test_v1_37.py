"""What v1.37 decides otherwise than v1.36, without a gate: each rule with its source and both answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pytest

from kschedfw import FeatureGates, InMemoryCluster, Pod, Scheduler, Snapshot, make_node, make_pod
from kschedfw.api import Resource
from kschedfw.api.manifests import pod_from_manifest
from kschedfw.api.requests import pod_requests
from kschedfw.framework.events import EventResource
from kschedfw.plugins.inter_pod_affinity import InterPodAffinity
from kschedfw.scheduler.cache import Cache
from kschedfw.testing import FrameworkHarness

MIB = 1024 * 1024
T = TypeVar("T")
Answers = tuple[T, T]
"""The answers of v1.36 and of v1.37."""


def answers(ask: Callable[[FeatureGates], T]) -> Answers[T]:
    before, after = (ask(FeatureGates(version=version)) for version in ("1.36", "1.37"))
    return before, after


class TestImageVolumes:
    """kubernetes/kubernetes#138951: image volumes raise the size that earns all points."""

    def test_an_image_volume_raises_the_size_that_earns_all_points(self) -> None:
        spec = {
            "containers": [{"name": "main", "image": "app:1"}],
            "volumes": [{"name": "model", "image": {"reference": "model:1"}}],
        }
        pod = pod_from_manifest({"metadata": {"name": "pod"}, "spec": spec})
        node = make_node("a").image("model:1", size=1000 * MIB).build()

        def score(gates: FeatureGates) -> int:
            return FrameworkHarness("ImageLocality", nodes=[node], feature_gates=gates).score(pod)["a"]

        # 100 · (1000 − 23) / (2000 − 23)
        assert answers(score) == (100, 49)

    def test_pods_without_image_volumes_score_as_before(self) -> None:
        node = make_node("a").image("app:1", size=500 * MIB).build()
        pod = make_pod("pod").image("app:1").build()

        def score(gates: FeatureGates) -> int:
            return FrameworkHarness("ImageLocality", nodes=[node], feature_gates=gates).score(pod)["a"]

        assert answers(score) == (48, 48)

    def test_only_pods_with_as_many_image_volumes_are_alike(self) -> None:
        node = make_node("a").image("app:1", size=MIB).build()

        def pod(*volumes: str) -> Pod:
            made = make_pod("pod").image("app:1")
            for name in volumes:
                made.volume(name, {"image": {"reference": "absent:1"}})
            return made.build()

        def are_alike(gates: FeatureGates) -> bool:
            plugin = FrameworkHarness("ImageLocality", nodes=[node], feature_gates=gates).framework.plugins[
                "ImageLocality"
            ]
            return plugin.sign(pod("one")) == plugin.sign(pod("one", "two"))

        assert answers(are_alike) == (True, False)


def affinity_hint(gates: FeatureGates, pod: Pod, old: Pod, new: Pod | None) -> str:
    """Whether InterPodAffinity wakes the pod after another pod's change."""
    plugin = FrameworkHarness("InterPodAffinity", feature_gates=gates).framework.plugins["InterPodAffinity"]
    assert isinstance(plugin, InterPodAffinity)
    (ask,) = [event.hint for event in plugin.events_to_register() if event.resource is EventResource.POD]
    assert ask is not None
    return ask(pod, old, new).value


class TestAntiAffinityHints:
    """kubernetes/kubernetes#139161: of several anti-affinity terms, one that matched suffices for a hint."""

    TERMS = tuple(
        {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": app}}} for app in ("loud", "hot")
    )

    @classmethod
    def repelled_by_both(cls, name: str, **more: Any) -> Pod:
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(cls.TERMS)}}
        spec = {"containers": [{"name": "main", "image": "app"}], "affinity": affinity, **more}
        return pod_from_manifest({"metadata": {"name": name, "labels": {"app": "shy"}}, "spec": spec})

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (make_pod("loud").labels(app="loud").node("a").build(), None),
            (
                make_pod("loud").labels(app="loud").node("a").build(),
                make_pod("loud").labels(app="quiet").node("a").build(),
            ),
        ],
        ids=["goes", "changes its labels"],
    )
    def test_a_pod_that_matched_one_of_two_terms_wakes_since_v1_37(self, old: Pod, new: Pod | None) -> None:
        pod = self.repelled_by_both("pod")

        def hint(gates: FeatureGates) -> str:
            return affinity_hint(gates, pod, old, new)

        assert answers(hint) == ("skip", "queue")

    def test_a_pod_with_two_terms_of_which_one_selects_the_refused_pod_wakes_it_when_it_goes(self) -> None:
        gone = self.repelled_by_both("gone", nodeName="a")
        pod = make_pod("pod").labels(app="hot").build()

        def hint(gates: FeatureGates) -> str:
            return affinity_hint(gates, pod, gone, None)

        assert answers(hint) == ("skip", "queue")


def resized(
    containers: Mapping[str, tuple[str, str, str]],
    *,
    infeasible: bool = False,
    level: dict[str, Any] | None = None,
) -> Pod:
    """A pod with the desired, allocated and actual CPU of each container; `level` are fields of the whole pod."""
    level = level or {}
    statuses = [
        {"name": name, "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual}}}
        for name, (_, allocated, actual) in containers.items()
    ]
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}] if infeasible else []
    spec = {
        "nodeName": "n",
        "containers": [
            {"name": name, "image": "app", "resources": {"requests": {"cpu": desired}}}
            for name, (desired, _, _) in containers.items()
        ],
        **level.get("spec", {}),
    }
    status = {"containerStatuses": statuses, "conditions": pending, **level.get("status", {})}
    return pod_from_manifest({"metadata": {"name": "resized"}, "spec": spec, "status": status})


def both_rules(pod: Pod) -> Answers[int]:
    """The CPU that the pod takes on its node, in millicores, by v1.36's and by v1.37's rule."""
    old, new = (pod_requests(pod, largest_sum=rule).amounts for rule in (False, True))
    return old.milli_cpu, new.milli_cpu


class TestResizedPods:
    """component-helpers resource/helpers.go @1e152663: the largest sum counts, no sum of largest amounts."""

    def test_containers_that_are_resized_in_opposite_directions_do_not_count_with_their_peaks(self) -> None:
        # One grows from 1 to 3, the other shrinks from 3 to 1: never more than 4 of both.
        assert both_rules(resized({"a": ("3", "1", "1"), "b": ("1", "3", "3")})) == (6000, 4000)

    def test_a_single_container_counts_as_before(self) -> None:
        assert both_rules(resized({"a": ("1", "3", "2")})) == (3000, 3000)

    def test_the_desired_sum_does_not_count_if_the_resize_is_infeasible(self) -> None:
        pod = resized({"a": ("9", "1", "2"), "b": ("9", "2", "1")}, infeasible=True)
        assert both_rules(pod) == (4000, 3000)

    def test_amounts_of_the_whole_pod_stand_for_sums_over_containers(self) -> None:
        told = {"allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "3"}}}
        pod = resized({"a": ("1", "5", "5")}, level={"status": told})
        assert both_rules(pod) == (5000, 3000)

    def test_what_is_in_effect_for_the_whole_pod_counts_though_its_spec_does_not_name_it(self) -> None:
        level = {
            "spec": {"resources": {"requests": {"memory": "1Mi"}}},
            "status": {
                "allocatedResources": {"memory": "1Mi"},
                "resources": {"requests": {"memory": "1Mi", "cpu": "7"}},
            },
        }
        assert both_rules(resized({"a": ("1", "1", "1")}, level=level)) == (1000, 7000)

    def test_a_container_without_a_status_counts_with_its_spec(self) -> None:
        pod = pod_from_manifest(
            {
                "metadata": {"name": "pod"},
                "spec": {
                    "containers": [
                        {"name": name, "image": "app", "resources": {"requests": {"cpu": "1"}}}
                        for name in "ab"
                    ]
                },
                "status": {"containerStatuses": [{"name": "a", "allocatedResources": {"cpu": "2"}}]},
            }
        )
        assert both_rules(pod) == (2000, 3000)

    def test_the_cache_adds_up_nodes_by_the_rule(self) -> None:
        pod = resized({"a": ("3", "1", "1"), "b": ("1", "3", "3")})

        def taken(gates: FeatureGates) -> Resource:
            scheduler = Scheduler(InMemoryCluster([make_node("n").build(), pod]), feature_gates=gates)
            snapshot = Snapshot()
            scheduler.cache.update_snapshot(snapshot)
            return snapshot.get("n").requested

        before, after = answers(taken)
        assert (before.milli_cpu, after.milli_cpu) == (6000, 4000)

    def test_a_pod_that_comes_and_goes_leaves_nothing_behind(self) -> None:
        pod, cache, snapshot = (
            resized({"a": ("3", "1", "1"), "b": ("1", "3", "3")}),
            Cache(largest_sum=True),
            Snapshot(),
        )
        cache.add_node(make_node("n").build())
        cache.add_pod(pod)
        cache.remove_pod(pod)
        cache.update_snapshot(snapshot)
        assert snapshot.get("n").requested == Resource()
