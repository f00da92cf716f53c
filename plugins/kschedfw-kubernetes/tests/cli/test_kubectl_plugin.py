"""`kubectl kschedfw …` is the command, about the cluster that kubectl talks to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.cli.kubectl import with_current_context

from kschedfw.api.builders import make_node, make_pod
from kschedfw.testing.waiting import PATIENCE

KUBECTL = shutil.which("kubectl")
SCRIPTS = Path(sys.executable).parent
NO_KUBECTL = "NOT TESTED with a real client: there is no kubectl (Debian: kubernetes-client)"

Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Of a cluster with one node, which is too small for the pod that waits."""
    with ApiServer() as server:
        server.cluster.add(make_node("small").capacity(cpu="1", memory="1Gi", pods="10").build())
        server.cluster.add(make_pod("large").requests(cpu="2").build())
        yield server.kubeconfig(tmp_path / "kubeconfig")


@pytest.fixture
def kubectl(kubeconfig: Path, tmp_path: Path) -> Call:
    if KUBECTL is None:
        pytest.skip(NO_KUBECTL)
    paths = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", os.defpath)])
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "HOME": str(tmp_path), "PATH": paths}

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(KUBECTL), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False, timeout=PATIENCE
        )

    return call


@pytest.mark.slow
def test_kubectl_finds_the_plugin_which_answers_about_kubectls_cluster(kubectl: Call) -> None:
    assert str(SCRIPTS / "kubectl-kschedfw") in kubectl("plugin", "list").stdout
    done = kubectl("kschedfw", "pending")
    assert done.returncode == 1, done.stderr  # pods are pending
    assert "default/large" in done.stdout
    assert "Insufficient cpu" in done.stdout
    explained = kubectl("kschedfw", "explain", "large")
    assert explained.returncode in (0, 1), explained.stderr
    assert "0/1 nodes are available: 1 Insufficient cpu" in explained.stdout


@pytest.mark.slow
def test_kubectl_completes_subcommands_and_their_options(kubectl: Call) -> None:
    assert kubectl("__complete", "kschedfw", "pen").stdout.split() == ["pending", ":4"]
    assert "--context" in kubectl("__complete", "kschedfw", "pending", "--cont").stdout.split()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["pending"], ["pending", "--context", "test"]),
        (["explain", "web"], ["explain", "--context", "test", "web"]),
        (["pending", "--context=other"], ["pending", "--context=other"]),
        (["pending", "--kubeconfig", "file"], ["pending", "--kubeconfig", "file"]),
        (["plugins", "list"], ["plugins", "list"]),
        (["nonsense"], ["nonsense"]),
        (["--version"], ["--version"]),
        ([], []),
    ],
)
def test_the_current_context_is_given_to_commands_that_take_one_and_have_none(
    kubeconfig: Path, given: list[str], expected: list[str]
) -> None:
    assert with_current_context(given, {"KUBECONFIG": str(kubeconfig)}) == expected


def test_without_a_kubeconfig_the_command_itself_says_what_is_missing(tmp_path: Path) -> None:
    assert with_current_context(["pending"], {"HOME": str(tmp_path)}) == ["pending"]


@pytest.mark.slow
def test_a_kubeconfig_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("clusters: 3")
    done = subprocess.run(
        [SCRIPTS / "kubectl-kschedfw", "pending"],
        env=os.environ | {"KUBECONFIG": str(file)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert str(file) in done.stderr
    assert len(done.stderr.splitlines()) == 1
