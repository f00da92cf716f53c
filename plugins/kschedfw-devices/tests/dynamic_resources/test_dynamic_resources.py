"""DynamicResources in a scheduler: what is taken, written, given back, and who is woken."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import attrs
import pytest
from device_world import DRIVER, World, allocation, claim, devices, gpu_class, made, node, pod
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_devices.cel import STEPS_PER_SECOND, Budget, DeviceInput, compile_selector
from kschedfw_devices.dynamic_resources import DynamicResources, inventory
from kschedfw_devices.dynamic_resources.allocator import DeviceSearch
from kschedfw_devices.dynamic_resources.inventory import PoolId
from kschedfw_devices.dynamic_resources.manager import DeviceManager, ResourceClaims, without_allocation
from kschedfw_devices.dynamic_resources.plugin import claim_events
from kschedfw_devices.dynamic_resources.usage import NOTHING_USED, PoolUsage, counting_results

from kschedfw import make_node, make_pod
from kschedfw.api.pod import Pod, PodExtendedResourceClaimStatus
from kschedfw.api.resource_claims import CLAIM_FINALIZER, AllocationResult, ResourceClaim
from kschedfw.cluster import ConflictError, InMemoryCluster, T, WatchEvent
from kschedfw.config import default_profile
from kschedfw.framework.events import ActionType, EventResource, QueueingHint
from kschedfw.framework.metrics import DevicePreparation, NoMetrics
from kschedfw.plugins import DynamicResourcesArgs
from kschedfw.simulator import Failures, Simulation
from kschedfw.testing import FrameworkHarness
from kschedfw.testing.properties import examples


def claim_of(world: World, name: str) -> ResourceClaim:
    found = world.cluster.get(ResourceClaim, f"default/{name}")
    assert found is not None
    return found


def results(found: ResourceClaim) -> list[str]:
    status = found.status.allocation
    return [] if status is None else [f"{each.pool}/{each.device}" for each in status.devices.results]


def template(name: str = "one") -> Any:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    return made("ResourceClaimTemplate", name, spec={"spec": {"devices": {"requests": [request]}}})


def test_what_a_pod_gets_is_written_into_its_claim_before_it_is_bound() -> None:
    world = World(node("a"), node("b"), gpu_class(), devices("b", "g0", "g1"), claim("c"), pod("p", "c"))
    world.run()
    found = claim_of(world, "c")
    assert world.node_of("p") == "b"
    assert results(found) == ["b/g0"]
    assert CLAIM_FINALIZER in found.metadata.finalizers
    assert [each.name for each in found.status.reserved_for] == ["p"]
    assert found.status.allocation is not None
    assert found.status.allocation.allocation_timestamp is not None
    assert found.status.allocation.allocation_timestamp.timestamp() == 1_000_000_000.0


def test_a_second_pod_follows_the_claim_and_shares_it() -> None:
    world = World(
        node("a"), node("b"), gpu_class(), devices("b", "g0"), claim("c"), pod("p", "c"), pod("q", "c")
    )
    world.run(2)
    assert (world.node_of("p"), world.node_of("q")) == ("b", "b")
    assert [each.name for each in claim_of(world, "c").status.reserved_for] == ["p", "q"]


def test_no_device_is_given_twice_and_one_that_is_freed_is_given_again() -> None:
    world = World(node("a"), gpu_class(), devices("a", "g0"), template())
    world.cluster.add(pod("p", template="one"))
    world.cluster.add(pod("q", template="one"))
    world.run()
    assert (world.node_of("p"), world.node_of("q")) == ("a", "")
    assert world.told("q") == (
        "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    (placed,) = [each for each in world.cluster.list(Pod) if each.name == "p"]
    world.cluster.delete(placed)
    world.run()
    assert world.node_of("q") == "a"


def test_a_pod_waits_for_its_claim_to_be_there_and_for_new_devices() -> None:
    world = World(node("a"), gpu_class(), pod("p", "c"))
    world.run()
    assert (world.node_of("p"), world.told("p")) == (
        "",
        "",
    )  # it is gated, which changes nothing in the cluster
    world.cluster.add(claim("c"))
    world.run()
    assert world.told("p").startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    world.cluster.add(devices("a", "g0"))
    world.run()
    assert world.node_of("p") == "a"


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([claim("c")], "request r: device class gpu does not exist"),
        (
            [
                claim("c"),
                gpu_class('device.attributes["gpu.example.com"].none == 1'),
            ],
            'running "DynamicResources" filter plugin: class gpu: selector #0: CEL runtime error: no such key: none',
        ),
        (
            [claim("c", 33), gpu_class()],
            (
                'running "DynamicResources" filter plugin: claim default/c: number of requested devices 33 exceeds the '
                "claim limit of 32"
            ),
        ),
    ],
)
def test_bad_input_is_told_in_the_pods_condition(objects: list[Any], said: str) -> None:
    world = World(node("a"), devices("a", "g0"), *objects, pod("p", "c"))
    world.run()
    assert said in world.told("p")


def test_a_pod_whose_volume_claim_is_missing_is_refused_and_no_plugin_has_failed() -> None:
    cluster = InMemoryCluster(
        [make_node("a").capacity(cpu=4, pods=9).build(), make_pod("p").claim("c").build()]
    )
    with Failures() as failures:
        report = Simulation(cluster).run()
    assert (failures.count, report.failed) == (0, 0)
    refused = cluster.get(Pod, "default/p")
    assert refused is not None
    # kube-scheduler's own words.
    said = '0/1 nodes are available: persistentvolumeclaim "c" not found. not found'
    assert [each.message for each in refused.status.conditions] == [said]


def test_a_claim_that_nobody_uses_is_freed_for_a_pod_that_cannot_use_it() -> None:
    world = World(
        node("a"),
        gpu_class(),
        devices("a", "g0"),
        claim("c", status=allocation("old", "gone")),
        pod("p", "c"),
    )
    world.run(2)
    assert world.node_of("p") == "a"
    assert results(claim_of(world, "c")) == ["a/g0"]


def test_extended_resources_come_from_devices_by_a_claim_of_their_own() -> None:
    gpu = gpu_class(extendedResourceName="example.com/gpu")
    world = World(node("a"), gpu, devices("a", "g0"), pod("p", **{"example.com/gpu": "1"}))
    world.run()
    bound = world.cluster.get(Pod, "default/p")
    assert bound is not None
    assert bound.node_name == "a"
    told = bound.status.extended_resource_claim_status
    assert isinstance(told, PodExtendedResourceClaimStatus)
    assert results(claim_of(world, told.resource_claim_name)) == ["a/g0"]
    world.cluster.add(pod("q", **{"deviceclass.resource.kubernetes.io/gpu": "1"}))
    world.run()
    assert world.node_of("q") == ""
    world.cluster.delete(bound)
    world.run()
    assert world.node_of("q") == "a"


def test_a_claim_for_extended_resources_is_named_as_the_server_would_name_it() -> None:
    long = "p" * 60
    gpu = gpu_class(extendedResourceName="example.com/gpu")
    pods = [pod(name, **{"example.com/gpu": "1"}) for name in ("p", long)]
    world = World(node("a"), gpu, devices("a", "g0", "g1"), *pods)
    world.run()
    named = {each.metadata.generate_name: each.name for each in world.cluster.list(ResourceClaim)}
    assert {*named} == {"p-extended-resources-", f"{long}-extended-resources-"}
    assert re.fullmatch(
        r"p-extended-resources-[bcdfghjklmnpqrstvwxz2456789]{5}", named["p-extended-resources-"]
    )
    assert len(named[f"{long}-extended-resources-"]) == 63


@pytest.mark.parametrize("taken", ["g1", "g0"])
def test_a_claim_that_others_allocate_meanwhile_is_theirs_unless_they_chose_the_same(taken: str) -> None:
    class Allocating(InMemoryCluster):
        did = False

        def update(self, obj: T) -> T:
            if isinstance(obj, ResourceClaim) and not self.did:
                self.did = True
                theirs = allocated if taken == "g0" else claim("c", status=allocation("g1", "a"))
                present = self.get(ResourceClaim, obj.key)
                assert present is not None
                assert isinstance(theirs, ResourceClaim)
                super().update(attrs.evolve(present, status=attrs.evolve(theirs.status, reserved_for=())))
            return super().update(obj)

    first = World(node("a"), gpu_class(), devices("a", "g0", "g1"), claim("c"), pod("p", "c"))
    first.run()
    allocated = claim_of(first, "c")
    cluster = Allocating()
    world = World(
        node("a"), gpu_class(), devices("a", "g0", "g1"), claim("c"), pod("p", "c"), cluster=cluster
    )
    world.scheduler.schedule_one()
    assert world.node_of("p") == ("a" if taken == "g0" else "")
    assert ("got allocated elsewhere" in world.told("p")) == (taken == "g1")


def test_one_reservation_that_cannot_be_withdrawn_does_not_keep_the_others() -> None:
    class Refusing(InMemoryCluster):
        refuses = False

        def update(self, obj: T) -> T:
            if self.refuses and obj.name == "c":
                raise ConflictError("refused")
            return super().update(obj)

    cluster = Refusing()
    world = World(node("a"), gpu_class(), devices("a", "g0", "g1"), claim("c"), claim("d"), cluster=cluster)
    cluster.add(pod("p", "c", "d"))
    world.cluster.watch(lambda event: setattr(cluster, "refuses", isinstance(event.object, ResourceClaim)))
    binding = cluster.bind

    def refused(pod: Pod, node_name: str) -> None:
        raise ConflictError("no")

    cluster.bind = refused  # type: ignore[method-assign]
    world.scheduler.schedule_one()
    cluster.bind = binding  # type: ignore[method-assign]
    assert [each.name for each in claim_of(world, "d").status.reserved_for] == []


BINDING = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}


class Preparing:
    """Says something about a device as soon as it is allocated, as its driver would."""

    def __init__(self, cluster: InMemoryCluster, condition: str) -> None:
        self.cluster, self.condition = cluster, condition
        self.said = False
        cluster.watch(lambda event: self._prepare(event.object))

    def _prepare(self, obj: object) -> None:
        if isinstance(obj, ResourceClaim) and obj.status.allocation is not None and not self.said:
            self.said = True
            device = obj.status.allocation.devices.results[0].device
            condition = {"type": self.condition, "status": "True", "reason": "r", "message": 'no "link"'}
            told = {"driver": DRIVER, "pool": "a", "device": device, "conditions": [condition]}
            read = made("ResourceClaim", obj.name, spec={}, status={"devices": [told]})
            assert isinstance(read, ResourceClaim)
            status = attrs.evolve(obj.status, devices=read.status.devices)
            self.cluster.update(attrs.evolve(obj, status=status))


def test_a_pod_is_bound_when_its_devices_are_ready() -> None:
    world = World(node("a"), gpu_class(), devices("a", "g0", more=BINDING), claim("c"))
    Preparing(world.cluster, "ready")
    world.cluster.add(pod("p", "c"))
    world.run()
    assert world.node_of("p") == "a"


class LateCluster(InMemoryCluster):
    """A claim's first reads find nothing, the next ones its first state, and so on."""

    READS = 4

    def __init__(self) -> None:
        super().__init__()
        self.states: list[ResourceClaim] = []
        self.reads = 0
        self.is_late = True
        self.watch(lambda event: self._keep(event.object))

    def _keep(self, obj: object) -> None:
        if isinstance(obj, ResourceClaim):
            self.states.append(obj)

    def get(self, kind: type[T], key: str) -> T | None:
        if kind is not ResourceClaim or not self.is_late:
            return super().get(kind, key)
        shown = self.states[: self.reads // self.READS]
        self.reads += 1
        return cast("T", shown[-1]) if shown else None

    def update(self, obj: T) -> T:
        self.is_late = False  # writes meet the object as it is
        try:
            return super().update(obj)
        finally:
            self.is_late = True


@pytest.mark.parametrize("more", [{}, BINDING], ids=["ready at once", "to be prepared"])
def test_a_claim_that_was_just_made_is_the_pods_though_reads_lag_behind(more: Mapping[str, Any]) -> None:
    cluster = LateCluster()
    Preparing(cluster, "ready")
    gpu = gpu_class(extendedResourceName="example.com/gpu")
    world = World(node("a"), gpu, devices("a", "g0", more=more), cluster=cluster)
    cluster.add(pod("p", **{"example.com/gpu": "1"}))
    world.scheduler.schedule_one()
    assert world.node_of("p") == "a"


class Told(NoMetrics):
    """Keeps what is told of devices."""

    def __init__(self) -> None:
        self.created: list[bool] = []
        self.prepared: list[tuple[str, str, DevicePreparation]] = []

    def claim_created(self, *, success: bool) -> None:
        self.created.append(success)

    def devices_prepared(self, profile: str, driver: str, result: DevicePreparation, seconds: float) -> None:
        self.prepared.append((profile, driver, result))


@pytest.mark.parametrize(
    ("condition", "result"),
    [("ready", DevicePreparation.SUCCESS), ("broken", DevicePreparation.FAILURE)],
)
def test_how_waiting_for_devices_ended_is_told(condition: str, result: DevicePreparation) -> None:
    told = Told()
    world = World(node("a"), gpu_class(), devices("a", "g0", more=BINDING), claim("c"), metrics=told)
    Preparing(world.cluster, condition)
    world.cluster.add(pod("p", "c"))
    world.scheduler.schedule_one()
    assert told.prepared == [("default-scheduler", DRIVER, result)]


def test_claims_for_extended_resources_are_told_and_other_devices_are_not_waited_for() -> None:
    told = Told()
    gpu = gpu_class(extendedResourceName="example.com/gpu")
    world = World(node("a"), gpu, devices("a", "g0"), pod("p", **{"example.com/gpu": "1"}), metrics=told)
    world.run()
    assert (told.created, told.prepared) == ([True], [])


def test_a_device_that_cannot_be_made_ready_is_given_back() -> None:
    world = World(node("a"), gpu_class(), devices("a", "g0", more=BINDING), claim("c"))
    Preparing(world.cluster, "broken")
    world.cluster.add(pod("p", "c"))
    world.scheduler.schedule_one()
    assert world.node_of("p") == ""
    assert claim_of(world, "c").status.allocation is None
    assert world.told("p") == (
        'running PreBind plugin "DynamicResources": device binding failed: claim=c, reason=r, message="no \\"link\\""'
    )


def test_waiting_for_devices_is_an_event_of_the_pod() -> None:
    world = World(node("a"), gpu_class(), devices("a", "g0", more=BINDING), claim("c"), pod("p", "c"))
    world.scheduler.schedule_one()
    assert [
        (each.regarding, each.type, each.message)
        for each in world.cluster.events
        if each.reason == "BindingConditionsPending"
    ] == [("default/p", "Normal", "waiting for binding conditions for device on node a")]


def test_a_pod_whose_devices_need_no_preparation_has_no_event_of_waiting() -> None:
    world = World(node("a"), gpu_class(), devices("a", "g0"), claim("c"), pod("p", "c"))
    world.run()
    assert [each.reason for each in world.cluster.events] == ["Scheduled"]


def test_waiting_for_devices_ends_with_an_error_when_the_claim_is_taken_away() -> None:
    told = Told()
    world = World(node("a"), gpu_class(), devices("a", "g0", more=BINDING), claim("c"), metrics=told)

    def take_away(event: WatchEvent) -> None:
        if isinstance(event.object, ResourceClaim) and event.object.status.reserved_for:
            world.cluster.update(without_allocation(event.object))

    world.cluster.watch(take_away)
    world.cluster.add(pod("p", "c"))
    world.scheduler.schedule_one()
    assert told.prepared == [("default-scheduler", DRIVER, DevicePreparation.ERROR)]


@pytest.mark.parametrize("plugin", ["DynamicResources", "InterPodAffinity"])
def test_taints_of_nodes_are_no_event_for_plugins_that_dont_read_them(plugin: str) -> None:
    registered = FrameworkHarness(plugin).framework.events_to_register()[plugin]
    node_events = [each.action for each in registered if each.resource is EventResource.NODE]
    assert node_events
    assert not any(each & ActionType.UPDATE_NODE_TAINT for each in node_events)


def test_an_allocation_without_a_timestamp_gets_one_when_it_is_reserved() -> None:
    world = World(node("a"), gpu_class(), devices("a", "g0"), claim("c", status=allocation("g0", "a")))
    world.cluster.add(pod("p", "c"))
    world.run()
    allocated = claim_of(world, "c").status.allocation
    assert allocated is not None
    assert allocated.allocation_timestamp is not None
    assert allocated.allocation_timestamp.timestamp() == 1_000_000_000.0


def test_a_timestamp_stays_when_another_pod_reserves_the_claim() -> None:
    world = World(node("a"), gpu_class(), devices("a", "g0"), claim("c"), pod("p", "c"))
    world.run()
    world.cluster.add(pod("q", "c"))
    world.run()
    found = claim_of(world, "c").status
    assert len(found.reserved_for) == 2
    assert found.allocation is not None
    assert found.allocation.allocation_timestamp is not None
    assert found.allocation.allocation_timestamp.timestamp() == 1_000_000_000.0


def test_binding_that_takes_too_long_says_that_its_time_is_over() -> None:
    world = World(node("a"), gpu_class(), devices("a", "g0", more=BINDING), claim("c"), pod("p", "c"))
    world.scheduler.schedule_one()
    assert world.told("p") == (
        'running PreBind plugin "DynamicResources": device binding timeout: context deadline exceeded'
    )


def test_binding_names_the_claim_whose_devices_have_been_overdue_before() -> None:
    """The claim was allocated nine minutes ago, and its devices still aren't ready after a minute more."""
    device = {"request": "r", "driver": DRIVER, "pool": "a", "device": "g0", **BINDING}
    earlier = "2001-09-09T01:37:40Z"
    status = {"allocation": {"devices": {"results": [device]}, "allocationTimestamp": earlier}}
    world = World(node("a"), gpu_class(), devices("a", "g0", more=BINDING), claim("c", status=status))
    world.cluster.add(pod("p", "c"))
    world.scheduler.schedule_one()
    assert world.told("p") == ('running PreBind plugin "DynamicResources": device binding timeout: claim=c')


def test_deleted_claims_are_no_event() -> None:
    harness = FrameworkHarness("DynamicResources", objects=[claim("own")])
    taken = claim("other", status=allocation("g0", "a"))
    assert harness.hint(pod("p", "own"), taken, None) is QueueingHint.SKIP
    assert harness.hint(pod("p", "own"), taken, claim("other")) is QueueingHint.QUEUE


def test_each_device_is_matched_once_per_state_of_its_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    evaluated = inventory._evaluated

    def counting(device: Any, expressions: Any, budget: Any, **rules: Any) -> Any:
        if expressions:
            asked.append(device.id)
        return evaluated(device, expressions, budget, **rules)

    monkeypatch.setattr(inventory, "_evaluated", counting)
    names = [f"n{number}" for number in range(12)]
    world = World(*map(node, names), gpu_class(), *(devices(name, "g0", "g1") for name in names), template())
    for number in range(24):
        world.cluster.add(pod(f"p{number}", template="one"))
    world.run()
    assert all(world.node_of(f"p{number}") for number in range(24))
    assert len(asked) == len(set(asked)) == 24


def test_only_nodes_whose_devices_were_taken_are_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    run = DeviceSearch.run

    def counting(search: DeviceSearch) -> Any:
        searched.append(search._reach.node.name)
        return run(search)

    monkeypatch.setattr(DeviceSearch, "run", counting)
    names = [f"n{number:02}" for number in range(20)]
    world = World(*map(node, names), gpu_class(), *(devices(name, "g0", "g1") for name in names), template())
    counts = []
    for number in range(4):
        world.cluster.add(pod(f"p{number}", template="one"))
        searched.clear()
        world.run()
        counts.append(len(searched))
    assert counts == [
        21,
        2,
        2,
        2,
    ]  # every node, and the chosen one again; from then on the node that was chosen before


def test_nodes_that_reach_the_same_devices_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    run = DeviceSearch.run

    def counting(search: DeviceSearch) -> Any:
        searched.append(search._reach.number)
        return run(search)

    monkeypatch.setattr(DeviceSearch, "run", counting)
    spec = {
        "driver": DRIVER,
        "allNodes": True,
        "pool": {"name": "net", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "g0"}, {"name": "g1"}],
    }
    shared = made("ResourceSlice", "net", spec=spec)
    world = World(*(node(f"n{number}") for number in range(20)), gpu_class(), shared, template())
    world.cluster.add(pod("p", template="one"))
    world.run()
    assert world.node_of("p")
    assert searched == [0]  # for all nodes together: the chosen node gets the devices that were found


def test_all_profiles_know_what_is_in_flight() -> None:
    cluster = InMemoryCluster()
    assert DeviceManager.of(cluster) is DeviceManager.of(cluster)
    assert DeviceManager.of(InMemoryCluster()) is not DeviceManager.of(cluster)
    manager = DeviceManager.of(cluster)
    written = claim("x", status=allocation("g0", "a"))
    assert isinstance(written, ResourceClaim)
    assert written.status.allocation is not None
    manager.claims.put_in_flight("uid", written.status.allocation)
    assert DeviceManager.of(cluster).claims.usage().of((DRIVER, "a")).taken == {"g0"}
    manager.claims.landed("uid")
    assert manager.claims.usage().by_pool == {}


def test_the_default_profile_has_it_where_kube_scheduler_has_it() -> None:
    names = [each.name for each in default_profile().multi_point]
    assert names.index("DynamicResources") == names.index("DefaultPreemption") - 1
    (plugin,) = [each for each in default_profile().multi_point if each.name == "DynamicResources"]
    assert plugin.weight == 2


class TestHints:
    def hint(
        self,
        cluster: InMemoryCluster,
        old: ResourceClaim | None,
        new: ResourceClaim | None,
        claims: Sequence[str] = ("c",),
    ) -> QueueingHint:
        events = {str(each.resource): each for each in claim_events(ResourceClaims(cluster))}
        hint = events["resource.k8s.io/ResourceClaim"].hint
        assert hint is not None
        return hint(pod("p", *claims), old, new)

    def cluster(self) -> InMemoryCluster:
        return InMemoryCluster([claim("c"), claim("other")])

    def test_its_own_claim(self) -> None:
        cluster = self.cluster()
        own = cluster.get(ResourceClaim, "default/c")
        assert own is not None
        allocated = attrs.evolve(own, status=claim_with_device().status)
        assert self.hint(cluster, None, own) is QueueingHint.QUEUE
        assert self.hint(cluster, own, allocated) is QueueingHint.QUEUE
        assert self.hint(cluster, own, own) is QueueingHint.SKIP

    def test_another_claim_matters_when_it_frees_devices(self) -> None:
        cluster = self.cluster()
        other = cluster.get(ResourceClaim, "default/other")
        assert other is not None
        allocated = attrs.evolve(other, status=claim_with_device().status)
        assert self.hint(cluster, other, allocated) is QueueingHint.SKIP
        assert self.hint(cluster, allocated, other) is QueueingHint.QUEUE

    def test_its_own_claim_does_not_matter_while_another_one_is_missing(self) -> None:
        cluster = self.cluster()
        own = cluster.get(ResourceClaim, "default/c")
        for names in (("c", "missing"), ("missing", "c")):
            assert self.hint(cluster, None, own, names) is QueueingHint.SKIP

    def test_nothing_matters_while_a_claim_is_missing(self) -> None:
        cluster = InMemoryCluster([claim("other")])
        other = cluster.get(ResourceClaim, "default/other")
        assert self.hint(cluster, None, other) is QueueingHint.SKIP


def claim_with_device() -> ResourceClaim:
    found = claim("x", status=allocation("g0", "a"))
    assert isinstance(found, ResourceClaim)
    return found


def counted(allocations: list[AllocationResult]) -> dict[PoolId, PoolUsage]:
    usage: dict[PoolId, PoolUsage] = {}
    for each in allocations:
        for result in counting_results(each):
            pool = result.driver, result.pool
            usage[pool] = usage.get(pool, NOTHING_USED).with_result(result)
    return usage


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from(["g0", "g1", ""]), st.sampled_from(["x", "y"]), st.booleans()
    ),
    max_size=12,
)


@given(STEPS)
@settings(max_examples=examples(60))
def test_what_is_taken_is_the_same_however_it_came_about(steps: list[tuple[str, str, str, bool]]) -> None:
    cluster = InMemoryCluster([claim(name) for name in "abc"])
    claims = ResourceClaims(cluster)
    in_flight: dict[str, AllocationResult] = {}
    for name, device, pool, flies in steps:
        present = cluster.get(ResourceClaim, f"default/{name}")
        assert present is not None
        status = claim("new", status=allocation(device, pool) if device else None)
        assert isinstance(status, ResourceClaim)
        if flies and status.status.allocation is not None:
            in_flight[present.uid] = status.status.allocation
            claims.put_in_flight(present.uid, status.status.allocation)
        else:
            claims.landed(present.uid)
            in_flight.pop(present.uid, None)
            cluster.update(attrs.evolve(present, status=status.status))
        taken = [
            found
            for each in cluster.list(ResourceClaim)
            if (found := in_flight.get(each.uid) or each.status.allocation) is not None
        ]
        expected = {pool: usage.taken for pool, usage in counted(taken).items()}
        assert {pool: usage.taken for pool, usage in claims.usage().by_pool.items()} == expected


class TestSearchesThatTakeTooLong:
    """They are cut off by `filterTimeout`, of which the clock of simulations would never see the end."""

    SELECTOR = "lists.range(400).all(i, i >= 0)"

    def world(self, *node_names: str, selector: str = SELECTOR, gpus: int = 3, **args: float) -> World:
        profile = default_profile()
        given = {**profile.args, DynamicResources.name: DynamicResourcesArgs(**args)}
        spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 3}}]}}
        odd = gpu_class(selector)
        slices = [devices(name, *(f"g{number}" for number in range(gpus))) for name in node_names]
        wanting = made("ResourceClaim", "c", spec=spec)
        objects = [*map(node, node_names), *slices, odd, wanting, pod("p", "c")]
        return World(*objects, profiles=[attrs.evolve(profile, args=given)])

    def test_the_attempt_ends_with_an_error_that_names_the_node(self) -> None:
        world = self.world("a", filter_timeout=0.0001)
        world.scheduler.schedule_one()
        assert world.told("p") == (
            'running "DynamicResources" filter plugin: node a: timed out trying to allocate devices'
        )

    def test_many_devices_are_looked_at_once_however_short_it_is(self) -> None:
        world = self.world("a", selector="true", gpus=100, filter_timeout=0.001)
        world.run()
        assert world.node_of("p") == "a"

    def test_the_pod_is_tried_again_without_an_event_and_gets_further_each_time(self) -> None:
        steps = Budget(1e6)
        compile_selector(self.SELECTOR).matches(DeviceInput(DRIVER), steps)
        two_devices = 2.5 * (1e6 - steps.left) / STEPS_PER_SECOND
        world = self.world("a", "b", filter_timeout=two_devices)
        world.scheduler.schedule_one()
        assert "timed out" in world.told("p")
        world.run(3)
        assert world.node_of("p") in ("a", "b")

    def test_without_a_timeout_it_takes_as_long_as_it_takes(self) -> None:
        world = self.world("a", filter_timeout=0.0)
        world.run()
        assert world.node_of("p") == "a"
