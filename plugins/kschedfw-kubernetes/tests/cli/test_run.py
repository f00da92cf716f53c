"""`kschedfw run`: its flags, and what is wrong with them. What runs: see tests/serve."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kschedfw.api import how_to_install
from kschedfw.cli.app import run
from kschedfw.config import load_configuration


def complaint(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 2) -> str:
    """What standard error says."""
    assert run(["run", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def effective(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[Any, str]:
    """The configuration that takes effect, and what standard error says."""
    assert run(["run", *map(str, arguments), "--write-config-to", "-"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


@pytest.mark.slow
def test_starting_without_endpoints_imports_nothing_of_them_simulations_devices_and_shared_clusters() -> None:
    code = """
import os, sys
from kschedfw_kubernetes.serve.process import SchedulerProcess
unneeded = (
    *("kschedfw.simulator", "kschedfw.explain", "kschedfw_devices.cel.", "kschedfw_kubernetes.cluster.claim"),
    *("asyncio", "cryptography", "uvicorn"),
)
def follow(self):
    print([name for name in sys.modules if name.startswith(unneeded) and name != "kschedfw_devices.cel.budget"])
    sys.stdout.flush()
    os._exit(0)
SchedulerProcess._follow = follow
from kschedfw.cli.app import run
run(["run", "--secure-port=0", "--leader-elect=false", "--master=http://127.0.0.1:1"])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "scheduler.json"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"resourceName": "mine"},
                "clientConnection": {"kubeconfig": "/missing/kubeconfig", "qps": 5000},
            }
        )
    )
    return file


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shared-state", "--shared-state-share=3/3"), "'3/3' is no share"),
        (("--shared-state", "--leader-elect=true"), "either several schedule, or one leader"),
        (
            ("--shared-state-share", "0/2"),
            "--shared-state-share and --shared-state-namespace need --shared-state",
        ),
    ],
)
def test_flags_of_several_schedulers_that_do_not_go_together(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    assert said in complaint(capsys, *options)


class TestFlags:
    def test_without_a_configuration_they_say_it_all(self, capsys: pytest.CaptureFixture[str]) -> None:
        written, said = effective(
            capsys,
            "--leader-elect=false",
            "--leader-elect-lease-duration=1m",
            "--leader-elect-resource-name",
            "mine",
            "--kubeconfig=/etc/kubeconfig",
            "--kube-api-qps=5000",
            "--kube-api-burst=6000",
            "-v=2",
        )
        assert said == ""
        assert written["leaderElection"] == {
            "leaderElect": False,
            "leaseDuration": "1m0s",
            "renewDeadline": "10s",
            "retryPeriod": "2s",
            "resourceLock": "leases",
            "resourceName": "mine",
            "resourceNamespace": "kube-system",
        }
        connection = written["clientConnection"]
        assert (connection["kubeconfig"], connection["qps"], connection["burst"]) == (
            "/etc/kubeconfig",
            5000,
            6000,
        )

    def test_a_boolean_may_stand_alone_as_in_go(self, capsys: pytest.CaptureFixture[str]) -> None:
        for flags in (["--leader-elect", "--v", "2"], ["--leader-elect", "true"], ["--leader-elect=t"]):
            written, _ = effective(capsys, *flags)
            assert written["leaderElection"]["leaderElect"] is True
        written, _ = effective(capsys, "--leader-elect", "false", "--profiling")
        assert written["leaderElection"]["leaderElect"] is False

    def test_with_a_configuration_only_those_of_leader_election_count(
        self, capsys: pytest.CaptureFixture[str], config: Path
    ) -> None:
        flags = ("--kubeconfig=other", "--kube-api-qps=1", "--leader-elect-retry-period=1s")
        written, said = effective(capsys, f"--config={config}", *flags)
        assert said == (
            "kschedfw: warning: --kubeconfig, --kube-api-qps: passed over, since there is a --config\n"
        )
        assert written["clientConnection"]["kubeconfig"] == "/missing/kubeconfig"
        assert written["clientConnection"]["qps"] == 5000
        assert written["leaderElection"]["resourceName"] == "mine"
        assert written["leaderElection"]["retryPeriod"] == "1s"

    def test_what_is_written_is_for_its_owner_and_loads_again(self, tmp_path: Path, config: Path) -> None:
        file = tmp_path / "effective.json"
        assert run(["run", f"--config={config}", f"--write-config-to={file}"]) == 0
        assert file.stat().st_mode & 0o077 == 0
        assert load_configuration(file).leader_election == load_configuration(config).leader_election


class TestMistakes:
    def test_leader_election_that_cannot_work(self, capsys: pytest.CaptureFixture[str]) -> None:
        said = complaint(capsys, "--leader-elect-lease-duration=5s")
        assert said.splitlines()[0] == (
            'command line: leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'
        )

    @pytest.mark.parametrize(
        ("arguments", "why"),
        [
            (["--leader-elect=maybe"], "--leader-elect=maybe: must be true or false"),
            (["--leader-elect-retry-period=2"], "'2' is no duration such as 15s or 1m30s"),
            (["--v=many"], "'many' is no number such as 2"),
            (["--tls-cert-file=a.crt"], "--tls-cert-file and --tls-private-key-file belong together"),
            (["--tls-min-version=1.2"], "--tls-min-version 1.2: must be one of VersionTLS10, VersionTLS11,"),
            (["--tls-cipher-suites=AES,DES"], "--tls-cipher-suites AES: must be of TLS_AES_128_GCM_SHA256,"),
            (["--client-ca-file=/missing/ca"], "--client-ca-file /missing/ca: No such file or directory"),
            (
                ["--requestheader-client-ca-file=/missing/ca"],
                "--requestheader-client-ca-file /missing/ca: No such file or directory",
            ),
            (
                ["--authentication-skip-lookup=maybe"],
                "--authentication-skip-lookup=maybe: must be true or false",
            ),
            (["--profiling=maybe"], "--profiling=maybe: must be true or false"),
            (
                ["--vmodule=reflector"],
                "--vmodule reflector: must be a pattern and a number, such as reflector=4",
            ),
            (
                ["--vmodule=reflector=4", "--logging-format=json"],
                "--vmodule needs --logging-format text, not json",
            ),
            (
                ["--show-hidden-metrics-for-version=1.34"],
                "--show-hidden-metrics-for-version 1.34: must be 1.35, the version before",
            ),
            (["--logging-format=xml"], "--logging-format xml: there are text and json"),
            ([], "no API server is known: this is not a pod, so give clientConnection.kubeconfig"),
            (["--kubeconfig=/missing/file"], "/missing/file"),
            (["--config=/missing/file"], "/missing/file: No such file or directory"),
        ],
    )
    def test_usage(
        self,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        arguments: list[str],
        why: str,
    ) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        said = complaint(capsys, *arguments)
        assert why in " ".join(said.split())
        assert "Traceback" not in said

    @pytest.mark.parametrize("missing", ["cachetools", "cryptography", "uvicorn", "prometheus_client"])
    def test_a_missing_extra(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: str
    ) -> None:
        for name in [
            name
            for name in sys.modules
            if name.startswith(("kschedfw_kubernetes.serve", "kschedfw_kubernetes.web"))
        ]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.delitem(sys.modules, "kschedfw_kubernetes.prometheus_metrics", raising=False)
        monkeypatch.setitem(sys.modules, missing, None)
        said = complaint(capsys, "--kubeconfig=x", code=1)
        assert said == f"kschedfw: run needs the extra run: {how_to_install('kschedfw-kubernetes', 'run')}\n"
