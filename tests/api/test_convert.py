"""Manifests become objects, and say precisely where they don't."""

from __future__ import annotations

from collections.abc import (
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set,
)
from datetime import UTC, datetime
from enum import Enum
from typing import Any, get_origin

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api import affinity, containers, pod, pod_groups, selectors, storage, volumes, workloads
from kschedfw.api.affinity import TolerationOperator
from kschedfw.api.containers import Protocol
from kschedfw.api.convert import json_name, structure, unstructure
from kschedfw.api.field_errors import FieldErrors
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.node import Node, Taint, TaintEffect
from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import PodGroupSpec
from kschedfw.api.quantity import Quantity
from kschedfw.api.selectors import LabelSelector, NodeSelectorTerm
from kschedfw.api.workloads import PodDisruptionBudgetSpec
from kschedfw.testing.strategies import node_manifests, pod_manifests


class Color(Enum):
    RED = "red"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def errors_of(manifest: object, cls: type[Any] = Pod) -> list[str]:
    with pytest.raises(FieldErrors) as caught:
        structure(manifest, cls)
    return str(caught.value).splitlines()


def container(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", **fields}]}}


def test_keys_are_camel_case_with_the_api_s_own_ideas_of_capitals() -> None:
    port = {"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1", "protocol": "UDP"}
    read = structure(container(ports=[port]), Pod).spec.containers[0].ports[0]
    assert (read.host_ip, read.host_port, read.protocol) == ("127.0.0.1", 8080, Protocol.UDP)


def test_null_is_absent_and_unknown_keys_are_ignored() -> None:
    manifest: dict[str, Any] = {
        "metadata": {"name": "x", "creationTimestamp": None, "managedFields": []},
        "spec": None,
        "new": 1,
    }
    pod = structure(manifest, Pod)
    assert pod.metadata.creation_timestamp is None
    assert pod.spec.containers == ()


def test_null_in_a_map_is_the_zero_of_its_type() -> None:
    assert structure({"metadata": {"labels": {"a": None}}}, Pod).labels == {"a": ""}
    read = structure(container(resources={"requests": {"cpu": None}}), Pod)
    assert read.spec.containers[0].resources.requests == {"cpu": Quantity.parse("0")}


def test_an_empty_enumeration_is_absent() -> None:
    toleration = structure({"spec": {"tolerations": [{"effect": "", "operator": ""}]}}, Pod).spec.tolerations[
        0
    ]
    assert (toleration.effect, toleration.operator) == (None, TolerationOperator.EQUAL)
    assert errors_of({"spec": {"taints": [{"key": "a", "effect": ""}]}}, Node) == [
        "spec.taints[0].effect: Required value"
    ]


def test_keys_of_maps_become_strings_as_in_json() -> None:
    assert structure({"metadata": {"labels": {7: "a"}}}, Pod).labels == {"7": "a"}


@pytest.mark.parametrize("amount", ["150m", 0.15, "0.15", ".15"])
def test_quantities_may_be_numbers(amount: Any) -> None:
    read = structure(container(resources={"requests": {"cpu": amount}}), Pod)
    assert read.spec.containers[0].resources.requests["cpu"].milli_value() == 150


def test_quantities_that_are_quantities_already_stay() -> None:
    amount = Quantity.parse("1Gi")
    read = structure(container(resources={"requests": {"memory": amount}}), Pod)
    assert read.spec.containers[0].resources.requests["memory"] is amount


def test_enormous_quantities_are_left_alone() -> None:
    read = structure({"status": {"capacity": {"a.b/c": "9E", "a.b/d": "90000E"}}}, Node)
    assert read.status.capacity["a.b/d"] > read.status.capacity["a.b/c"]


@pytest.mark.parametrize(
    "time",
    [
        "2024-02-29T12:30:00Z",
        "2024-02-29T13:30:00+01:00",
        "2024-02-29T12:30:00.000000000Z",
        datetime(2024, 2, 29, 12, 30, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 30),  # noqa: DTZ001  # what PyYAML's own loaders give
    ],
)
def test_times(time: object) -> None:
    pod = structure({"status": {"startTime": time}}, Pod)
    assert pod.status.start_time == datetime(2024, 2, 29, 12, 30, tzinfo=UTC)


def test_a_count_or_a_percentage() -> None:
    budget = structure({"minAvailable": "50%", "maxUnavailable": 1}, PodDisruptionBudgetSpec)
    assert (budget.min_available, budget.max_unavailable) == ("50%", 1)


@attrs.frozen
class Shelf:
    height: int = 1


def read_field(annotation: Any, value: object) -> object:
    cls = attrs.make_class("Rack", {"field": attrs.field(type=annotation)})
    return structure({"field": value}, cls).field


class TestMapsAndLists:
    """Of whatever class a field's annotation names."""

    @pytest.mark.parametrize(
        ("annotation", "made"),
        [
            (tuple[str, ...], tuple),
            (list[str], list),
            (list, list),
            (set[str], set),
            (frozenset[str], frozenset),
            (Sequence[str], tuple),
            (MutableSequence[str], list),
            (Collection[str], tuple),
            (Iterable[str], tuple),
            (Set[str], frozenset),
            (MutableSet[str], set),
            (list[str] | None, list),
            (list[object], list),
        ],
        ids=str,
    )
    def test_a_list_is_read_as_the_class_and_a_text_or_a_map_is_none(
        self, annotation: Any, made: type[Collection[str]]
    ) -> None:
        found = read_field(annotation, ["r1", "r2"])
        assert found == made(["r1", "r2"])  # type: ignore[call-arg]  # each takes an iterable
        assert type(found) is made
        for value, shown in (("r1", '"r1"'), ({"r1": "r2"}, '{"r1":"r2"}'), (5, "5")):
            cls = attrs.make_class("Rack", {"field": attrs.field(type=annotation)})
            assert errors_of({"field": value}, cls) == [f"field: Invalid value: {shown}: must be a list"]

    @pytest.mark.parametrize(
        "annotation",
        [dict[str, int], dict, Mapping[str, int], MutableMapping[str, int], FrozenDict[str, int]],
    )
    def test_a_map_is_read_as_the_class_and_a_text_or_a_list_is_none(self, annotation: Any) -> None:
        found = read_field(annotation, {"a": 1})
        assert found == {"a": 1}
        assert isinstance(found, FrozenDict) == (get_origin(annotation) is FrozenDict)
        cls = attrs.make_class("Rack", {"field": attrs.field(type=annotation)})
        assert errors_of({"field": "r1"}, cls) == ['field: Invalid value: "r1": must be a map']
        assert errors_of({"field": ["r1"]}, cls) == ['field: Invalid value: ["r1"]: must be a map']

    @pytest.mark.parametrize("annotation", [set[str], frozenset[str], Set[str]])
    def test_a_set_may_be_given_as_one_and_is_written_as_a_sorted_list(self, annotation: Any) -> None:
        racks = {"r3", "r1", "r2"}
        cls = attrs.make_class("Rack", {"field": attrs.field(type=annotation)})
        read: Any = structure({"field": racks}, cls)
        assert read.field == racks
        assert unstructure(read) == {"field": ["r1", "r2", "r3"]}

    @pytest.mark.parametrize(
        ("annotation", "value", "error"),
        [
            (dict[str, int], {"k": "x"}, 'field.k: Invalid value: "x": must be an integer'),
            (dict[str, int], {"a/b": "x"}, 'field[a/b]: Invalid value: "x": must be an integer'),
            (dict[int, str], {"k": "x"}, 'field.k: the key: Invalid value: "k": must be an integer'),
            (dict[str, list[int]], {"k": [1, "x"]}, 'field.k[1]: Invalid value: "x": must be an integer'),
            (list[int], [1, "x"], 'field[1]: Invalid value: "x": must be an integer'),
            (set[int], [1, "x"], 'field[1]: Invalid value: "x": must be an integer'),
            (frozenset[str], [1], "field[0]: Invalid value: 1: must be a string: put it in quotes"),
            (list[Shelf], [{"height": "x"}], 'field[0].height: Invalid value: "x": must be an integer'),
            (
                list[list[Shelf]],
                [[], [{"height": "x"}]],
                'field[1][0].height: Invalid value: "x": must be an integer',
            ),
            (list[Color], ["mauve"], "field[0]: 'mauve' is not a valid Color"),
            (tuple[str, int], ["a", "x"], 'field[1]: Invalid value: "x": must be an integer'),
            (tuple[str, int], ["a"], 'field: Invalid value: ["a"]: must be a list of 2'),
        ],
        ids=str,
    )
    def test_a_bad_item_is_named_by_its_index_or_key(
        self, annotation: Any, value: object, error: str
    ) -> None:
        cls = attrs.make_class("Rack", {"field": attrs.field(type=annotation)})
        assert errors_of({"field": value}, cls) == [error]


class TestErrors:
    def test_name_path_value_and_what_would_be_right(self) -> None:
        assert errors_of(container(resources={"requests": {"cpu": "1 Gi"}})) == [
            (
                'spec.containers[0].resources.requests.cpu: Invalid value: "1 Gi": quantities must match the regular '
                "expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$' (perhaps \"1Gi\" was meant)"
            )
        ]

    def test_all_are_told_at_once(self) -> None:
        manifest = {
            "metadata": {"labels": {"a": True, "b.c/d": 1}},
            "spec": {"containers": "main", "tolerations": [{}, {"effect": "Never"}], "priority": "high"},
        }
        assert errors_of(manifest) == [
            "metadata.labels.a: Invalid value: true: must be a string: put it in quotes",
            "metadata.labels[b.c/d]: Invalid value: 1: must be a string: put it in quotes",
            'spec.containers: Invalid value: "main": must be a list',
            (
                'spec.tolerations[1].effect: Unsupported value: "Never": supported values: '
                '"NoSchedule", "PreferNoSchedule", "NoExecute"'
            ),
            'spec.priority: Invalid value: "high": must be an integer',
        ]

    @pytest.mark.parametrize(
        ("manifest", "error"),
        [
            ({"metadata": "web"}, 'metadata: Invalid value: "web": must be an object'),
            ({"metadata": {"labels": ["a"]}}, 'metadata.labels: Invalid value: ["a"]: must be a map'),
            ({"metadata": {"name": {}}}, "metadata.name: Invalid value: {}: must be a string"),
            (
                {"spec": {"hostNetwork": "yes"}},
                'spec.hostNetwork: Invalid value: "yes": must be true or false',
            ),
            ({"spec": {"priority": True}}, "spec.priority: Invalid value: true: must be an integer"),
            ({"spec": {"priority": 1 << 64}}, f"spec.priority: Invalid value: {1 << 64}: must be an integer"),
            ({"spec": {"priority": 1.5}}, "spec.priority: Invalid value: 1.5: must be an integer"),
            (
                {"status": {"startTime": "today"}},
                'status.startTime: Invalid value: "today": must be a time such as 2006-01-02T15:04:05Z',
            ),
            (
                {"status": {"startTime": 5}},
                "status.startTime: Invalid value: 5: must be a time such as 2006-01-02T15:04:05Z",
            ),
            (
                {"spec": {"overhead": {"cpu": [1]}}},
                'spec.overhead.cpu: Invalid value: [1]: must be a quantity, such as "500m" or "1Gi"',
            ),
            ({"spec": {"containers": [None]}}, "spec.containers[0]: Invalid value: null: must be an object"),
        ],
    )
    def test_wrong_types(self, manifest: object, error: str) -> None:
        assert errors_of(manifest) == [error]

    @pytest.mark.parametrize(("wrong", "right"), [("1K", "1k"), ("512MB", "512M"), ("1 G", "1G")])
    def test_hints_at_what_was_meant(self, wrong: str, right: str) -> None:
        (error,) = errors_of({"spec": {"overhead": {"memory": wrong}}})
        assert error.endswith(f'(perhaps "{right}" was meant)')

    def test_no_hint_where_nothing_comes_to_mind(self) -> None:
        (error,) = errors_of({"spec": {"overhead": {"memory": "lots"}}})
        assert "perhaps" not in error

    def test_absurd_amounts_are_refused_before_they_are_added(self) -> None:
        assert errors_of({"spec": {"overhead": {"cpu": "1e2147483647"}}}) == [
            'spec.overhead.cpu: Invalid value: "1e2147483647": must be less than 1e100'
        ]

    def test_long_values_are_cut(self) -> None:
        (error,) = errors_of({"metadata": {"name": ["x" * 1000]}})
        assert len(error) < 300

    def test_whole_numbers_may_be_written_as_floats(self) -> None:
        assert structure({"spec": {"priority": 5.0}}, Pod).spec.priority == 5

    @given(ANYTHING)
    def test_whatever_is_given_nothing_but_an_error_with_a_path_comes_out(self, value: object) -> None:
        for manifest in (value, {"metadata": value}, {"spec": {"containers": [value], "affinity": value}}):
            try:
                structure(manifest, Pod)
            except FieldErrors as error:
                assert error.errors  # noqa: PT017


class TestWriting:
    def test_what_has_its_default_is_left_out(self) -> None:
        manifest = {"metadata": {"name": "a"}, "spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}
        assert unstructure(structure(manifest, Node)) == manifest

    def test_values_are_plain(self) -> None:
        written = unstructure(Taint("a", TaintEffect.NO_EXECUTE))
        assert type(written["effect"]) is str

    def test_times_end_in_z(self) -> None:
        time = "2024-02-29T12:30:00Z"
        assert unstructure(structure({"status": {"startTime": time}}, Pod)) == {"status": {"startTime": time}}

    @given(pod_manifests())
    def test_pods_are_read_back(self, manifest: dict[str, Any]) -> None:
        pod = structure(manifest, Pod)
        assert structure(unstructure(pod), Pod) == pod
        assert hash(pod) == hash(structure(manifest, Pod))

    @given(node_manifests())
    def test_nodes_are_read_back(self, manifest: dict[str, Any]) -> None:
        node = structure(manifest, Node)
        assert structure(unstructure(node), Node) == node


@pytest.mark.parametrize(
    ("cls", "field", "supported"),
    [
        (LabelSelector, "matchExpressions", '"In", "NotIn", "Exists", "DoesNotExist"'),
        (NodeSelectorTerm, "matchExpressions", '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'),
    ],
)
def test_an_unknown_operator_is_told_which_there_are(cls: type, field: str, supported: str) -> None:
    manifest = {field: [{"key": "a", "operator": "Like", "values": ["b"]}]}
    with pytest.raises(FieldErrors) as caught:
        structure(manifest, cls)
    (error,) = caught.value.errors
    assert str(error) == f'{field}[0].operator: Unsupported value: "Like": supported values: {supported}'


INT32_FIELDS = [
    (module, cls, attribute)
    for module in (affinity, containers, pod, pod_groups, selectors, storage, volumes, workloads)
    for cls in vars(module).values()
    if isinstance(cls, type) and attrs.has(cls) and cls.__module__ == module.__name__
    for attribute in attrs.fields(cls)
    if "int32" in str(attribute.type).lower()  # a name, or resolved by `attrs.resolve_types`
]


@pytest.mark.parametrize(("cls", "key"), [(cls, json_name(field)) for _, cls, field in INT32_FIELDS], ids=str)
def test_integers_of_32_bits_are_refused_beyond_them_as_by_the_api_server(cls: type[Any], key: str) -> None:
    found = {}
    for number in (-(1 << 31) - 1, -(1 << 31), (1 << 31) - 1, 1 << 31, 1 << 63):
        try:
            structure({key: number}, cls)
        except FieldErrors as error:
            found[number] = [each.detail for each in error.errors if each.path == key]
    wrong = "Invalid value: {}: must be an integer of 32 bits, from -2147483648 to 2147483647"
    beyond = (-(1 << 31) - 1, 1 << 31)
    assert {number: found[number] for number in beyond} == {
        number: [wrong.format(number)] for number in beyond
    }
    assert not found.get((1 << 31) - 1)
    assert not found.get(-(1 << 31))
    assert found[1 << 63] == [f"Invalid value: {1 << 63}: must be an integer"]


def test_the_fields_of_32_bits_are_found() -> None:
    assert len(INT32_FIELDS) == 24
    assert (PodGroupSpec, "priority") in [(cls, field.name) for _, cls, field in INT32_FIELDS]
