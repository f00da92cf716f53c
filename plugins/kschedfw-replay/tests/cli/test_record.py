"""`kschedfw record`, from its options to its ends."""

from __future__ import annotations

import itertools
import json
import signal
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from kschedfw_apiserver import ApiServer, User
from kschedfw_apiserver.control_plane import ControlPlane, needs_control_plane
from kschedfw_apiserver.forked import ForkedProcess, running_forked
from kschedfw_kubernetes import connect
from kschedfw_replay import Gap, RecordedChange, RecordingError, State, open_recording
from recording.clusters import new_pod, with_a_node
from recording.histories import folded

from kschedfw.cli.app import run
from kschedfw.testing.waiting import PATIENCE, eventually


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(with_a_node()) as server:
        yield server


def names(out: Path) -> list[str]:
    """The names of the pods of each record, in order; as far as the recording goes by now."""
    found: list[Any] = []
    try:
        for record in open_recording(out):
            found += record.manifests if isinstance(record, State) else []
            found += [record.manifest] if isinstance(record, RecordedChange) else []
    except RecordingError:
        return []  # it isn't there yet
    return [each["metadata"]["name"] for each in found if each["kind"] == "Pod"]


def recorder(out: Path, kubeconfig: Path, *options: str) -> AbstractContextManager[ForkedProcess]:
    command = ["record", "--out", str(out), "--kubeconfig", str(kubeconfig), *options]
    return running_forked("-m", "kschedfw", *command)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_recording_with_a_summary(
    server: ApiServer, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "recording"
    server.cluster.add(new_pod("before"))
    with recorder(out, server.kubeconfig(tmp_path / "kubeconfig"), "--json") as process:
        eventually(lambda: names(out) == ["before"])
        server.cluster.add(new_pod("after"))
        eventually(lambda: names(out) == ["before", "after"])
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert f"{out}: 1 change in " in errors
    line = json.loads(output.splitlines()[-1])
    assert (line["changes"], line["gaps"], line["errors"], line["ended"]) == (1, 0, {}, True)
    recording = open_recording(out)
    assert len(list(recording)) == 2
    assert not recording.unfinished


@pytest.mark.slow
def test_a_recorder_that_was_killed_goes_on_after_a_gap(server: ApiServer, tmp_path: Path) -> None:
    out, kubeconfig = tmp_path / "recording", server.kubeconfig(tmp_path / "kubeconfig")
    with recorder(out, kubeconfig) as process:
        eventually(lambda: open_or_none(out))
        server.cluster.add(new_pod("seen"))
        eventually(lambda: names(out) == ["seen"])
        process.kill()
    server.cluster.add(new_pod("unseen"))
    assert run(["record", "--out", str(out), "--kubeconfig", str(kubeconfig), "--for", "1s"]) == 0
    first, seen, gap, state = open_recording(out)
    assert isinstance(first, State)
    assert isinstance(seen, RecordedChange)
    assert isinstance(gap, Gap)
    assert isinstance(state, State)
    assert (gap.since, gap.until, gap.reason) == (seen.at, state.at, "the recorder wasn't running")
    assert names(out)[-2:] == ["seen", "unseen"]


def open_or_none(out: Path) -> object:
    try:
        return list(open_recording(out))
    except RecordingError:
        return None


@pytest.mark.slow
def test_pseudonyms_are_the_same_in_a_second_run_and_the_secret_stays_beside_the_recording(
    server: ApiServer, tmp_path: Path
) -> None:
    out, kubeconfig = tmp_path / "recording", server.kubeconfig(tmp_path / "kubeconfig")
    server.cluster.add(new_pod("acme"))
    command = ["record", "--out", str(out), "--kubeconfig", str(kubeconfig), "--for", "0.1s", "--anonymize"]
    assert run(command) == 0
    assert run(command) == 0
    first, second = names(out)
    assert first == second != "acme"
    assert open_recording(out).anonymized
    assert not open_recording(out).cluster
    secret = tmp_path / "recording.secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    secret.write_text("x")
    assert run(command) == 2


RBAC = "rbac.authorization.k8s.io/v1"
RIGHTS = {
    "clusterroles": {
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]}],
    },
    "clusterrolebindings": {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
    },
}


def test_what_may_not_be_listed_is_told_and_the_rest_is_recorded(
    server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kschedfw_replay.recording.recorder._OTHERS_SECONDS", 0.0)
    with connect(server.kubeconfig(tmp_path / "kubeconfig"), qps=-1) as administrator:
        for plural, manifest in RIGHTS.items():
            administrator.write("POST", f"/apis/{RBAC}/{plural}", manifest)
    server.add_user("token", User("reader"))
    kubeconfig = server.kubeconfig(tmp_path / "kubeconfig", token="token")
    out = tmp_path / "recording"
    assert run(["record", "--out", str(out), "--kubeconfig", str(kubeconfig), "--for", "0.1s"]) == 0
    assert "warning: services can't be listed: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "Missing option '--out'"),
        (["--out", "r", "--kubeconfig", "none"], "none: can't be read"),
        (["--out", "r", "--retain", "7d"], "'7d' is no duration such as 15m or 168h"),
        (["--out", "r", "--for", "0s"], "'0s' is no duration"),
        (["--out", "r", "--segment-size", "many"], "'many' is no size such as 256Mi or 20Gi"),
        (["--out", "r", "--custom-kind", "PodGroup"], "--custom-kind PodGroup: expected GROUP/VERSION/KIND"),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(
    options: list[str],
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["record", *options]) == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_is_named(
    server: ApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "file"
    out.write_text("")
    kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
    assert run(["record", "--out", str(out), "--kubeconfig", str(kubeconfig)]) == 2
    assert f"{out}: can't be written" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("_", [pytest.param("", marks=needs_control_plane)])
def test_a_real_server_is_recorded_over_its_restart(
    _: str, real_server: ControlPlane, tmp_path: Path
) -> None:
    out, kubeconfig = tmp_path / "recording", real_server.kubeconfig(tmp_path / "kubeconfig")
    pods = "/api/v1/namespaces/default/pods"
    with real_server.client() as client, recorder(out, kubeconfig) as process:

        def make(name: str) -> None:
            spec = {
                "containers": [{"name": "c", "image": "i", "env": [{"name": "TOKEN", "value": "secret"}]}]
            }
            client.post(pods, json={"metadata": {"name": name}, "spec": spec}).raise_for_status()

        try:
            eventually(lambda: open_or_none(out))
            make("first")
            eventually(lambda: names(out)[-1:] == ["first"])
            real_server.restart("kube-apiserver")
            make("second")
            eventually(lambda: "second" in names(out))
            target = {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}
            binding = {"metadata": {"name": "second"}, "target": target}
            client.post(f"{pods}/second/binding", json=binding).raise_for_status()
            eventually(lambda: folded(open_recording(out))["second"]["spec"].get("nodeName") == "nowhere")
            process.terminate()
            _, errors = process.communicate(timeout=PATIENCE)
        finally:
            real_server.clear()
    assert process.returncode == 0, errors
    records = list(open_recording(out))
    assert "secret" not in str(records)
    assert all(before_gap_is_followed_by_a_state(records))


def before_gap_is_followed_by_a_state(records: list[Any]) -> Iterator[bool]:
    for record, following in itertools.pairwise(records):
        yield isinstance(following, State) is isinstance(record, Gap)
