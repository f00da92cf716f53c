"""What pods take and nodes have."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given

from kschedfw.api.containers import Container, ResourceRequirements
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.manifests import node_from_manifest, pod_from_manifest
from kschedfw.api.pod import Pod, PodSpec, PodStatus
from kschedfw.api.quantity import Quantity
from kschedfw.api.requests import (
    DEFAULT_MEMORY,
    PodRequests,
    QosClass,
    node_allocatable,
    pod_qos_class,
    pod_requests,
    spec_limits,
    spec_requests,
)
from kschedfw.api.resource import Resource
from kschedfw.testing.strategies import pods

MI = 1024 * 1024


def container(name: str = "main", *, limits: dict[str, Any] | None = None, **requests: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": requests, "limits": limits or {}}}


def sidecar(name: str, **requests: Any) -> dict[str, Any]:
    return {**container(name, **requests), "restartPolicy": "Always"}


def requests_of(spec: dict[str, Any], status: dict[str, Any] | None = None) -> PodRequests:
    manifest = {"metadata": {"name": "pod"}, "spec": spec, "status": status or {}}
    return pod_requests(pod_from_manifest(manifest))


def cpu_of(spec: dict[str, Any], status: dict[str, Any] | None = None) -> int:
    return requests_of(spec, status).amounts.milli_cpu


class TestContainers:
    def test_requests_of_containers_add_up(self) -> None:
        spec = {"containers": [container("a", cpu="1", memory="1Gi"), container("b", cpu=0.25, memory="1M")]}
        assert requests_of(spec).amounts == Resource(milli_cpu=1250, memory=1024 * MI + 1_000_000)

    def test_each_amount_is_rounded_up_to_thousandths_when_it_is_read(self) -> None:
        assert cpu_of({"containers": [container("a", cpu="0.4m"), container("b", cpu="0.4m")]}) == 2

    def test_sums_are_exact_and_rounded_up_at_the_end(self) -> None:
        spec = {"containers": [container("a", memory="100m"), container("b", memory="200m")]}
        assert requests_of(spec).amounts.memory == 1

    def test_an_init_container_counts_where_it_needs_more_than_all_others_later(self) -> None:
        spec = {
            "containers": [container("a", cpu="1", memory="1Gi")],
            "initContainers": [container("i", cpu="3", memory="1Mi"), container("j", cpu="2")],
        }
        assert requests_of(spec).amounts == Resource(milli_cpu=3000, memory=1024 * MI)

    def test_sidecars_run_beside_main_containers_and_later_init_containers(self) -> None:
        spec = {
            "containers": [container(cpu="1")],
            "initContainers": [container("i", cpu="2"), sidecar("s", cpu="1"), container("j", cpu="2")],
        }
        assert cpu_of(spec) == 3000

    def test_a_sidecar_adds_to_the_main_containers(self) -> None:
        assert cpu_of({"containers": [container(cpu="3")], "initContainers": [sidecar("s", cpu="1")]}) == 4000

    def test_overhead_is_added(self) -> None:
        requests = requests_of(
            {"containers": [container(cpu="1")], "overhead": {"cpu": "50m", "memory": "1Mi"}}
        )
        assert (requests.amounts.milli_cpu, requests.amounts.memory) == (1050, MI)
        assert requests.non_zero_memory == DEFAULT_MEMORY + MI

    def test_objects_that_were_not_loaded_count_too(self) -> None:
        tiny = ResourceRequirements(requests=FrozenDict({"cpu": Quantity.parse("400u")}))
        pod = Pod(spec=PodSpec(containers=(Container("a", resources=tiny), Container("b", resources=tiny))))
        assert pod_requests(pod).amounts.milli_cpu == 1

    @given(pods())
    def test_a_pod_never_takes_less_than_any_of_its_containers(self, pod: Pod) -> None:
        total = pod_requests(pod)
        for each in (*pod.spec.containers, *pod.spec.init_containers):
            alone = pod_requests(attrs.evolve(pod, spec=PodSpec(containers=(each,))))
            assert alone.amounts.milli_cpu <= total.amounts.milli_cpu
            assert alone.non_zero_memory <= total.non_zero_memory


class TestNonZero:
    def test_containers_that_name_nothing_are_assumed_to_need_something(self) -> None:
        requests = requests_of({"containers": [container("a"), container("b", cpu="1")]})
        assert requests.amounts == Resource(milli_cpu=1000)
        assert (requests.non_zero_milli_cpu, requests.non_zero_memory) == (1100, 2 * DEFAULT_MEMORY)

    def test_a_zero_that_is_written_is_believed(self) -> None:
        requests = requests_of({"containers": [container(cpu=0, memory="0")]})
        assert (requests.non_zero_milli_cpu, requests.non_zero_memory) == (0, 0)

    def test_what_the_pod_names_as_a_whole_is_not_assumed(self) -> None:
        spec = {"containers": [container("a"), container("b")], "resources": {"requests": {"cpu": "1"}}}
        requests = requests_of(spec)
        assert (requests.non_zero_milli_cpu, requests.non_zero_memory) == (1000, 2 * DEFAULT_MEMORY)


class TestNames:
    @pytest.mark.parametrize(
        "name", ["nvidia.com/gpu", "hugepages-2Mi", "attachable-volumes-csi-x", "kubernetes.io/batch-cpu"]
    )
    def test_counted_beside_cpu_and_memory(self, name: str) -> None:
        node = node_from_manifest({"metadata": {"name": "n"}, "status": {"allocatable": {name: "3"}}})
        assert node_allocatable(node).scalar_resources == {name: 3}

    @pytest.mark.parametrize("name", ["gpu", "storage", "requests.example.com/gpu"])
    def test_not_counted(self, name: str) -> None:
        node = node_from_manifest({"metadata": {"name": "n"}, "status": {"allocatable": {name: "3"}}})
        assert node_allocatable(node) == Resource()

    def test_allocatable(self) -> None:
        allocatable = {"cpu": "1.5", "memory": "1Ki", "ephemeral-storage": "1k", "pods": "110"}
        node = node_from_manifest({"metadata": {"name": "n"}, "status": {"allocatable": allocatable}})
        assert node_allocatable(node) == Resource(1500, 1024, 1000, allowed_pod_number=110)

    def test_a_pod_takes_no_number_of_pods(self) -> None:
        pods_as_overhead = {"containers": [container()], "overhead": {"pods": "3"}}
        assert requests_of(pods_as_overhead).amounts.allowed_pod_number == 0


class TestPodLevel:
    def test_requests_of_the_pod_take_the_place_of_the_sum(self) -> None:
        spec = {"containers": [container(cpu="1", memory="1Mi")], "resources": {"requests": {"cpu": "5"}}}
        assert requests_of(spec).amounts == Resource(milli_cpu=5000, memory=MI)

    def test_overhead_comes_on_top(self) -> None:
        spec = {
            "containers": [container()],
            "resources": {"requests": {"cpu": "5"}},
            "overhead": {"cpu": "1"},
        }
        assert cpu_of(spec) == 6000


class TestResize:
    """A container's resources may be changed while it runs."""

    def status(self, granted: str | None, actual: str | None, **more: Any) -> dict[str, Any]:
        status: dict[str, Any] = {"name": "main"}
        if granted is not None:
            status["allocatedResources"] = {"cpu": granted}
        if actual is not None:
            status["resources"] = {"requests": {"cpu": actual}}
        return {"containerStatuses": [status], **more}

    @pytest.mark.parametrize(
        ("granted", "actual", "expected"),
        [
            ("1", "1", 2000),
            ("3", "1", 3000),
            ("1", "4", 4000),
            (None, "4", 4000),
        ],
    )
    def test_the_largest_of_asked_granted_and_actual_counts(
        self, granted: str | None, actual: str | None, expected: int
    ) -> None:
        assert cpu_of({"containers": [container(cpu="2")]}, self.status(granted, actual)) == expected

    @pytest.mark.parametrize("granted", ["3", None])
    @pytest.mark.parametrize("conditions", [[], [{"type": "PodResizePending", "reason": "Infeasible"}]])
    def test_a_status_that_does_not_say_what_is_in_effect_says_nothing(
        self, granted: str | None, conditions: list[dict[str, Any]]
    ) -> None:
        status = self.status(granted, None, conditions=conditions)
        assert cpu_of({"containers": [container(cpu="2")]}, status) == 2000

    @pytest.mark.parametrize(
        ("granted", "actual", "expected"), [("1", "1", 1000), ("1", "3", 3000), (None, "1", 1000)]
    )
    def test_what_can_never_be_granted_does_not_count(
        self, granted: str | None, actual: str | None, expected: int
    ) -> None:
        infeasible = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
        status = self.status(granted, actual, conditions=[infeasible])
        assert cpu_of({"containers": [container(cpu="2")]}, status) == expected

    def test_what_waits_for_room_counts(self) -> None:
        deferred = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
        assert (
            cpu_of({"containers": [container(cpu="2")]}, self.status("1", "1", conditions=[deferred])) == 2000
        )

    def test_each_container_counts_with_its_own_largest(self) -> None:
        spec = {"containers": [container("a", cpu="1"), container("b", cpu="1")]}
        statuses = [
            {"name": "a", "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "1"}}},
            {"name": "b", "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "3"}}},
        ]
        assert cpu_of(spec, {"containerStatuses": statuses}) == 5000

    def test_sidecars_are_resized_and_init_containers_that_end_are_not(self) -> None:
        in_effect = {"resources": {"requests": {"cpu": "5"}}}
        status = {"initContainerStatuses": [{"name": "i", **in_effect}]}
        containers = [container(cpu="1")]
        assert cpu_of({"containers": containers, "initContainers": [sidecar("i", cpu="2")]}, status) == 6000
        assert cpu_of({"containers": containers, "initContainers": [container("i", cpu="2")]}, status) == 2000

    def test_statuses_of_the_pod_as_a_whole(self) -> None:
        spec = {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}}
        status: dict[str, Any] = {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "4"}}}
        assert cpu_of(spec, status) == 4000
        assert cpu_of(spec, {"allocatedResources": {"cpu": "3"}}) == 2000
        infeasible = {"type": "PodResizePending", "reason": "Infeasible"}
        low = {"allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}
        assert cpu_of(spec, {**low, "conditions": [infeasible]}) == 1000

    def test_of_the_status_of_the_whole_only_what_the_spec_names_counts(self) -> None:
        spec = {"containers": [container(memory="1Mi")], "resources": {"requests": {"cpu": "2"}}}
        status = {"resources": {"requests": {"memory": "7Mi"}}}
        assert requests_of(spec, status).amounts == Resource(2000, MI)
        conditions = [{"type": "PodResizePending", "reason": "Infeasible"}]
        assert requests_of(spec, {**status, "conditions": conditions}).amounts == Resource(0, MI)

    def test_without_requests_of_the_whole_its_status_says_nothing(self) -> None:
        status = {"allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "3"}}}
        assert cpu_of({"containers": [container(cpu="1")]}, status) == 1000

    def test_assumptions_are_made_of_statuses_too(self) -> None:
        status = self.status(None, None)
        status["containerStatuses"][0]["resources"] = {"requests": {"memory": "1Mi"}}
        status["conditions"] = [{"type": "PodResizePending", "reason": "Infeasible"}]
        requests = requests_of({"containers": [container(cpu="10m", memory="1Mi")]}, status)
        assert requests.amounts == Resource(memory=MI)
        assert (requests.non_zero_milli_cpu, requests.non_zero_memory) == (100, MI)

    def test_a_node_must_have_room_for_what_is_asked_for(self) -> None:
        requests = requests_of({"containers": [container(cpu="2")]}, self.status("3", "1"))
        assert (requests.amounts.milli_cpu, requests.demand.milli_cpu) == (3000, 2000)

    @given(pods())
    def test_without_a_resize_a_node_must_have_room_for_what_the_pod_takes(self, pod: Pod) -> None:
        requests = pod_requests(attrs.evolve(pod, status=PodStatus()))
        assert requests.demand == requests.amounts


class TestScored:
    """What NodeResourcesFit's scores add for a pod."""

    def test_is_what_the_node_adds_where_nothing_is_said_of_the_whole(self) -> None:
        spec = {"containers": [container("a", cpu="1"), container("b", limits={"example.com/gpu": "2"})]}
        requests = requests_of(spec)
        assert requests.scored == Resource(
            1100, 2 * DEFAULT_MEMORY, scalar_resources=requests.amounts.scalar_resources
        )
        assert (requests.non_zero_milli_cpu, requests.non_zero_memory) == (1100, 2 * DEFAULT_MEMORY)

    def test_leaves_out_what_is_said_of_the_whole(self) -> None:
        whole = {"requests": {"cpu": "5", "hugepages-2Mi": "4Mi"}, "limits": {"hugepages-2Mi": "4Mi"}}
        spec = {"containers": [container(memory="1Mi")], "resources": whole, "overhead": {"cpu": "50m"}}
        requests = requests_of(spec)
        assert requests.amounts == Resource(5050, MI, scalar_resources=FrozenDict({"hugepages-2Mi": 4 * MI}))
        assert requests.scored == Resource(150, MI)
        assert (requests.non_zero_milli_cpu, requests.non_zero_memory) == (5050, MI)

    def test_leaves_out_what_came_of_a_resize(self) -> None:
        in_effect = {"name": "main", "resources": {"requests": {"cpu": "4", "memory": "4Mi"}}}
        spec = {"containers": [container(cpu="1", memory="1Mi")]}
        requests = requests_of(spec, {"containerStatuses": [in_effect]})
        assert requests.amounts == Resource(4000, 4 * MI)
        assert requests.scored == Resource(1000, MI)

    def test_nothing_is_assumed_on_the_node_of_what_any_part_of_the_pod_names(self) -> None:
        whole = {"requests": {"cpu": "1"}}
        spec = {"containers": [container("a", memory="1Mi"), container("b")], "resources": whole}
        requests = requests_of(spec)
        assert requests.non_zero_memory == MI
        assert requests.scored.memory == MI + DEFAULT_MEMORY


class TestMetrics:
    """What `/metrics/resources` shows."""

    def test_requests_are_those_of_the_spec(self) -> None:
        spec = {"containers": [container(cpu="2")], "overhead": {"cpu": "1"}}
        in_effect = {"name": "main", "resources": {"requests": {"cpu": "4"}}}
        pod = pod_from_manifest(
            {"metadata": {"name": "p"}, "spec": spec, "status": {"containerStatuses": [in_effect]}}
        )
        assert spec_requests(pod) == {"cpu": Quantity.parse("3")}

    def test_overhead_comes_on_top_of_limits_above_nothing(self) -> None:
        limits = {"cpu": "0", "memory": "1Mi"}
        spec = {"containers": [container(limits=limits)], "overhead": {"cpu": "1", "memory": "1Mi"}}
        pod = pod_from_manifest({"metadata": {"name": "p"}, "spec": spec})
        assert spec_limits(pod) == {"cpu": Quantity.parse(0), "memory": Quantity.parse("2Mi")}


class TestQosClass:
    def qos(self, *containers: dict[str, Any], **spec: Any) -> QosClass:
        manifest = {"metadata": {"name": "pod"}, "spec": {"containers": list(containers), **spec}}
        return pod_qos_class(pod_from_manifest(manifest))

    def test_nothing_set(self) -> None:
        assert self.qos(container()) is QosClass.BEST_EFFORT
        assert self.qos(container(cpu="0")) is QosClass.BEST_EFFORT
        assert self.qos(container(limits={"example.com/gpu": "1"})) is QosClass.BEST_EFFORT

    def test_limits_everywhere(self) -> None:
        limits = {"cpu": "1", "memory": "1Gi"}
        assert self.qos(container("a", limits=limits), container("b", limits=limits)) is QosClass.GUARANTEED
        assert self.qos(container("a", limits=limits), container("b")) is QosClass.BURSTABLE
        assert self.qos(container("a", limits=limits, cpu="500m")) is QosClass.BURSTABLE
        init = [container("i")]
        assert self.qos(container("a", limits=limits), initContainers=init) is QosClass.BURSTABLE

    def test_of_the_pod_as_a_whole(self) -> None:
        limits = {"limits": {"cpu": "1", "memory": "1Gi"}}
        assert self.qos(container(), resources=limits) is QosClass.GUARANTEED
        assert self.qos(container(), resources={"requests": {"cpu": "1"}}) is QosClass.BURSTABLE


class TestSums:
    """Quantities are added exactly."""

    @given(pods())
    def test_amounts_do_not_depend_on_the_order_of_containers(self, pod: Pod) -> None:
        turned = attrs.evolve(pod, spec=attrs.evolve(pod.spec, containers=pod.spec.containers[::-1]))
        assert pod_requests(turned) == pod_requests(pod)

    def test_formats_and_notations(self) -> None:
        assert str(Quantity.parse("1Gi") + Quantity.parse("1Mi")) == "1025Mi"
        assert str(Quantity.parse("0") + Quantity.parse("1Mi")) == "1Mi"
        assert Quantity.parse("1") + Quantity.parse("100m") == Quantity.parse("1100m")
        assert Quantity.parse("1e3") + Quantity.parse("-1k") == Quantity.parse("0")

    def test_a_sum_beyond_int64_is_wide(self) -> None:
        largest = Quantity.parse(2**63 - 1)
        assert (largest + Quantity.parse("1")) > largest
        assert Quantity.__add__(largest, 1) is NotImplemented  # type: ignore[operator]
