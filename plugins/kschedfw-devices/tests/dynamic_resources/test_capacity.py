"""Capacities that requests consume; v1.37 counts ranges with fractions in thousandths (kubernetes#140161)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_devices.dynamic_resources.capacity import consumed, with_fractions

from kschedfw import FeatureGates, InMemoryCluster, Pod, Quantity, Scheduler, make_node
from kschedfw.api import CapacityPolicy, CapacityRange, Device, DeviceCapacity, FrozenDict, parse_manifests

Q = Quantity.parse


def device(value: str, least: str | None, most: str | None, step: str | None) -> Device:
    bounds = [None if each is None else Q(each) for each in (least, most, step)]
    policy = CapacityPolicy(valid_range=CapacityRange(*bounds))
    return Device("d", capacity=FrozenDict({"cores": DeviceCapacity(Q(value), policy)}))


def taken(made: Device, wanted: str) -> Quantity | None:
    found = consumed(made.capacity, FrozenDict({"cores": Q(wanted)}))
    return None if found is None else found["cores"]


@pytest.mark.parametrize(
    ("least", "most", "step", "wanted", "before", "after"),
    [
        ("500m", None, "500m", "500m", "1", "500m"),
        ("500m", None, "500m", "600m", "1", "1"),
        ("500m", None, "500m", "1200m", "2", "1500m"),
        ("100m", "1", "300m", "350m", "1", "400m"),
        ("0", "2500m", "2500m", "1", "3", "2500m"),
        ("1", "4", "1", "1500m", "2", "2"),
        ("1", None, None, "1500m", "1500m", "1500m"),
    ],
)
def test_steps_that_are_fractions_count_as_such(
    least: str, most: str | None, step: str | None, wanted: str, before: str, after: str
) -> None:
    made = device("8", least, most, step)
    expected = None if most is not None and Q(before) > Q(most) else Q(before)
    assert taken(made, wanted) == expected
    assert taken(with_fractions(made), wanted) == Q(after)


def test_an_amount_above_the_range_is_refused_either_way() -> None:
    made = device("8", "500m", "1500m", "500m")
    assert taken(made, "1600m") is taken(with_fractions(made), "1600m") is None


@pytest.mark.parametrize("step", ["0", "9300T"])
def test_a_range_that_thousandths_cannot_count_stays_as_it_is(step: str) -> None:
    made = device("8", "500m", None, step)
    assert with_fractions(made) is made


@given(*(st.integers(0, 50) for _ in range(3)), st.integers(1, 9))
def test_ranges_of_whole_numbers_are_left_alone(least: int, most: int, wanted: int, step: int) -> None:
    made = device("99", str(least), str(least + most), str(step))
    assert with_fractions(made) is made


@pytest.mark.parametrize(("version", "placed"), [("1.36", 2), ("1.37", 4)])
def test_as_many_pods_share_a_device_as_its_fractions_allow(version: str, placed: int) -> None:
    documents = [
        """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: core}
spec: {}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: cores.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices:
  - name: d
    allowMultipleAllocations: true
    capacity:
      cores: {value: "2", requestPolicy: {default: 500m, validRange: {min: 500m, step: 500m}}}
"""
    ]
    documents += [
        f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: c{number}}}
spec:
  devices:
    requests:
    - name: r
      exactly: {{deviceClassName: core, capacity: {{requests: {{cores: 500m}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: p{number}}}
spec:
  containers: [{{name: main, image: app}}]
  resourceClaims: [{{name: r, resourceClaimName: c{number}}}]
"""
        for number in range(5)
    ]
    manifests = parse_manifests("\n---\n".join(documents))
    node = make_node("n").capacity(cpu=9, pods=9).build()
    cluster = InMemoryCluster([node, *manifests.objects()])
    Scheduler(cluster, feature_gates=FeatureGates(version=version)).run_until_idle()
    assert sum(bool(pod.node_name) for pod in cluster.list(Pod)) == placed
