"""Volumes are reserved for a pod in its scheduling cycle, and bound before the pod is."""

from __future__ import annotations

import threading
from collections.abc import Callable

import attrs
import pytest

from kschedfw import make_node, make_pod
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedfw.api.volume_matching import SELECTED_NODE, is_fully_bound
from kschedfw.cluster import VolumeController
from kschedfw.framework.metrics import NoMetrics, VolumeStage
from kschedfw.framework.status import Code
from kschedfw.framework.waiting_pods import PodInPreBind
from kschedfw.plugins.volume_binding import VolumeBinding
from kschedfw.testing import FrameworkHarness
from tests.plugins.storage import ZONE, claim, storage_class, volume

MAKE = storage_class("make", provisioner="csi.example.com")


class WorldClock:
    """Time passes only while somebody waits, and things happen in the meantime."""

    def __init__(self) -> None:
        self.time = 0.0
        self.meanwhile: Callable[[], object] = lambda: None

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:
        self.time = max(self.time, deadline)
        self.meanwhile()


class Scene:
    """The plugin with two nodes and the pods `p1` and `p2`, each of which uses the claim named after it."""

    def __init__(self, *objects: Named, args: dict[str, object] | None = None) -> None:
        self.clock = WorldClock()
        self.harness = FrameworkHarness(
            "VolumeBinding",
            nodes=[make_node("a").zone("1").build(), make_node("b").zone("2").build()],
            objects=[storage_class(), MAKE, *objects],
            args={"VolumeBinding": args or {}},
            clock=self.clock,
        )
        self.cluster = self.harness.cluster
        self.controller = VolumeController(self.cluster, on_demand=True)
        self.pods = {name: self.cluster.add(make_pod(name).claim(name).build()) for name in ("p1", "p2")}

    @property
    def plugin(self) -> VolumeBinding:
        plugin = self.harness.framework.plugins["VolumeBinding"]
        assert isinstance(plugin, VolumeBinding)
        return plugin

    def nodes_for(self, pod: str = "p1") -> set[str]:
        statuses = self.harness.filter(self.pods[pod])
        return {name for name, status in statuses.items() if status.is_success}

    def reserve(self, pod: str = "p1", node: str = "a") -> None:
        assert node in self.nodes_for(pod)
        assert self.harness.reserve(self.pods[pod], node).is_success

    def unreserve(self, pod: str = "p1", node: str = "a") -> None:
        self.harness.unreserve(self.pods[pod], node)

    def pre_bind(self, pod: str = "p1", node: str = "a") -> str:
        """Why it failed; empty if it didn't."""
        status = self.harness.pre_bind(self.pods[pod], node)
        assert status.code in (Code.SUCCESS, Code.ERROR)
        return status.message

    def claim(self, name: str = "p1") -> PersistentVolumeClaim:
        found = self.cluster.get(PersistentVolumeClaim, f"default/{name}")
        assert found is not None
        return found

    def volume(self, name: str = "volume") -> PersistentVolume:
        found = self.cluster.get(PersistentVolume, name)
        assert found is not None
        return found


class TestReserving:
    def test_a_reserved_volume_is_nobody_elses(self) -> None:
        scene = Scene(volume().build(), claim("p1").build(), claim("p2").build())
        scene.reserve("p1")
        assert scene.nodes_for("p2") == set()
        assert scene.volume().spec.claim_ref is None  # that is known here only

    def test_it_is_free_again_when_the_pod_gives_up(self) -> None:
        scene = Scene(volume().build(), claim("p1").build(), claim("p2").build())
        scene.reserve("p1")
        scene.unreserve("p1")
        assert scene.nodes_for("p2") == {"a", "b"}
        scene.unreserve("p1")  # idempotent
        assert not scene.plugin.claims.volumes.assumed

    def test_failures_are_counted_by_their_stage(self, monkeypatch: pytest.MonkeyPatch) -> None:
        failed: list[VolumeStage] = []
        monkeypatch.setattr(NoMetrics, "volume_stage_failed", lambda _self, stage: failed.append(stage))
        scene = Scene(volume().build(), claim("p1").build())
        scene.nodes_for()
        scene.cluster.update(volume().labels({"new": "label"}).build())
        assert scene.harness.reserve(scene.pods["p1"], "a").code is Code.ERROR
        assert failed == [VolumeStage.ASSUME]
        scene.reserve()
        assert failed == [VolumeStage.ASSUME]
        scene.clock.meanwhile = lambda: scene.cluster.delete(scene.pods["p1"])
        assert scene.pre_bind()
        assert failed == [VolumeStage.ASSUME, VolumeStage.BIND]

    def test_a_pod_gives_up_only_what_is_its_own(self) -> None:
        """Two pods with one claim: the second counts with what the first has reserved."""
        scene = Scene(volume().node_affinity_in(ZONE, "1").build(), claim("p1").build(), claim("p2").build())
        first = scene.pods["p1"]
        second = scene.cluster.add(make_pod("p3").claim("p1").build())
        scene.reserve("p1")
        assert scene.harness.filter(second)["a"].is_success
        assert scene.harness.reserve(second, "a").is_success
        scene.harness.unreserve(second, "a")
        assert scene.nodes_for("p2") == set()
        assert first.uid != second.uid

    def test_what_was_selected_for_a_new_volume_binds_other_pods_with_the_claim(self) -> None:
        scene = Scene(claim("p1", storage_class="make").build())
        assert scene.nodes_for() == {"a", "b"}
        scene.reserve(node="b")
        assert scene.nodes_for() == {"b"}
        assert SELECTED_NODE not in scene.claim().annotations

    def test_a_volume_that_has_changed_since_the_decision(self) -> None:
        scene = Scene(volume().build(), claim("p1").build())
        scene.nodes_for()
        scene.cluster.update(volume().labels({"new": "label"}).build())
        status = scene.harness.reserve(scene.pods["p1"], "a")
        assert status.code is Code.ERROR
        assert 'PersistentVolume "volume" is out of sync' in status.message
        assert not scene.plugin.claims.volumes.assumed

    def test_newer_states_in_the_cluster_count_more_than_what_is_assumed(self) -> None:
        scene = Scene(volume().build(), claim("p1").build(), claim("p2").build())
        scene.reserve("p1")
        scene.cluster.update(volume().claimed_by("default/p2", uid=scene.claim("p2").uid).build())
        assert scene.nodes_for("p2") == {"a", "b"}
        assert scene.nodes_for("p1") == set()

    def test_pods_with_bound_claims_reserve_nothing(self) -> None:
        scene = Scene(volume().build(), claim("p1").bound_to("volume").build())
        scene.reserve()
        assert scene.pre_bind() == ""
        assert scene.cluster.resource_version == scene.harness.cluster.resource_version


class TestBinding:
    def test_an_available_volume(self) -> None:
        scene = Scene(volume().build(), claim("p1").build())
        scene.clock.meanwhile = scene.controller.sync
        scene.reserve()
        assert scene.pre_bind() == ""
        assert scene.claim().spec.volume_name == "volume"
        assert is_fully_bound(scene.claim())
        assert not scene.plugin.claims.volumes.assumed
        assert scene.clock.time == 1.0  # it was looked at again after a second

    def test_a_new_volume(self) -> None:
        scene = Scene(claim("p1", storage_class="make").build())
        scene.clock.meanwhile = scene.controller.sync
        scene.reserve(node="b")
        assert scene.pre_bind(node="b") == ""
        assert scene.claim().annotations[SELECTED_NODE] == "b"
        assert is_fully_bound(scene.claim())
        assert not scene.plugin.claims.claims.assumed

    def test_does_not_wait_where_the_controller_is_fast(self) -> None:
        scene = Scene(volume().build(), claim("p1").build())
        VolumeController(scene.cluster)
        scene.reserve()
        assert scene.pre_bind() == ""
        assert scene.clock.time == 0.0

    def test_has_a_timeout(self) -> None:
        scene = Scene(volume().build(), claim("p1").build(), args={"bindTimeoutSeconds": 30})
        scene.reserve()
        assert scene.pre_bind().endswith("binding volumes: context deadline exceeded")
        assert scene.clock.time == 30.0

    def test_ends_within_a_second_if_the_pod_is_preempted(self) -> None:
        scene = Scene(volume().build(), claim("p1").build())
        scene.reserve()
        held = PodInPreBind(scene.pods["p1"])
        scene.harness.framework.handle.pods_in_pre_bind.add(held)
        scene.clock.meanwhile = lambda: held.cancel("preempted by DefaultPreemption")
        assert scene.pre_bind().endswith("binding volumes: preempted by DefaultPreemption")
        assert scene.clock.time == 1.0

    def test_is_announced_where_there_is_something_to_bind_and_may_run_beside_others(self) -> None:
        scene = Scene(volume().build(), claim("p1").build(), claim("p2").bound_to("other").build())
        scene.reserve()
        state = scene.harness.state
        assert scene.harness.pre_bind_pre_flight(scene.pods["p1"], "a").is_success
        assert state.parallel_pre_bind_plugins == {"VolumeBinding"}

    @pytest.mark.parametrize("bound", [True, False])
    def test_is_skipped_where_there_is_nothing_to_bind(self, bound: bool) -> None:
        scene = Scene(volume().build(), claim("p1").bound_to("volume").build())
        pod = scene.pods["p1"] if bound else scene.cluster.add(make_pod("without").build())
        scene.harness.filter(pod)
        assert scene.harness.reserve(pod, "a").is_success
        assert scene.harness.pre_bind_pre_flight(pod, "a").is_skip

    def test_the_timeout_is_ten_minutes_unless_it_is_set(self) -> None:
        scene = Scene(volume().build(), claim("p1").build())
        scene.reserve()
        scene.pre_bind()
        assert scene.clock.time == 600.0

    def test_a_volume_that_somebody_else_has_bound_meanwhile(self) -> None:
        scene = Scene(volume().build(), claim("p1").build(), claim("p2").build())
        scene.reserve()
        scene.cluster.update(volume().claimed_by("default/p2", uid=scene.claim("p2").uid).build())
        assert "has been modified" in scene.pre_bind()
        scene.unreserve()
        reference = scene.volume().spec.claim_ref
        assert reference is not None
        assert reference.name == "p2"

    def test_two_pods_with_the_same_claim(self) -> None:
        scene = Scene(volume().build(), claim("p1").build())
        scene.clock.meanwhile = scene.controller.sync
        second = scene.cluster.add(make_pod("p3").claim("p1").build())
        scene.reserve()
        first_state = scene.harness.state
        assert scene.harness.filter(second)["a"].is_success
        assert scene.harness.reserve(second, "a").is_success
        second_state = scene.harness.state
        for state, pod in ((second_state, second), (first_state, scene.pods["p1"])):
            assert scene.harness.framework.run_pre_bind_plugins(state, pod, "a").is_success

    @pytest.mark.parametrize(
        ("meanwhile", "problem"),
        [
            (lambda s: s.cluster.delete(s.pods["p1"]), 'pod does not exist any more: pod "p1" not found'),
            (
                lambda s: s.cluster.delete(s.cluster.get(Node, "a")),
                'failed to get node "a": node "a" not found',
            ),
            (
                lambda s: s.cluster.delete(s.volume()),
                'failed to check binding: could not find v1.PersistentVolume "volume"',
            ),
            (
                lambda s: s.cluster.delete(s.claim()),
                'failed to check binding: could not find v1.PersistentVolumeClaim "default/p1"',
            ),
            (
                lambda s: s.cluster.update(volume().build()),
                'ClaimRef got reset for pv "volume"',
            ),
            (
                lambda s: s.cluster.update(make_node("a").zone("2").build()),
                'pv "volume" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
            ),
        ],
        ids=["pod", "node", "volume", "claim", "reset", "moved"],
    )
    def test_ends_when_it_can_not_succeed_any_more(
        self, meanwhile: Callable[[Scene], object], problem: str
    ) -> None:
        scene = Scene(volume().node_affinity_in(ZONE, "1").build(), claim("p1").build())
        scene.clock.meanwhile = lambda: meanwhile(scene)
        scene.reserve()
        assert scene.pre_bind().endswith(f"binding volumes: {problem}")
        scene.unreserve()
        assert not scene.plugin.claims.volumes.assumed

    def test_ends_when_the_volume_can_not_be_made(self) -> None:
        """The provisioner takes the selected node back to say so; the pod then has the choice again."""
        scene = Scene(claim("p1", storage_class="make").build())
        scene.reserve()

        def fail() -> None:
            present = scene.claim()
            metadata = attrs.evolve(present.metadata, annotations=claim().build().annotations)
            scene.cluster.update(attrs.evolve(present, metadata=metadata))

        scene.clock.meanwhile = fail
        assert scene.pre_bind().endswith('provisioning failed for PVC "p1"')
        scene.unreserve()
        assert scene.nodes_for() == {"a", "b"}


def test_a_pod_whose_claims_were_never_looked_at_has_nothing_to_reserve() -> None:
    scene = Scene()
    pod: Pod = make_pod("other").build()
    scene.harness.pre_filter(pod)
    assert scene.harness.reserve(pod, "a").is_success
    assert scene.harness.pre_bind(pod, "a").is_success
    scene.harness.unreserve(pod, "a")
