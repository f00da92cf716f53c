"""Objects of other people's kinds are kept as they are, and read by those who know them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import (
    CustomKind,
    CustomObject,
    CustomResource,
    FieldError,
    FrozenDict,
    InMemoryCluster,
    KschedfwError,
    ObjectMeta,
    Quantity,
)
from kschedfw.api.manifests import ManifestError, object_from_manifest, parse_manifests, to_manifest

API_VERSION = "scheduling.example.com/v1alpha1"


@attrs.frozen
class GangSpec:
    min_member: int = 1
    min_resources: FrozenDict[str, Quantity] = attrs.field(factory=FrozenDict)
    racks: tuple[str, ...] = ()


@attrs.frozen
class Gang(CustomResource):
    kind = CustomKind(API_VERSION, "Gang")

    metadata: ObjectMeta
    spec: GangSpec = GangSpec()

    def validate(self) -> Iterator[FieldError]:
        if self.spec.min_member < 1:
            yield FieldError.invalid("spec.minMember", self.spec.min_member, "must be at least 1")


@attrs.frozen
class Rack(CustomResource):
    kind = CustomKind(API_VERSION, "Rack", namespaced=False)

    metadata: ObjectMeta
    height: int = 0


def manifest(name: str = "train", *, kind: str = "Gang", **content: object) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, **content}


def read(content: Mapping[str, Any]) -> CustomObject:
    obj = object_from_manifest(content)
    assert isinstance(obj, CustomObject)
    return obj


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PodGroup", "podgroups.v1alpha1.scheduling.example.com"),
        ("NodeResourceTopology", "noderesourcetopologies.v1alpha1.scheduling.example.com"),
        ("Process", "processes.v1alpha1.scheduling.example.com"),
    ],
)
def test_a_kind_is_called_as_kube_scheduler_calls_it(name: str, text: str) -> None:
    assert str(CustomKind(API_VERSION, name)) == text


class TestReading:
    def test_fields_are_read_as_those_of_pods_are(self) -> None:
        spec = {"minMember": 3, "minResources": {"cpu": "1500m"}, "racks": ["a", "b"], "unknown": 1}
        gang = Gang.of(read(manifest(spec=spec)))
        assert gang is not None
        assert gang.spec == GangSpec(3, FrozenDict({"cpu": Quantity.parse("1500m")}), ("a", "b"))

    def test_namespaced_kinds_are_in_default_if_nothing_else_is_said(self) -> None:
        gang, rack = Gang.of(read(manifest())), Rack.of(read(manifest("r1", kind="Rack")))
        assert gang is not None
        assert gang.key == "default/train"
        assert rack is not None
        assert rack.key == "r1"

    def test_other_kinds_and_other_versions_are_something_else(self) -> None:
        assert Rack.of(read(manifest())) is None
        assert Gang.of(read({**manifest(), "apiVersion": "scheduling.example.com/v1"})) is None
        assert Gang.of(None) is None

    def test_an_object_is_read_once(self) -> None:
        obj = read(manifest())
        assert Gang.of(obj) is Gang.of(obj)

    def test_one_that_is_read_already_is_given_back(self) -> None:
        gang = Gang(ObjectMeta(name="train"))
        assert Gang.of(gang) is gang

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({"minMember": "three"}, "spec.minMember: "),
            ({"minResources": {"cpu": "much"}}, "spec.minResources.cpu: "),
            ({"minMember": 0}, "spec.minMember: Invalid value: 0: must be at least 1"),
        ],
    )
    def test_what_is_wrong_is_said_with_object_and_field(self, spec: dict[str, object], message: str) -> None:
        with pytest.raises(ManifestError) as error:
            Gang.of(read(manifest(spec=spec)))
        assert str(error.value).startswith(f"Gang default/train: {message}")


class TestClassesThatSayTooLittle:
    def test_a_class_without_a_kind_is_told_when_its_objects_are_asked_for(self) -> None:
        @attrs.frozen
        class Nameless(CustomResource):
            metadata: ObjectMeta

        cluster = InMemoryCluster()
        for ask in (
            lambda: cluster.list(Nameless),
            lambda: cluster.get(Nameless, "a"),
            lambda: Nameless.of(read(manifest())),
        ):
            with pytest.raises(
                KschedfwError, match="Nameless is a CustomResource without a kind; give it one"
            ):
                ask()

    def test_a_kind_is_a_custom_kind(self) -> None:
        with pytest.raises(KschedfwError, match=r'Wrong\.kind is "Gang"; it has to be a CustomKind'):

            class Wrong(CustomResource):
                kind = "Gang"  # type: ignore[assignment]  # what is tested


class TestMalformedObjects:
    def test_do_not_hide_the_others_of_their_kind(self, caplog: pytest.LogCaptureFixture) -> None:
        good, bad = manifest("good", spec={"minMember": 2}), manifest("bad", spec={"minMember": "many"})
        cluster = InMemoryCluster(map(read, (bad, good)))
        for _ in range(2):
            assert [gang.name for gang in cluster.list(Gang)] == ["good"]
            cluster.add(Gang(ObjectMeta(name=f"new-{_}")))
            cluster.delete(Gang(ObjectMeta(name=f"new-{_}", namespace="default")))
        (record,) = caplog.records  # once, not with every list
        assert "Gang default/bad: spec.minMember: Invalid value" in record.getMessage()
        with pytest.raises(ManifestError, match=r"spec\.minMember"):
            cluster.get(Gang, "default/bad")


class TestKeeping:
    def test_the_loader_keeps_them_in_order(self) -> None:
        text = "\n".join(json.dumps(manifest(name)) for name in ("b", "a"))
        loaded = parse_manifests(text)
        assert [obj.name for obj in loaded.custom_objects] == ["b", "a"]
        assert list(loaded.objects()) == list(loaded.custom_objects)
        assert not loaded.problems

    def test_generated_names_are_numbered(self) -> None:
        text = json.dumps({**manifest(), "metadata": {"generateName": "train-"}})
        names = [obj.name for obj in parse_manifests(f"{text}\n{text}").custom_objects]
        assert names == ["train-0", "train-1"]

    def test_two_of_a_name_are_a_problem(self) -> None:
        other = {**manifest(), "metadata": {"name": "train", "namespace": "default"}}
        loaded = parse_manifests(f"{json.dumps(manifest())}\n{json.dumps(other)}")
        (problem,) = loaded.problems
        assert str(problem).startswith("document 2 (Gang default/train): metadata.name: Duplicate value")

    def test_metadata_is_checked_since_everyone_reads_it(self) -> None:
        loaded = parse_manifests(json.dumps({**manifest(), "metadata": {"name": "train", "labels": "x"}}))
        (problem,) = loaded.problems
        assert str(problem).startswith("document 1 (Gang train): metadata.labels: ")

    def test_what_is_in_them_can_be_hashed_and_compared(self) -> None:
        one, other = (read(manifest(spec={"racks": [{"name": "a"}]})) for _ in range(2))
        assert len({one, other}) == 1

    def test_a_class_writes_what_it_reads(self) -> None:
        gang = Gang(ObjectMeta(name="train", namespace="default"), GangSpec(2, racks=("a",)))
        assert to_manifest(gang) == {
            "apiVersion": API_VERSION,
            "kind": "Gang",
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {"minMember": 2, "racks": ["a"]},
        }
        assert Gang.of(read(to_manifest(gang))) == gang

    @given(
        st.dictionaries(
            st.text("abc", min_size=1),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            ),
        )
    )
    def test_manifests_come_out_as_they_went_in(self, spec: dict[str, object]) -> None:
        given_one = manifest(spec=spec)
        assert to_manifest(read(given_one)) == given_one
