"""Commands that take a live cluster."""

from __future__ import annotations

import gzip
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from explore.processes import explored
from kschedfw_apiserver import ApiServer

from kschedfw.api import parse_manifests, read_manifests
from kschedfw.cli.app import run

OBJECTS = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"machine-{number}", "labels": {"rack": f"r{number % 2}"}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    for number in range(4)
] + [
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"job-{number}", "creationTimestamp": f"2026-01-01T00:00:{number:02}Z"},
        "spec": {
            "nodeSelector": {"rack": f"r{number % 2}"},
            "containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{1 + number % 3}"}}}
            ],
        },
    }
    for number in range(12)
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    path = tmp_path / "files.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    return path


@pytest.fixture
def kubeconfig(files: Path, tmp_path: Path) -> Iterator[Path]:
    """Of a cluster with the files' objects in it, to which commands have written nothing in the end."""
    with ApiServer() as server:
        for obj in read_manifests(files).objects():
            server.cluster.add(obj)
        yield server.kubeconfig(tmp_path / "kubeconfig")
        # `get` asks for the kinds of plugins, which other tests may have defined.
        assert {each.verb for each in server.audit.events} <= {"get", "list"}


def printed(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert run([str(arg) for arg in args]) in (0, 1)
    return capsys.readouterr().out


def test_a_live_cluster_is_simulated_as_its_files_are(
    kubeconfig: Path, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live = json.loads(printed(capsys, "simulate", "--kubeconfig", kubeconfig, "--json"))
    from_files = json.loads(printed(capsys, "simulate", files, "--json"))
    assert [(each["pod"], each["node"]) for each in live["decisions"]] == [
        (each["pod"], each["node"]) for each in from_files["decisions"]
    ]
    assert {each["outcome"] for each in live["decisions"]} == {"placed", "unschedulable"}
    assert f"read from {kubeconfig}, context test" in live["notes"]


def test_configurations_are_compared_on_a_live_cluster(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles = ("--profile", "default", "--profile", "ClusterAutoscalerProvider")
    args = ("compare", "--kubeconfig", kubeconfig, *profiles, "--json")
    assert "read from" in printed(capsys, *args)


def test_what_was_dumped_is_simulated_as_the_cluster(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.json.gz"
    assert run(["dump", str(dump), "--kubeconfig", str(kubeconfig)]) == 0
    assert "objects of" in capsys.readouterr().err
    live = json.loads(printed(capsys, "simulate", "--kubeconfig", kubeconfig, "--json"))
    dumped = json.loads(printed(capsys, "simulate", dump, "--json"))
    assert live["decisions"] == dumped["decisions"]
    anonymous = tmp_path / "anonymous.json.gz"
    assert run(["dump", str(anonymous), "--kubeconfig", str(kubeconfig), "--anonymize"]) == 0
    renamed = json.loads(printed(capsys, "simulate", anonymous, "--json"))
    assert [each["outcome"] for each in renamed["decisions"]] == [
        each["outcome"] for each in live["decisions"]
    ]
    with gzip.open(anonymous, "rt") as file:
        names = {item["metadata"]["name"] for item in json.load(file)["items"] if item["kind"] == "Node"}
    assert all(name.startswith("node-") for name in names)


def test_a_pending_pod_of_a_live_cluster_is_explained(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = tmp_path / "extra.yaml"
    extra.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: huge}\n"
        "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1M}}}]}\n"
    )
    args = ("explain", "--context", "test", "--kubeconfig", kubeconfig, extra, "huge")
    assert "Insufficient cpu" in printed(capsys, *args)
    assert run(["explain", "--kubeconfig", str(kubeconfig), "--namespace", "none", "huge"]) == 2
    assert "there is none of this name" in capsys.readouterr().err


def test_an_object_of_a_file_that_the_live_cluster_has_is_named_with_its_place(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extra = tmp_path / "extra.yaml"
    extra.write_text("{apiVersion: v1, kind: Namespace, metadata: {name: default}}\n")
    args = ["simulate", str(extra), "--kubeconfig", str(kubeconfig)]
    assert run(args) == 2
    why = 'metadata.name: Duplicate value: "default": there is one in the cluster, which is kept'
    assert f"{extra}: document 1 (Namespace default): {why}" in capsys.readouterr().err
    assert run([*args, "--skip-invalid"]) == 0


def test_files_on_top_of_a_live_cluster_are_admitted_under_its_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bounds = """
        {apiVersion: v1, kind: LimitRange, metadata: {name: bounds}, spec: {limits: [{type: Container, max: {cpu: 1}}]}}
    """
    extra = tmp_path / "extra.yaml"
    extra.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: huge}\n"
        "spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 2}}}]}\n"
    )
    with ApiServer() as server:
        for obj in parse_manifests(bounds).objects():
            server.cluster.add(obj)
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        report = json.loads(printed(capsys, "simulate", "--kubeconfig", kubeconfig, extra, "--json"))
    message = 'pods "huge" is forbidden: maximum cpu usage per Container is 1, but limit is 2'
    assert report["refused"] == [{"pod": "default/huge", "message": message}]
    assert f"not created: {message}" in report["notes"]


def test_what_if_is_asked_about_a_live_cluster(
    kubeconfig: Path, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answers are those about its files."""
    group = tmp_path / "group.yaml"
    group.write_text("{name: g, template: {status: {allocatable: {cpu: 8, memory: 8Gi, pods: 10}}}}")
    for command, options in (
        ("pending", ("--json",)),
        ("fit", ("--cpu", "500m", "--json")),
        ("scale-up", ("--node-group", group, "--json")),
    ):
        live = json.loads(printed(capsys, command, "--kubeconfig", kubeconfig, *options))
        from_files = json.loads(printed(capsys, command, files, *options))
        assert live.pop("notes")[0] == f"read from {kubeconfig}, context test"
        del from_files["notes"]
        assert live == from_files
    live = json.loads(
        printed(capsys, "drain", "--context", "test", "--kubeconfig", kubeconfig, "machine-1", "--json")
    )
    from_files = json.loads(printed(capsys, "drain", files, "machine-1", "--json"))
    assert live["steps"]
    assert live["steps"] == from_files["steps"]


@pytest.mark.slow
def test_a_live_cluster_is_explored_as_its_files_are(kubeconfig: Path, files: Path) -> None:
    with explored("--kubeconfig", kubeconfig) as live, explored(files) as from_files:
        assert json.loads(live.read("api/state")) == json.loads(from_files.read("api/state"))


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["simulate"], "give files, or a live one with --context or --kubeconfig"),
        (["simulate", "--namespace", "a"], "say which with --context or --kubeconfig"),
        (["explain", "pod"], "CLUSTER... POD, --context NAME POD, or --from FILE POD"),
        (["simulate", "--kubeconfig", "none"], "none: can't be read"),
        (["dump", "file.txt", "--kubeconfig", "none"], "file.txt: the file must end in .json or .json.gz"),
        (["dump", "-", "--custom-kind", "PodGroup"], "expected GROUP/VERSION/KIND"),
    ],
)
def test_what_is_missing_is_said(args: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(args) == 2
    assert why in capsys.readouterr().err


SECRET = "for nobody else"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
WITH_SECRETS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n",
            "annotations": {"a.b/note": SECRET, "kschedfw/price": "3", SCALE_DOWN_DISABLED: "true"},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "azureFile": {"shareName": "s", "secretName": SECRET, "secretNamespace": SECRET},
        },
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "d"},
        "spec": {"config": [{"opaque": {"driver": "a.b", "parameters": {"key": SECRET}}}]},
    },
    *(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": "c"},
            "spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec,
        }
        for kind in ("ResourceClaim", "ResourceClaimTemplate")
        for spec in [
            {
                "devices": {
                    "requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}],
                    "config": [{"opaque": {"driver": "a.b", "parameters": {"key": SECRET}}}],
                }
            }
        ]
    ),
    {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}, "annotations": {"a.b/note": SECRET}},
                "spec": {"containers": [{"name": "c"}]},
            },
        },
    },
]


def dumped_secrets(tmp_path: Path, dump: Path, *options: str) -> str:
    """The text of a dump of a cluster whose objects have what nobody else is to see."""
    loaded = parse_manifests(json.dumps({"apiVersion": "v1", "kind": "List", "items": WITH_SECRETS}))
    assert len(list(loaded.objects())) == len(WITH_SECRETS)
    with ApiServer() as server:
        for obj in loaded.objects():
            server.cluster.add(obj)
        args = ["dump", str(dump), "--kubeconfig", str(server.kubeconfig(tmp_path / "kubeconfig"))]
        assert run([*args, *options]) == 0
    return dump.read_text()


def test_a_dump_that_can_not_be_written_names_the_file_that_was_asked_for(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "none" / "dump.json"
    assert run(["dump", str(dump), "--kubeconfig", str(kubeconfig)]) == 2
    told = f"kschedfw: {dump}: can't be written in {dump.parent}: No such file or directory"
    assert told in capsys.readouterr().err.splitlines()


def test_a_dump_has_nothing_that_scheduling_does_not_read(tmp_path: Path) -> None:
    text = dumped_secrets(tmp_path, tmp_path / "dump.json")
    assert SECRET not in text
    assert '"kschedfw/price":"3"' in text
    assert f'"{SCALE_DOWN_DISABLED}":"true"' in text
    assert not read_manifests(tmp_path / "dump.json").problems


def test_a_dump_keeps_an_annotation_that_is_asked_for(tmp_path: Path) -> None:
    text = dumped_secrets(tmp_path, tmp_path / "dump.json", "--annotation", "a.b/note")
    assert text.count(SECRET) == 1


def test_only_the_owner_may_read_a_dump_even_if_it_was_open_to_all_before(tmp_path: Path) -> None:
    link, dump = tmp_path / "link.json", tmp_path / "dump.json"
    dump.write_text("before")
    dump.chmod(0o644)
    link.symlink_to(dump)
    dumped_secrets(tmp_path, link)
    assert stat.S_IMODE(dump.stat().st_mode) == 0o600
    assert link.is_symlink()


def test_a_dump_that_fails_leaves_the_older_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text("before")
    monkeypatch.setattr("kschedfw_kubernetes.cli.dump.to_manifest", lambda obj: {"no": {"json"}})
    with pytest.raises(AssertionError):
        dumped_secrets(tmp_path, dump)
    assert dump.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.json", "kubeconfig"]
