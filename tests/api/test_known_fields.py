"""Field validation: what Kubernetes doesn't know is refused, and everything that it knows is not."""

from __future__ import annotations

import copy
import importlib.util
import json
import types
import zipfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, get_args, get_type_hints

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import read_manifests
from kschedfw.api import FieldValidation
from kschedfw.api.convert import json_name
from kschedfw.api.kinds import KINDS
from kschedfw.api.known_fields import FILE, unknown_fields
from kschedfw.api.manifests import Manifests, parse_manifests
from kschedfw.testing.strategies import Manifest, node_manifests, pod_manifests
from tests.steps import assert_linear


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": containers, **spec},
    }


def strict(*manifests: Manifest, field_validation: FieldValidation = FieldValidation.STRICT) -> Manifests:
    return parse_manifests("\n".join(map(json.dumps, manifests)), field_validation=field_validation)


def problems(*manifests: Manifest) -> list[str]:
    loaded = strict(*manifests)
    return [str(error) for problem in loaded.problems for error in problem.errors]


class TestMisspelt:
    @pytest.mark.parametrize(
        ("manifest", "path", "nearest"),
        [
            (pod(nodeSelctor={"a": "b"}), "spec.nodeSelctor", "nodeSelector"),
            (pod(topologySpreadConstraint=[]), "spec.topologySpreadConstraint", "topologySpreadConstraints"),
            (pod(nodename="n"), "spec.nodename", "nodeName"),
            (
                pod(containers=[{"name": "a"}, {"name": "b", "resources": {"request": {"cpu": "1"}}}]),
                "spec.containers[1].resources.request",
                "requests",
            ),
            (pod(affinity={"podAntiAfinity": {}}), "spec.affinity.podAntiAfinity", "podAntiAffinity"),
            (
                pod(tolerations=[{"key": "a", "operater": "Exists"}]),
                "spec.tolerations[0].operater",
                "operator",
            ),
            ({**pod(), "statuss": {}}, "statuss", "status"),
            (
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"alocatable": {}}},
                "status.alocatable",
                "allocatable",
            ),
        ],
    )
    def test_is_refused_with_its_path_and_the_nearest_known_one(
        self, manifest: Manifest, path: str, nearest: str
    ) -> None:
        loaded = strict(manifest)
        (problem,) = loaded.problems
        assert problem.errors[0].path == path
        assert str(problem.errors[0]) == (
            f'strict decoding error: unknown field "{path}"; did you mean "{nearest}"?'
        )
        assert list(loaded.objects(skip_invalid=True)) == []

    def test_inside_a_template_and_a_list(self) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {**pod()["spec"], "priorty": 1}}
        spec = {
            "selector": {"matchLabels": {"a": "b"}},
            "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"storageClass": "fast"}}],
        }
        workload = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
        assert problems({"apiVersion": "v1", "kind": "List", "items": [workload]}) == [
            'strict decoding error: unknown field "spec.template.spec.priorty"; did you mean "priority"?',
            (
                'strict decoding error: unknown field "spec.volumeClaimTemplates[0].spec.storageClass"; '
                'did you mean "storageClassName"?'
            ),
        ]

    def test_unknown_field_without_a_similar_name_gets_no_suggestion(self) -> None:
        assert problems(pod(foo=1)) == [
            'strict decoding error: unknown field "spec.foo"; PodSpec has nothing like it'
        ]

    def test_everything_else_that_is_wrong_is_told_too(self) -> None:
        assert problems(pod(foo=1, nodeName=7, priority=1 << 40)) == [
            'strict decoding error: unknown field "spec.foo"; PodSpec has nothing like it',
            "spec.nodeName: Invalid value: 7: must be a string: put it in quotes",
            f"spec.priority: Invalid value: {1 << 40}: must be an integer of 32 bits, from -2147483648 to 2147483647",
        ]
        assert len(problems(pod(foo=1, priorityClassName="_"))) == 2

    @pytest.mark.slow
    def test_thousands_are_counted_not_named(self) -> None:
        keys = {f"x{i}{'y' * (i % 3000)}": i for i in range(20_000)}
        assert_linear(
            lambda: problems(pod(**dict(islice(keys.items(), 10_000)))), lambda: problems(pod(**keys))
        )
        told = problems(pod(**keys))
        assert len(told) == 51
        assert told[-1] == "strict decoding error: 19950 unknown fields more"


class TestModes:
    typo = pod(nodeSelctor={"a": "b"})

    def test_a_warning_names_the_field_and_the_object_is_loaded(self) -> None:
        loaded = strict(self.typo, field_validation=FieldValidation.WARN)
        assert [pod.name for pod in loaded.pods] == ["web"]
        assert loaded.problems == ()
        assert [str(warning) for warning in loaded.warnings] == [
            'document 1 (Pod web): unknown field "spec.nodeSelctor"; did you mean "nodeSelector"?'
        ]

    def test_ignored_fields_leave_no_trace(self) -> None:
        loaded = strict(self.typo, field_validation=FieldValidation.IGNORE)
        assert (len(loaded.pods), loaded.problems, loaded.warnings) == (1, (), ())

    def test_strict_is_the_default_of_files(self, tmp_path: Path) -> None:
        path = tmp_path / "pod.json"
        path.write_text(json.dumps(self.typo))
        assert len(read_manifests(path).problems) == 1
        assert read_manifests(path, field_validation=FieldValidation.WARN).problems == ()


class TestKnown:
    def test_a_live_dump(self) -> None:
        """As `kubectl get -o json` gives it; with what servers add, and what anyone may put into maps."""
        manager = {
            "manager": "kubelet",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:nonsense": {}, "k:{}": {".": {}}}},
            "subresource": "status",
        }
        live = pod(
            nodeName="n",
            volumes=[
                {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
            ],
            securityContext={"seccompProfile": {"type": "RuntimeDefault"}},
            serviceAccount="default",
        )
        live["metadata"] |= {
            "uid": "1",
            "resourceVersion": "7",
            "generation": 2,
            "annotations": {"what.ever/it-is": "x"},
            "managedFields": [manager],
        }
        live["status"] = {
            "phase": "Running",
            "observedGeneration": 2,
            "podIPs": [{"ip": "10.0.0.1"}],
            "containerStatuses": [
                {
                    "name": "main",
                    "image": "app:1",
                    "imageID": "",
                    "ready": True,
                    "restartCount": 0,
                    "started": True,
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                    "volumeMounts": [{"name": "token", "mountPath": "/t", "recursiveReadOnly": "Disabled"}],
                }
            ],
        }
        assert problems(live) == []

    def test_fields_of_older_api_versions_are_accepted(self) -> None:
        old = {
            "apiVersion": "extensions/v1beta1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent", "clusterName": "", "selfLink": "/apis", "initializers": None},
            "spec": {
                "templateGeneration": 1,
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a"}]}},
            },
        }
        assert problems(old) == []

    def test_kinds_that_are_not_modelled_have_any_fields(self) -> None:
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dta": {}}
        custom = {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "a"}, "spce": {}}
        assert problems(config, custom) == []

    def test_all_that_this_package_reads(self) -> None:
        """The table has every field of every class, at its place."""
        for name, kind in KINDS.items():
            for path in _paths(kind.cls):
                manifest: Any = None
                for key in reversed(path):
                    manifest = {key: manifest} if key != "[]" else [manifest]
                assert unknown_fields(manifest, name) == () or path[-2:] in SHARED, path

    @given(
        pod_manifests().map(lambda manifest: ("Pod", manifest)) | node_manifests().map(lambda m: ("Node", m))
    )
    def test_valid_objects_have_none(self, case: tuple[str, Manifest]) -> None:
        kind, manifest = case
        assert unknown_fields(manifest, kind) == ()

    @given(pod_manifests(), st.data())
    def test_a_field_that_is_nowhere_is_found_wherever_it_is(
        self, manifest: Manifest, data: st.DataObject
    ) -> None:
        manifest = copy.deepcopy(manifest)
        path, place = data.draw(st.sampled_from(list(_objects(manifest))))
        place["nowhere"] = {"x": 1}
        (error,) = unknown_fields(manifest, "Pod")
        assert error.path == f"{path}nowhere"


SHARED = {("azureFile", "secretNamespace"), ("csi", "volumeHandle"), ("spec", "replicas")}
"""Of classes that stand for two types: sources of a pod's volumes and of persistent ones, all workloads' specs."""

MAPS = {"labels", "annotations", "requests", "limits", "nodeSelector", "matchLabels", "overhead"}
"""What has keys of its own, not fields."""


def _objects(value: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, content in value.items():
            if key in MAPS:
                continue
            if isinstance(content, list):
                for index, item in enumerate(content):
                    yield from _objects(item, f"{path}{key}[{index}].")
            else:
                yield from _objects(content, f"{path}{key}.")


def _paths(cls: type[Any], seen: tuple[type[Any], ...] = ()) -> Iterator[tuple[str, ...]]:
    """The way to every field of a class and the classes inside; `[]` for the items of a list."""
    hints = get_type_hints(cls, localns={"PodRequests": Any})
    for field in attrs.fields(cls):
        if not field.init or field.name.startswith("_"):
            continue
        key = json_name(field)
        yield (key,)
        for inner, is_list in _classes(hints[field.name]):
            if inner not in seen:
                for path in _paths(inner, (*seen, cls)):
                    yield (key, "[]", *path) if is_list else (key, *path)


def _classes(hint: Any, is_list: bool = False) -> Iterator[tuple[type[Any], bool]]:
    if isinstance(hint, type) and attrs.has(hint):
        yield hint, is_list
    for inner in get_args(hint):
        yield from _classes(inner, is_list or getattr(hint, "__origin__", None) is tuple)


class TestTable:
    def script(self) -> types.ModuleType:
        path = Path(__file__).parents[2] / ".ci" / "known_fields.py"
        spec = importlib.util.spec_from_file_location("known_fields_script", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def wheel(self, directory: Path, minor: int, **modules: str) -> Path:
        path = directory / f"lightkube_models-1.{minor}.0.8-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, source in modules.items():
                archive.writestr(f"lightkube/models/{name}.py", source)
        return path

    def test_it_is_the_union_over_all_versions_of_what_kinds_are_made_of(self, tmp_path: Path) -> None:
        node = "class Node:\n    kind: 'str'\n    metadata: 'Optional[meta_v1.ObjectMeta]' = None\n"
        meta = "class ObjectMeta:\n    name: 'Optional[str]' = None\n"
        old = self.wheel(
            tmp_path,
            9,
            core_v1=node,
            meta_v1=meta + "    gone: 'Optional[List[Gone]]' = None\nclass Gone:\n    a: 'str'\n",
        )
        continued = '    continue_: \'Optional[str]\' = field(metadata={"json": "continue"}, default=None)\n'
        unused = "class Unused:\n    a: 'str'\n"
        new = self.wheel(tmp_path, 10, core_v1=node + "    spec: 'dict'\n" + unused, meta_v1=meta + continued)
        header, *table = self.script().table([new, old]).splitlines()[1:]
        assert header == "# 1.9, 1.10."
        assert table[1:] == [
            "Gone a",
            "Node kind metadata:ObjectMeta spec",
            "ObjectMeta continue gone:Gone name",
        ]

    def test_parts_with_the_name_of_a_kind_are_left_out_and_members_of_unions_have_no_fields(
        self, tmp_path: Path
    ) -> None:
        part = "class PodGroup:\n    policy: 'str'\n"
        group = "class PodGroup:\n    kind: 'str'\n    policy: 'BasicSchedulingPolicy'\n"
        old = self.wheel(tmp_path, 35, scheduling_v1alpha1=part)
        new = self.wheel(tmp_path, 36, scheduling_v1beta1="BasicSchedulingPolicy = Dict\n" + group)
        table = self.script().table([old, new]).splitlines()[3:]
        assert table == ["BasicSchedulingPolicy", "PodGroup kind policy:BasicSchedulingPolicy"]

    def test_it_has_every_kind_and_no_type_that_is_missing(self) -> None:
        lines = [line.split() for line in FILE.read_text().splitlines() if not line.startswith("#")]
        names = [name for name, *_ in lines]
        assert names == sorted(set(names))
        assert set(KINDS) <= set(names)
        assert {field.partition(":")[2] for _, *fields in lines for field in fields} - {""} <= set(names)
