"""The table of kinds, and that nothing else has a list of its own that differs."""

from __future__ import annotations

import pytest

from kschedfw.api.custom import CustomObject
from kschedfw.api.field_errors import FieldError
from kschedfw.api.kinds import KIND_OF, KINDS, Kind, name_of_kind
from kschedfw.api.manifests import FieldValidation, parse_manifests, to_manifest
from kschedfw.api.meta import Named, ObjectMeta
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.framework.events import EVENT_RESOURCES, EventResource


@pytest.mark.parametrize(
    ("name", "group", "version", "plural", "namespaced"),
    [
        ("Pod", "", "v1", "pods", True),
        ("Node", "", "v1", "nodes", False),
        ("ReplicaSet", "apps", "v1", "replicasets", True),
        ("PriorityClass", "scheduling.k8s.io", "v1", "priorityclasses", False),
        ("CSIStorageCapacity", "storage.k8s.io", "v1", "csistoragecapacities", True),
        ("ResourceSlice", "resource.k8s.io", "v1", "resourceslices", False),
    ],
)
def test_a_kind_says_where_the_api_has_its_objects(
    name: str, group: str, version: str, plural: str, namespaced: bool
) -> None:
    kind = KINDS[name]
    assert (kind.group, kind.version, kind.plural, kind.namespaced) == (group, version, plural, namespaced)


def test_every_class_has_one_kind_and_the_kinds_name() -> None:
    assert {kind.cls: kind for kind in KINDS.values()} == KIND_OF
    assert all(kind.name == kind.cls.__name__ == name for name, kind in KINDS.items())
    assert name_of_kind(Pod()) == "Pod"


@pytest.mark.parametrize(
    ("kind", "api_version", "read"),
    [
        ("Pod", "v1", True),
        ("Pod", "apps/v1", False),
        ("Deployment", "apps/v1beta2", True),
        ("Deployment", "extensions/v1beta1", True),
        ("PodGroup", "scheduling.k8s.io/v1alpha3", True),
        ("PodGroup", "scheduling.k8s.io/v1alpha1", False),
        ("ResourceClaim", "resource.k8s.io/v1beta2", True),
        ("ResourceClaim", "resource.k8s.io/v1alpha3", False),
        ("DeviceTaintRule", "resource.k8s.io/v1alpha3", True),
    ],
)
def test_the_versions_that_are_read(kind: str, api_version: str, read: bool) -> None:
    assert KINDS[kind].reads(api_version) is read


def test_plugins_subscribe_to_kinds_of_the_table() -> None:
    of_pods = {EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD}
    assert set(EVENT_RESOURCES.values()) == set(EventResource) - of_pods - {EventResource.WILDCARD}
    assert EVENT_RESOURCES.keys() <= KIND_OF.keys()


def test_a_new_kind_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the table is read, defaulted, validated, loaded and written, and nothing else has to know of it."""

    class Lease(Node):
        """Some class, of which only the entry below says that it is a kind."""

    entry = Kind(
        "Lease",
        "coordination.k8s.io/v1",
        Lease,
        with_defaults=lambda lease: lease.with_metadata(with_label(lease.metadata)),
        errors=lambda lease: iter([FieldError("spec", "is bad")] if lease.name == "bad" else []),
    )
    monkeypatch.setitem(KINDS, "Lease", entry)
    monkeypatch.setitem(KIND_OF, Lease, entry)

    loaded = parse_manifests(
        "\n---\n".join(
            f"{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: {name}}}}}"
            for name in ("good", "bad")
        ),
        field_validation=FieldValidation.IGNORE,  # what fields Kubernetes has stands in another table
    )

    assert [str(problem.errors[0]) for problem in loaded.problems] == ["spec: is bad"]
    (lease,) = loaded.of(Lease)
    assert (lease.key, dict(lease.labels)) == ("default/good", {"new": "yes"})
    assert list(loaded.objects(skip_invalid=True)) == [lease]
    assert to_manifest(lease)["kind"] == "Lease"


def with_label(metadata: ObjectMeta) -> ObjectMeta:
    return ObjectMeta(
        name=metadata.name, namespace=metadata.namespace, uid=metadata.uid, labels={"new": "yes"}
    )


def test_objects_come_after_what_they_refer_to_and_pods_come_last() -> None:
    def manifest(kind: str) -> str:
        custom = kind == "PodGroup"
        version = "example.com/v1" if custom else KINDS[kind].api_version
        spec = ", spec: {containers: [{name: a}]}" if kind == "Pod" else ""
        return f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: a}}{spec}}}"

    given = ("Pod", "PodGroup", "PersistentVolumeClaim", "Node", "StorageClass", "Namespace")
    loaded = parse_manifests("\n---\n".join(map(manifest, given)))
    assert not loaded.problems
    order: list[type[Named]] = [type(obj) for obj in loaded.objects()]
    names = [cls.__name__ for cls in order if cls is not CustomObject]
    assert names == ["Namespace", "StorageClass", "Node", "PersistentVolumeClaim", "Pod"]
    assert order.index(CustomObject) == len(order) - 2
