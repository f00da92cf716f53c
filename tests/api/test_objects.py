"""The classes themselves: immutable, hashable, and what they can tell."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import given

from kschedfw.api.affinity import Toleration, TolerationOperator
from kschedfw.api.containers import Container, ContainerStatus, ResourceRequirements, RestartPolicy
from kschedfw.api.frozendict import EMPTY, FrozenDict
from kschedfw.api.meta import ObjectMeta, OwnerReference
from kschedfw.api.node import Node, Taint, TaintEffect
from kschedfw.api.pod import Pod, PodPhase, PodSpec, PodStatus
from kschedfw.api.quantity import Quantity, QuantityError
from kschedfw.api.requests import pod_requests
from kschedfw.testing.strategies import pods


class TestFrozenDict:
    def test_is_a_dict_that_can_be_hashed(self) -> None:
        labels = FrozenDict({"a": 1, "b": 2})
        assert labels == {"a": 1, "b": 2}
        assert hash(labels) == hash(FrozenDict({"b": 2, "a": 1})) == hash(labels)
        assert repr(labels) == "FrozenDict({'a': 1, 'b': 2})"

    def test_can_not_change(self) -> None:
        labels: Any = FrozenDict({"a": 1})  # whose type refuses these writes
        changes: list[Callable[[], object]] = [
            lambda: labels.__setitem__("a", 2),
            lambda: labels.__delitem__("a"),
            lambda: labels.update(a=2),
            lambda: labels.pop("a"),
            labels.clear,
            lambda: labels.setdefault("b", 2),
            labels.popitem,
            lambda: labels.__ior__({"b": 1}),
        ]
        for change in changes:
            with pytest.raises(TypeError, match="FrozenDict is immutable"):
                change()
        assert labels == {"a": 1}
        assert {**EMPTY} == {}

    def test_can_be_copied_and_pickled(self) -> None:
        labels = FrozenDict({"a": 1})
        assert pickle.loads(pickle.dumps(labels)) == copy.deepcopy(labels) == labels


class TestMetadata:
    def test_shortcuts(self) -> None:
        owner = OwnerReference("Job", "j", controller=True)
        metadata = ObjectMeta(
            "a", "b", "u", FrozenDict(c="d"), FrozenDict(e="f"), (OwnerReference("X", "x"), owner)
        )
        pod = Pod(metadata)
        assert (pod.name, pod.namespace, pod.uid, pod.key) == ("a", "b", "u", "b/a")
        assert (pod.labels, pod.annotations) == ({"c": "d"}, {"e": "f"})
        assert pod.metadata.controller == owner
        assert Node(ObjectMeta("n")).key == "n"
        assert Node().metadata.controller is None


class TestPods:
    def test_pod_properties_are_read_from_spec_status_and_metadata(self) -> None:
        pod = Pod(spec=PodSpec(priority=7))
        assert (pod.priority, Pod().priority) == (7, 0)
        assert not pod.is_terminal
        assert Pod(status=PodStatus(phase=PodPhase.FAILED)).is_terminal
        assert not pod.is_terminating
        assert Pod(ObjectMeta(deletion_timestamp=datetime(2024, 1, 1, tzinfo=UTC))).is_terminating
        assert pod.bound_to("n").node_name == "n"
        assert pod.node_name == ""

    def test_requests_are_counted_once(self) -> None:
        pod = Pod(spec=PodSpec(containers=(Container("a"),)))
        assert pod.requests is pod.requests

    @given(pods())
    def test_copies_ask_for_the_same(self, pod: Pod) -> None:
        copy = pod.bound_to("n").with_metadata(ObjectMeta("other")).with_status(PodStatus(PodPhase.RUNNING))
        spec = attrs.evolve(pod.spec, node_name="n")
        assert copy == Pod(ObjectMeta("other"), spec, PodStatus(PodPhase.RUNNING))
        assert copy.requests == pod_requests(copy)

    def test_a_status_may_change_what_they_ask_for(self) -> None:
        pod = Pod(spec=PodSpec(containers=(Container("a"),)))
        in_effect = ContainerStatus("a", resources=ResourceRequirements({"cpu": Quantity.parse("2")}))
        resized = pod.with_status(PodStatus(container_statuses=(in_effect,)))
        assert (pod.requests.amounts.milli_cpu, resized.requests.amounts.milli_cpu) == (0, 2000)
        assert resized.with_status(PodStatus()).requests == pod.requests

    def test_sidecars(self) -> None:
        assert Container(restart_policy=RestartPolicy.ALWAYS).is_sidecar
        assert not Container().is_sidecar

    def test_can_not_change(self) -> None:
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            Pod().spec = PodSpec()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration(operator=TolerationOperator.EXISTS), True),
        (Toleration("n", TolerationOperator.EXISTS), True),
        (Toleration("m", TolerationOperator.EXISTS), False),
        (Toleration("n", TolerationOperator.EXISTS, effect=TaintEffect.NO_EXECUTE), False),
        (Toleration("n", value="5"), True),
        (Toleration("n", value="6"), False),
        (Toleration("n", TolerationOperator.GT, "4"), True),
        (Toleration("n", TolerationOperator.GT, "5"), False),
        (Toleration("n", TolerationOperator.LT, "6"), True),
        (Toleration("n", TolerationOperator.LT, "x"), False),
    ],
)
def test_tolerations(toleration: Toleration, tolerates: bool) -> None:
    assert toleration.tolerates(Taint("n", TaintEffect.NO_SCHEDULE, "5")) is tolerates


def test_amounts_are_read_as_in_a_manifest() -> None:
    resources = ResourceRequirements(requests={"cpu": "2", "memory": Quantity.parse("1Gi"), "pods": 3})
    assert resources == ResourceRequirements(
        requests=FrozenDict(
            {name: Quantity.parse(text) for name, text in (("cpu", "2"), ("memory", "1Gi"), ("pods", "3"))}
        )
    )
    assert ResourceRequirements(requests=FrozenDict({"cpu": "2"})).requests["cpu"].value() == 2


def test_an_amount_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(QuantityError, match=r"^cpu: 'two': "):
        ResourceRequirements(requests={"cpu": "two"})


def test_plain_dicts_become_hashable_maps() -> None:
    pod = Pod(ObjectMeta(name="a", labels={"app": "web"}), PodSpec(node_selector={"disk": "ssd"}))
    assert isinstance(pod.metadata.labels, FrozenDict)
    assert hash(pod.spec.node_selector) == hash(FrozenDict({"disk": "ssd"}))
