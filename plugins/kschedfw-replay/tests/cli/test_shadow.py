"""`kschedfw shadow`, from its options to its ends."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from kschedfw_apiserver import ApiServer, User
from kschedfw_apiserver.forked import ForkedProcess, running_forked
from kschedfw_kubernetes import connect
from kschedfw_replay.shadow.decision import Agreement, Cause, Comparison, Recorded
from kschedfw_replay.shadow.output import summary
from kschedfw_replay.shadow.tally import Tally
from rich.console import Console

from kschedfw import InMemoryCluster, Scheduler, make_node, make_pod
from kschedfw.cli.app import run
from kschedfw.scheduler import FirstByNameSelector
from kschedfw.testing.waiting import PATIENCE

RBAC = "rbac.authorization.k8s.io/v1"
RIGHTS: dict[str, dict[str, Any]] = {
    "clusterroles": {
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    },
    "clusterrolebindings": {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}],
    },
}
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}
"""

DECISIONS = "kschedfw_shadow_decisions_total"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    nodes = [make_node(name).capacity(cpu=8, memory="16Gi", pods=20).build() for name in ("a", "b")]
    with ApiServer(InMemoryCluster(nodes)) as server:
        yield server


@pytest.fixture
def reader(server: ApiServer, tmp_path: Path) -> Path:
    """The kubeconfig of a user who may read, and nothing else."""
    with connect(server.kubeconfig(tmp_path / "admin"), qps=-1) as administrator:
        for plural, manifest in RIGHTS.items():
            administrator.write("POST", f"/apis/{RBAC}/{plural}", manifest)
    server.add_user("token", User("reader"))
    return server.kubeconfig(tmp_path / "reader", token="token")


def shadow(kubeconfig: Path, *options: str) -> AbstractContextManager[ForkedProcess]:
    command = ["shadow", "--kubeconfig", str(kubeconfig), "--port", "0", *options]
    return running_forked("-m", "kschedfw", *command)


def address(process: ForkedProcess) -> str:
    """Where the metrics are; told once the shadow has begun."""
    assert process.stderr is not None
    line = process.stderr.readline()
    assert "metrics at " in line, line + process.stderr.read()
    return line.split("metrics at ")[1].strip()


def schedule(server: ApiServer, count: int, url: str) -> None:
    """Let a scheduler of the server's decide on so many pods, each when the shadow has told of the one before."""
    with_names = Scheduler(server.cluster, selector=FirstByNameSelector())
    for number in range(count):
        until(url, DECISIONS, number)
        server.cluster.add(make_pod(f"p{number}").requests(cpu=1).build())
        with_names.run_until_idle()
    with_names.close()


def metric(url: str, name: str) -> float:
    """The sum of a metric's samples."""
    lines = httpx2.get(url, trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def until_listed(url: str) -> None:
    """Wait until the shadow follows the cluster: before, it doesn't know how far behind it is."""
    until(url, "kschedfw_shadow_backlog_seconds", 0.0)


def until(url: str, name: str, value: float) -> None:
    """Wait until a metric has a value."""
    while metric(url, name) != value:
        threading.Event().wait(0.05)


@pytest.mark.slow
def test_a_reader_s_shadow_tells_each_decision_and_writes_nothing(server: ApiServer, reader: Path) -> None:
    with shadow(reader, "--json") as process:
        url = address(process)
        until_listed(url)
        schedule(server, 3, url)
        until(url, DECISIONS, 3)
        assert metric(url, "kschedfw_shadow_decision_duration_seconds_count") == 3
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    *lines, last = map(json.loads, output.splitlines())
    assert [(each["pod"], each["agreement"]) for each in lines if each["agreement"] != "tied"] == [
        (f"default/p{number}", "same") for number in range(3) if lines[number]["agreement"] != "tied"
    ]
    assert (last["summary"]["decisions"], last["summary"]["agreement"]) == (3, 1.0)
    assert "403" not in errors


@pytest.mark.slow
def test_another_configuration_is_told_and_a_condition_fails(
    server: ApiServer, reader: Path, tmp_path: Path
) -> None:
    config = tmp_path / "packing.yaml"
    config.write_text(PACKING)
    with shadow(reader, "--config", str(config), "--fail-on", "better", "--decisions", "2") as process:
        url = address(process)
        until_listed(url)
        schedule(server, 2, url)
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, errors
    assert "better (unknown)  default/p1: cluster b, shadow a by 13 points" in output
    assert "2 decisions beside the cluster's scheduler, 50.00% agree" in output
    assert "--fail-on better: better is 1 of 2 decisions (50.00%)" in errors


@pytest.mark.slow
def test_a_condition_on_nothing_is_told(reader: Path) -> None:
    with shadow(reader, "--fail-on", "agreement < 99%", "--for", "1s") as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "--fail-on: nothing was compared, as there was no decision" in errors


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--fail-on", "agreemnet < 99%"], "there is no metric 'agreemnet'"),
        (["--for", "soon"], "'soon' is no duration such as 90s or 1h30m"),
        (["--kubeconfig", "none"], "none: can't be read"),
        (["--config", "none.yaml"], "none.yaml"),
    ],
)
def test_wrong_options_are_refused(
    options: list[str],
    why: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["shadow", *options]) == 2
    assert why in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_table_fits_the_terminal(width: int) -> None:
    tally = Tally()
    node = "ip-10-0-123-45.eu-central-1.compute.internal"
    for agreement in Agreement:
        recorded = Recorded(make_pod("a-pod-with-a-long-name-7f9c8d6b5-x2v4q").build(), node=node)
        cause = None if agreement.agrees else Cause.RACE
        reason = "node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }"
        tally.add(Comparison(recorded, agreement, node, reason=reason, plugin="TaintToleration", cause=cause))
    console = Console(width=width, file=None, record=True, quiet=False)
    with console.capture() as capture:
        console.print(summary(tally, backlog=3.0))
    text = capture.get()
    assert max(map(len, text.splitlines())) <= width
    assert "3 s behind" in " ".join(text.split())
    for agreement in Agreement:
        assert str(agreement) in text
