"""Loading files, directories and texts: what is right is loaded, what is wrong is told."""

from __future__ import annotations

import gzip
import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import given

from kschedfw.api.errors import KschedfwError
from kschedfw.api.kinds import KINDS, Kind
from kschedfw.api.manifests import (
    InvalidManifestsError,
    ManifestError,
    Manifests,
    node_from_manifest,
    object_from_manifest,
    parse_manifests,
    pod_from_manifest,
    read_manifests,
    to_manifest,
)
from kschedfw.api.meta import Named
from kschedfw.api.quantity import Quantity
from kschedfw.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeBindingMode,
)
from kschedfw.api.workloads import Namespace, PriorityClass
from kschedfw.testing.strategies import DrawnCluster, clusters

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "main"}]},
}


MINIMAL_OF_KIND: dict[str, dict[str, Any]] = {
    "PriorityClass": {"value": 1},
    "StorageClass": {"provisioner": "a"},
    "PersistentVolume": {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}
    },
    "DeviceTaintRule": {"spec": {"taint": {"key": "a", "effect": "NoSchedule"}}},
    "ResourceSlice": {
        "spec": {"driver": "a.b", "pool": {"name": "a", "resourceSliceCount": 1}, "allNodes": True}
    },
}
"""What objects need beside a name, of the cluster-scoped kinds that need something."""


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def names(manifests: Manifests) -> list[str]:
    return [obj.name for obj in manifests.objects(skip_invalid=True)]


def problems(manifests: Manifests) -> list[str]:
    return [str(problem) for problem in manifests.problems]


def a_node_named(name: str) -> str:
    return f"apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n"


class TestSingleObjects:
    def test_pods_and_nodes_need_not_say_what_they_are(self) -> None:
        assert pod_from_manifest({"metadata": {"name": "a"}, "spec": POD["spec"]}).key == "default/a"
        assert node_from_manifest({"metadata": {"name": "a"}}).key == "a"
        assert node_from_manifest({"kind": "Node", "metadata": {"name": "a"}}).key == "a"

    def test_the_wrong_kind_is_refused(self) -> None:
        with pytest.raises(ManifestError, match="kind: must be Node, not Pod"):
            node_from_manifest(POD)

    @pytest.mark.parametrize(
        ("manifest", "text"),
        [
            ({"kind": "Pod"}, "apiVersion: Required value: every object has to say its kind and apiVersion"),
            ({"apiVersion": "v1"}, "kind: Required value: every object has to say its kind and apiVersion"),
            ({"apiVersion": 1, "kind": "Pod"}, "apiVersion: Invalid value: 1: must be a string"),
            (
                {"apiVersion": "v1", "kind": "ConfigMap"},
                'kind: "ConfigMap" is not a kind that scheduling reads',
            ),
            (
                {"apiVersion": "networking.k8s.io/v1", "kind": "ReplicaSet"},
                (
                    'apiVersion: no kind "ReplicaSet" is registered for version "networking.k8s.io/v1": '
                    '"ReplicaSet" is in "apps/v1"'
                ),
            ),
            ([], "must be an object with kind and apiVersion, not []"),
        ],
    )
    def test_kinds_that_make_no_sense(self, manifest: Any, text: str) -> None:
        with pytest.raises(ManifestError) as caught:
            object_from_manifest(manifest)
        assert str(caught.value) == text

    def test_an_error_names_the_object_and_has_the_path(self) -> None:
        with pytest.raises(ManifestError) as caught:
            node_from_manifest({"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "x"}}})
        assert caught.value.path == "status.allocatable.cpu"
        assert str(caught.value).startswith('Node a: status.allocatable.cpu: Invalid value: "x": ')
        assert isinstance(caught.value, KschedfwError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

    @pytest.mark.parametrize(
        ("manifest", "cls"),
        [
            ({"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1"}, StorageClass),
            (
                {"kind": "CSINode", "apiVersion": "storage.k8s.io/v1", "spec": {"drivers": [{"name": "d"}]}},
                CSINode,
            ),
            ({"kind": "PersistentVolumeClaim", "apiVersion": "v1"}, PersistentVolumeClaim),
            ({"kind": "Namespace", "apiVersion": "v1"}, Namespace),
            (
                {
                    "kind": "CSIDriver",
                    "apiVersion": "storage.k8s.io/v1",
                    "spec": {"attachRequired": False, "storageCapacity": True},
                },
                CSIDriver,
            ),
            (
                {
                    "kind": "CSIStorageCapacity",
                    "apiVersion": "storage.k8s.io/v1",
                    "storageClassName": "fast",
                    "nodeTopology": {"matchLabels": {"zone": "a"}},
                    "capacity": "100Gi",
                    "maximumVolumeSize": "10Gi",
                },
                CSIStorageCapacity,
            ),
            (
                {
                    "kind": "VolumeAttachment",
                    "apiVersion": "storage.k8s.io/v1",
                    "spec": {
                        "attacher": "csi.example.com",
                        "nodeName": "n",
                        "source": {"persistentVolumeName": "pv-1"},
                    },
                    "status": {"attached": True},
                },
                VolumeAttachment,
            ),
        ],
    )
    def test_other_kinds(self, manifest: dict[str, Any], cls: type) -> None:
        obj = object_from_manifest({**manifest, "metadata": {"name": "x"}})
        assert isinstance(obj, cls)
        assert object_from_manifest(to_manifest(obj)) == obj
        assert hash(obj) == hash(object_from_manifest(to_manifest(obj)))

    def test_storage(self) -> None:
        manifest = {"metadata": {"name": "x"}, "volumeBindingMode": "WaitForFirstConsumer"}
        storage = object_from_manifest(manifest, "StorageClass")
        assert isinstance(storage, StorageClass)
        assert storage.volume_binding_mode is VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER

    def test_where_there_is_room_for_volumes(self) -> None:
        manifest = {"metadata": {"name": "x"}, "storageClassName": "fast", "capacity": "1Gi"}
        room = object_from_manifest(manifest, "CSIStorageCapacity")
        assert isinstance(room, CSIStorageCapacity)
        assert (room.key, room.capacity, room.maximum_volume_size) == (
            "default/x",
            Quantity.parse("1Gi"),
            None,
        )
        assert room.node_topology is None

    @pytest.mark.parametrize("cls", [CSIDriver, CSIStorageCapacity, VolumeAttachment])
    def test_storage_objects_come_with_the_others(self, cls: type[Named]) -> None:
        text = """
kind: List
apiVersion: v1
items:
- {kind: CSIDriver, apiVersion: storage.k8s.io/v1, metadata: {name: it}}
- {kind: CSIStorageCapacity, apiVersion: storage.k8s.io/v1, metadata: {name: it}, storageClassName: fast}
- {kind: VolumeAttachment, apiVersion: storage.k8s.io/v1, metadata: {name: it}}
"""
        manifests = parse_manifests(text)
        (obj,) = manifests.of(cls)
        assert obj.name == "it"
        assert obj in list(manifests.objects())


class TestYaml:
    def test_documents(self) -> None:
        text = f"---\n{a_node_named('a')}---\n# nothing here\n---\n\n---  # more\n{a_node_named('b')}"
        assert names(parse_manifests(text)) == ["a", "b"]

    @pytest.mark.parametrize("text", ["", "\n", "---\n", "# a comment\n", "---\n---\n", "\ufeff"])
    def test_nothing_is_no_problem(self, text: str) -> None:
        assert parse_manifests(text) == Manifests()

    def test_a_broken_document_does_not_hide_the_others(self) -> None:
        text = f"{a_node_named('a')}---\nkind: [Node\n---\n{a_node_named('b')}"
        manifests = parse_manifests(text, "nodes.yaml")
        assert names(manifests) == ["a", "b"]
        (problem,) = problems(manifests)
        assert problem.startswith("nodes.yaml: document 2: is not valid YAML: line 7: ")

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("? [a]\n: 1\n", "a key: expected a text, a number, true or false, found a list"),
            ("~: 1\n", "a key: expected a text, a number, true or false, found null"),
            ("a: {<<: 3}\n", "<<: expected an object or a list of objects, found '3'"),
            ("a: {<<: [{b: 1}, []]}\n", "<<: expected an object or a list of objects, found a list"),
            ("a: !!binary 'é'\n", "!!binary: expected a text in base64, found 'é'"),
        ],
    )
    def test_what_json_can_not_have_is_shown_with_what_would_be_right(self, text: str, why: str) -> None:
        (problem,) = problems(parse_manifests(text, "nodes.yaml"))
        assert problem.startswith("nodes.yaml: document 1: is not valid YAML: ")
        assert problem.endswith(why)

    def test_a_byte_order_mark_and_directives(self) -> None:
        assert names(parse_manifests(f"\ufeff{a_node_named('a')}")) == ["a"]
        assert names(parse_manifests(f"%YAML 1.1\n---\n{a_node_named('a')}")) == ["a"]

    def test_json_in_yaml(self) -> None:
        assert names(parse_manifests(f"{json.dumps(node('a'))}\n---\n{a_node_named('b')}")) == ["a", "b"]

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("2023-01-01", "2023-01-01"),
            ("2023-01-01T00:00:00Z", "2023-01-01T00:00:00Z"),
            ("22:22", "22:22"),
            ("=", "="),
            ("1.2.3", "1.2.3"),
            ("'yes'", "yes"),
        ],
    )
    def test_what_kubernetes_takes_for_text(self, text: str, value: str) -> None:
        manifests = parse_manifests(f"{a_node_named('a')}  annotations:\n    value: {text}\n")
        assert manifests.nodes[0].annotations == {"value": value}

    @pytest.mark.parametrize(
        "text", ["yes", "on", "True", "5", "0x1F", "0b11", "010", "0o17", "1e3", "5e10", "1.5", ".inf"]
    )
    def test_what_kubernetes_does_not_take_for_text(self, text: str) -> None:
        manifests = parse_manifests(f"{a_node_named('a')}  annotations:\n    value: {text}\n")
        (problem,) = problems(manifests)
        assert "metadata.annotations.value: Invalid value: " in problem
        assert "must be a string: put it in quotes" in problem

    @pytest.mark.parametrize(
        ("text", "value"), [("010", 8), ("0o10", 8), ("0x10", 16), ("-0b11", -3), ("1_000", 1000), ("0", 0)]
    )
    def test_integers(self, text: str, value: int) -> None:
        text = (
            f"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: a}}\nvalue: {text}\n"
        )
        assert parse_manifests(text).of(PriorityClass)[0].value == value

    @pytest.mark.parametrize(
        "text", ["value: !!python/object:os.system {}", "- [", "a: b: c", "'", "a: \x01"]
    )
    def test_rubbish_is_told_in_one_line(self, text: str) -> None:
        (problem,) = problems(parse_manifests(text, "x"))
        assert problem.startswith("x: document 1: is not valid YAML: ")
        assert "\n" not in problem

    @pytest.mark.parametrize(
        "text", ["[" * 100_000, "- " * 100_000, "{a: " * 5000, "".join(" " * i + "a:\n" for i in range(600))]
    )
    def test_nested_without_end(self, text: str) -> None:
        manifests = parse_manifests(f"{text}\n---\n{a_node_named('a')}")
        assert problems(manifests)[0].endswith(": nested too deeply, more than 100 levels")
        assert names(manifests) == ["a"]

    def test_many_brackets_are_not_deep(self) -> None:
        text = f"{a_node_named('a')}  annotations: {{b: '{'[]' * 1000}'}}\n"
        assert names(parse_manifests(text)) == ["a"]

    def test_a_document_that_is_no_object(self) -> None:
        assert problems(parse_manifests("just text")) == [
            'document 1: must be an object with kind and apiVersion, not "just text"'
        ]


class TestTemplates:
    UNRENDERED = "contains template syntax ({{ … }}) that has not been rendered"

    @pytest.mark.parametrize(
        "text",
        [
            "{{- if .Values.on }}\nkind: Pod\n{{- end }}",
            "kind: Pod\nmetadata:\n  name: {{ .Release.Name }}\n",
        ],
    )
    def test_are_told_as_such(self, text: str) -> None:
        (problem,) = problems(parse_manifests(text, "chart.yaml"))
        assert problem.startswith(f"chart.yaml: document 1: {self.UNRENDERED}")

    def test_once_for_a_file(self) -> None:
        manifests = parse_manifests(f"a: {{{{ b }}}}\n---\n{a_node_named('a')}---\nc: {{{{ d }}}}\n")
        assert len(manifests.problems) == 1
        assert names(manifests) == ["a"]

    def test_braces_in_quotes_are_no_templates(self) -> None:
        text = f"{a_node_named('a')}  annotations:\n    summary: '{{{{ $labels.node }}}}'\n"
        assert parse_manifests(text).nodes[0].annotations == {"summary": "{{ $labels.node }}"}


class TestJson:
    def test_one_after_another(self) -> None:
        text = json.dumps(node("a"), indent=2) + json.dumps(node("b")) + "\n" + json.dumps(node("c")) + "\n"
        assert names(parse_manifests(text)) == ["a", "b", "c"]

    def test_separated_like_yaml(self) -> None:
        document = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "%s"}}'
        manifests = parse_manifests(f"{document % 'a'}\n---\n{document % 'b'}\n")
        assert [namespace.name for namespace in manifests.of(Namespace)] == ["a", "b"]
        assert manifests.problems == ()

    def test_a_broken_line_does_not_hide_the_others(self) -> None:
        text = f"{json.dumps(node('a'))}\n{{broken\n{json.dumps(node('c'))}\n"
        manifests = parse_manifests(text, "nodes.json")
        assert names(manifests) == ["a", "c"]
        assert problems(manifests)[0].startswith("nodes.json: document 2: is not valid JSON: ")

    def test_broken_from_the_start(self) -> None:
        (problem,) = problems(parse_manifests('{"kind": "Pod"', "x.json"))
        assert problem.startswith("x.json: document 1: is not valid JSON: ")

    def test_nested_without_end(self) -> None:
        assert problems(parse_manifests('{"a":' * 100_000)) == [
            "document 1: is not valid JSON: line 1: nested too deeply, more than 100 levels"
        ]


class TestLists:
    def test_of_all_kinds(self) -> None:
        inner = {"apiVersion": "v1", "kind": "List", "items": [node("b")]}
        outer = {"apiVersion": "v1", "kind": "List", "items": [node("a"), inner]}
        assert names(parse_manifests(json.dumps(outer))) == ["a", "b"]

    def test_items_of_typed_lists_need_not_say_what_they_are(self) -> None:
        items = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "a"}}]}
        assert names(parse_manifests(json.dumps(items))) == ["a"]

    def test_problems_name_the_item(self) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": [node("a"), {"x": 1}, node("B")]}
        first, second = problems(parse_manifests(json.dumps(items)))
        assert (
            first
            == "document 1 (items[1]): kind: Required value: every object has to say its kind and apiVersion"
        )
        assert second.startswith('document 1 (Node B): metadata.name: Invalid value: "B"')

    def test_items_that_are_no_list(self) -> None:
        items = {"apiVersion": "v1", "kind": "PodList", "items": "none"}
        assert problems(parse_manifests(json.dumps(items))) == ["document 1 (PodList): items: must be a list"]


class TestWhatIsIgnored:
    def test_is_counted_by_kind(self) -> None:
        kinds = [
            ("v1", "ConfigMap"),
            ("v1", "ConfigMap"),
            ("networking.k8s.io/v1", "Ingress"),
            ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
        ]
        text = "".join(json.dumps({"apiVersion": version, "kind": kind}) for version, kind in kinds)
        manifests = parse_manifests(text)
        assert manifests.ignored == {
            "ConfigMap": 2,
            "Ingress": 1,
            "Kustomization.kustomize.config.k8s.io": 1,
        }
        assert not manifests.problems


class TestObjectsTogether:
    def test_duplicates_are_problems_and_the_first_is_kept(self) -> None:
        text = f"{a_node_named('a')}---\n{a_node_named('a')}"
        manifests = parse_manifests(text, "n.yaml")
        assert names(manifests) == ["a"]
        assert problems(manifests) == [
            (
                'n.yaml: document 2 (Node a): metadata.name: Duplicate value: "a": '
                "there is one in document 1 of n.yaml, which is kept"
            )
        ]
        assert "there is one in document 1, which is kept" in problems(parse_manifests(text))[0]

    def test_the_same_name_elsewhere_is_no_duplicate(self) -> None:
        other = {**POD, "metadata": {"name": "web", "namespace": "b"}}
        manifests = parse_manifests(json.dumps(POD) + json.dumps(other) + json.dumps(node("web")))
        assert not manifests.problems

    def test_generated_names_are_counted(self) -> None:
        pod = json.dumps({**POD, "metadata": {"generateName": "web-"}})
        assert names(parse_manifests(pod * 3)) == ["web-0", "web-1", "web-2"]

    def test_every_problem_is_one_error(self) -> None:
        pod = {**POD, "metadata": {"name": "A", "labels": {"b": "-"}}}
        found = parse_manifests(json.dumps(pod)).problems
        assert [problem.path for problem in found] == ["metadata.name", "metadata.labels"]

    def test_priorities_come_from_classes_that_come_later(self) -> None:
        pod = {**POD, "spec": {**POD["spec"], "priorityClassName": "high"}}
        cls = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 7,
        }
        assert parse_manifests(json.dumps(pod) + json.dumps(cls)).pods[0].priority == 7

    def test_objects_come_in_an_order_that_can_be_created(self) -> None:
        given = [
            POD,
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}},
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}},
            node("n"),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}},
        ]
        manifests = parse_manifests("".join(map(json.dumps, given)))
        assert names(manifests) == ["ns", "n", "s", "p", "web"]

    @given(clusters())
    def test_clusters_survive_being_written(self, cluster: DrawnCluster) -> None:
        given = [to_manifest(obj) for obj in (*cluster.nodes, *cluster.bound, *cluster.pending)]
        manifests = parse_manifests(json.dumps({"apiVersion": "v1", "kind": "List", "items": given}))
        assert manifests.nodes == cluster.nodes
        assert manifests.pods == (*cluster.bound, *cluster.pending)


class TestWhoeverTakesTheObjects:
    """… is told of what is missing among them."""

    def test_a_missing_file_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidManifestsError, match=r"missing\.yaml: can't be read: No such file"):
            read_manifests(tmp_path / "missing.yaml").objects()

    def test_so_is_a_directory_without_manifests(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidManifestsError, match="no manifest in this directory"):
            read_manifests(tmp_path).objects()

    def test_all_problems_are_in_one_error(self) -> None:
        loaded = parse_manifests(f"{a_node_named('A')}---\n{a_node_named('b')}---\nx", "n.yaml")
        with pytest.raises(InvalidManifestsError) as caught:
            loaded.objects()
        assert caught.value.problems == loaded.problems
        first, second = str(caught.value).splitlines()
        assert first.startswith("n.yaml: document 1 (Node A): metadata.name: ")
        assert second.startswith("n.yaml: document 3: must be an object")
        assert isinstance(caught.value, KschedfwError)

    def test_unless_he_can_do_without(self) -> None:
        loaded = parse_manifests(f"{a_node_named('A')}---\n{a_node_named('b')}")
        assert [obj.name for obj in loaded.objects(skip_invalid=True)] == ["b"]

    def test_what_is_right_is_no_error(self) -> None:
        assert [obj.name for obj in parse_manifests(a_node_named("a")).objects()] == ["a"]

    def test_objects_can_be_gone_through_twice(self) -> None:
        objects = parse_manifests(a_node_named("a")).objects()
        assert isinstance(objects, tuple)
        assert list(objects) == list(objects) != []


def quickly_dumped(document: object) -> str:
    """Return YAML as `yaml.safe_dump` writes it, which takes ten times as long without libyaml."""
    text: str = yaml.dump(document, Dumper=yaml.CSafeDumper)
    return text


@pytest.mark.slow
class TestLongLists:
    """They are read item by item, which nobody notices but for the memory that it takes."""

    KINDS: ClassVar[list[dict[str, Any]]] = [
        {"apiVersion": "v1", "kind": "List", "items": "…", "metadata": {}},
        {"apiVersion": "v1", "items": "…", "kind": "PodList"},
        {"kind": "PodList", "apiVersion": "v1", "items": "…"},
    ]

    @pytest.mark.parametrize("outer", KINDS)
    @pytest.mark.parametrize("write", [json.dumps, quickly_dumped])
    @pytest.mark.parametrize("number", [3, 500])
    def test_are_loaded(self, outer: dict[str, Any], write: Callable[[Any], str], number: int) -> None:
        padding = "x" * (300_000 // number)  # more than is read at a time: of three items each, of 500 all
        pods = [{**POD, "metadata": {"name": f"p{n}", "annotations": {"a": padding}}} for n in range(number)]
        if outer["kind"] == "PodList":
            for pod in pods[::2]:  # items of typed lists needn't say what they are
                del pod["kind"], pod["apiVersion"]
        loaded = parse_manifests(write({**outer, "items": pods}))
        assert loaded.problems == ()
        assert {pod.name for pod in loaded.pods} == {f"p{n}" for n in range(number)}

    @pytest.mark.parametrize("indent", [None, 4])
    def test_a_broken_item_is_told_with_its_line(self, indent: int | None) -> None:
        pods = [{**POD, "metadata": {"name": f"p{n}"}} for n in range(2_000)]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}, indent=indent)
        at = text.index('"p1900"')
        loaded = parse_manifests(f"{text[:at]}nothing{text[at:]}", "x")
        line = text.count("\n", 0, at) + 1
        assert problems(loaded) == [f"x: document 1: is not valid JSON: line {line}: Expecting value"]
        assert len(loaded.pods) == 1_900

    def test_how_far_it_is_read_is_told_early_and_often(self, tmp_path: Path) -> None:
        for name, write in (("a.json", json.dumps), ("b.yaml", quickly_dumped), ("c.json.gz", json.dumps)):
            pods = [{**POD, "metadata": {"name": f"{name[0]}{n}"}} for n in range(3000)]
            text = write({"apiVersion": "v1", "kind": "List", "items": pods})
            data = text.encode()
            (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        told: list[tuple[int, int]] = []
        read_manifests(tmp_path, progress=lambda done, total: told.append((done, total)))
        assert len(told) > 10
        assert told == sorted(told)
        assert told[0][0] < told[0][1] / 5
        assert told[-1][0] == told[-1][1]
        assert len({total for _, total in told}) == 1


class TestFilesOfOtherTools:
    SNAPSHOT: ClassVar[dict[str, Any]] = {
        "pods": [{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}],
        "nodes": [{"metadata": {"name": "n"}}],
        "pvs": [],
        "pvcs": None,
        "storageClasses": [{"metadata": {"name": "fast"}, "provisioner": "x"}],
        "priorityClasses": [{"metadata": {"name": "high"}, "value": 5}],
        "schedulerConfig": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
        },
        "namespaces": [{"metadata": {"name": "x"}}],
    }

    @pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
    def test_what_kube_scheduler_simulator_exports(self, write: Callable[[Any], str]) -> None:
        loaded = parse_manifests(write(self.SNAPSHOT))
        assert [obj.key for obj in loaded.objects()] == ["x", "high", "fast", "n", "default/p"]
        assert loaded.ignored == {"KubeSchedulerConfiguration": 1}

    def test_what_is_wrong_in_it_is_named(self) -> None:
        pods = [{"metadata": {"name": "P"}, "spec": {"containers": [{"name": "c"}]}}, 5]
        first, second, third = problems(
            parse_manifests(json.dumps({**self.SNAPSHOT, "pods": pods, "pvs": {}}))
        )
        assert first.startswith("document 1 (Pod P): metadata.name: ")
        assert second.startswith("document 1 (pods[1]): must be an object")
        assert third == "document 1: pvs: must be a list"

    def test_a_simkube_trace_is_told_as_such(self, tmp_path: Path) -> None:
        path = tmp_path / "trace"
        path.write_bytes(b"\x85\xa7version\x02\xa6config\x80")
        (problem,) = problems(read_manifests(path))
        assert "looks like a SimKube trace (MessagePack), which isn't read here" in problem
        trace = {"version": 2, "config": {}, "events": [], "index": {}, "pod_lifecycles": {}}
        (problem,) = problems(parse_manifests(json.dumps(trace)))
        assert "is a SimKube trace" in problem

    def test_kubectls_list_of_several_kinds(self) -> None:
        items = [node("n"), POD, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]
        kubectl = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
        loaded = parse_manifests(json.dumps(kubectl, indent=4))
        assert (names(loaded), loaded.ignored, loaded.problems) == (["n", "web"], {"ConfigMap": 1}, ())


class TestFiles:
    def test_directories_are_read_in_order_of_names(self, tmp_path: Path) -> None:
        (tmp_path / "b").mkdir()
        (tmp_path / "c.yaml").write_text(a_node_named("three"))
        (tmp_path / "b" / "x.yml").write_text(a_node_named("two"))
        (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps(node("one")).encode()))
        (tmp_path / "README.md").write_text("not a manifest")
        assert names(read_manifests(tmp_path)) == ["one", "two", "three"]

    def test_a_file_that_is_named_may_be_called_anything(self, tmp_path: Path) -> None:
        path = tmp_path / "dump.txt"
        path.write_text(a_node_named("a"), encoding="utf-8-sig")
        assert names(read_manifests(str(path))) == ["a"]

    def test_standard_input(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = f"{a_node_named('a')}---\nx".encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        manifests = read_manifests("-")
        assert names(manifests) == ["a"]
        assert problems(manifests)[0].startswith("standard input: document 2: ")

    def test_what_can_not_be_read_is_a_problem(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_bytes(b"\xff\xfe")
        (tmp_path / "b.yaml.gz").write_bytes(b"no gzip")
        (tmp_path / "c.yaml.gz").write_bytes(gzip.compress(b"x" * 100)[:-12])
        (tmp_path / "d.yaml").write_text(a_node_named("d"))
        manifests = read_manifests(tmp_path / "missing.yaml", tmp_path)
        assert names(manifests) == ["d"]
        missing, encoding, packed, cut = problems(manifests)
        assert missing == f"{tmp_path / 'missing.yaml'}: can't be read: No such file or directory"
        assert "is not UTF-8 text: " in encoding
        assert "can't be " in packed
        assert "can't be unpacked: " in cut


class TestNamespacesOfClusterScopedObjects:
    """Helm charts put `metadata.namespace` everywhere; the API server clears it where it means nothing."""

    @pytest.mark.parametrize(
        "kind", [kind for kind in KINDS.values() if not kind.namespaced], ids=lambda kind: kind.name
    )
    def test_the_namespace_is_cleared_with_a_warning(self, kind: Kind) -> None:
        plain = MINIMAL_OF_KIND.get(kind.name, {}) | {"apiVersion": kind.api_version, "kind": kind.name}
        texts = [
            json.dumps(plain | {"metadata": {"name": "a", **extra}}) for extra in ({}, {"namespace": "b"})
        ]
        expected, loaded = map(parse_manifests, texts)
        assert list(loaded.objects()) == list(expected.objects())
        assert not expected.warnings
        assert [str(warning) for warning in loaded.warnings] == [
            f'document 1 ({kind.name} b/a): metadata.namespace: "b" is ignored, since a {kind.name} is in no namespace'
        ]

    def test_the_namespace_is_no_part_of_the_name(self) -> None:
        given = [node("a"), node("a") | {"metadata": {"name": "a", "namespace": "b"}}]
        loaded = parse_manifests(yaml.safe_dump_all(given))
        (problem,) = problems(loaded)
        assert "metadata.name: Duplicate value" in problem

    def test_generated_names_are_numbered_across_namespaces(self) -> None:
        given = [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"generateName": "n-", "namespace": namespace}}
            for namespace in ("a", "b")
        ]
        assert names(parse_manifests(yaml.safe_dump_all(given))) == ["n-0", "n-1"]


class TestFieldsOfNewerClusters:
    """The API server that wrote a status may be newer than the fields that are known."""

    @pytest.mark.parametrize("count", [1, 60])
    def test_an_unknown_field_of_a_written_status_is_a_warning(self, count: int) -> None:
        dumped = node("a")
        dumped["metadata"]["uid"] = "1"
        dumped["status"] = {"capacity": {"cpu": "1"}, **{f"new{number}": {} for number in range(count)}}
        loaded = parse_manifests(json.dumps(dumped))
        assert names(loaded) == ["a"]
        assert not loaded.problems
        assert 'unknown field "status.new0"' in str(loaded.warnings[0])

    @pytest.mark.parametrize(("uid", "part"), [("", "status"), ("1", "spec")])
    def test_an_unknown_field_is_refused_in_a_spec_or_in_what_no_server_wrote(
        self, uid: str, part: str
    ) -> None:
        written = node("a")
        written["metadata"]["uid"] = uid
        written[part] = {"new": {}}
        (problem,) = problems(parse_manifests(json.dumps(written)))
        assert f'unknown field "{part}.new"' in problem
