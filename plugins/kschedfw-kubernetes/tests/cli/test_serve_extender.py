"""`kschedfw serve-extender`: its arguments, and how it starts and ends. What it serves: see tests/extender_server."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from extender_server.processes import COMMAND, served
from kschedfw_apiserver import ApiServer
from kschedfw_apiserver.processes import running
from kschedfw_kubernetes.extender_server import ExtenderApp

from kschedfw.api import how_to_install
from kschedfw.cli.app import run
from kschedfw.framework.profile import Profile


def complaint(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 2) -> str:
    """The one line that says what is wrong."""
    assert run(["serve-extender", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.slow
def test_serves_until_ctrl_c() -> None:
    with served("--plugin", "NodeName") as url:
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{url}/healthz") as reply:
            assert reply.read() == b"ok\n"


@pytest.mark.slow
def test_serves_on_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("NOT TESTED: no IPv6 here")
    with served("--plugin", "NodeName", "--host", "::1") as url:
        assert url.startswith("http://[::1]:")


@pytest.mark.slow
def test_sigterm_ends_it_too() -> None:
    with running([sys.executable, *COMMAND, "--plugin", "NodeName", "--port", "0"]) as process:
        assert process.stderr is not None
        assert "Ctrl-C ends it" in process.stderr.readline()
        process.terminate()
        _, rest = process.communicate()
    assert (process.returncode, rest) == (0, "")


class TestInThisProcess:
    @pytest.fixture(autouse=True)
    def _no_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Everything but the serving."""
        monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)

    def test_ends_well(self, cluster_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
        arguments = ["--plugin", "TaintToleration=3", "--plugin", "NodeName", "--cluster", str(cluster_dir)]
        assert run(["serve-extender", *arguments, "--port", "0"]) == 0
        assert capsys.readouterr().err == "", "nobody is told of a server that never came up"

    def test_notes_on_the_input(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "map.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}")
        assert run(["serve-extender", "--plugin", "NodeName", "--cluster", str(tmp_path), "--port", "0"]) == 0
        assert capsys.readouterr().err.startswith(
            "scheduling has no use for some of the input: 1 ConfigMap\n"
        )

    def test_needs_the_extra(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        monkeypatch.delitem(sys.modules, "kschedfw_kubernetes.web.http_server", raising=False)
        assert complaint(capsys, "--plugin", "NodeName", code=1) == (
            f"kschedfw: serve-extender needs the extra serve: {how_to_install('kschedfw-kubernetes', 'serve')}\n"
        )

    def test_files_and_a_live_cluster_are_too_much(
        self, cluster_dir: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert complaint(capsys, "--plugin", "NodeName", "--cluster", cluster_dir, "--context", "x") == (
            "kschedfw: --cluster has the nodes and pods; --context and --kubeconfig are instead of it\n"
        )

    def test_live_cluster_that_cannot_be_read_is_told(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("kschedfw_kubernetes.cli.serve_extender._LISTING_SECONDS", 0.3)
        with ApiServer() as api:
            kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        said = complaint(capsys, "--plugin", "NodeName", "--kubeconfig", kubeconfig, "--port", "0")
        assert said.startswith("kschedfw: the live cluster isn't listed after 0.3 s: nodes: ")

    def test_needs_a_plugin(self, capsys: pytest.CaptureFixture[str]) -> None:
        said, _, names = complaint(capsys).partition("; installed are: ")
        assert said == "kschedfw: give at least one --plugin, or a --config"
        assert {"DefaultBinder", "NodeResourcesFit"} <= {*names.rstrip().split(", ")}

    def test_arguments(self, capsys: pytest.CaptureFixture[str]) -> None:
        given = 'NodeResourcesFit={"ignoredResources": ["example.com/gpu"]}'
        options = ["--plugin", "NodeResourcesFit", "--args", given, "--port", "0"]
        assert run(["serve-extender", *options]) == 0
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ("NodeName", "--args NodeName: must be NAME=JSON"),
            ("NodeResourcesFit={}", "--args NodeResourcesFit: there is no such --plugin"),
            ('NodeName={"x": 1}', "NodeName"),
        ],
    )
    def test_arguments_that_are_none(self, given: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert says in complaint(capsys, "--plugin", "NodeName", "--args", given)

    @pytest.fixture
    def configuration(self, tmp_path: Path) -> Path:
        path = tmp_path / "scheduler.yaml"
        path.write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            "profiles:\n"
            "- {schedulerName: one, plugins: {multiPoint: {disabled: [{name: ImageLocality}]}}}\n"
            "- {schedulerName: two}\n"
        )
        return path

    def test_a_configuration(
        self, configuration: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        profiles = []
        original = ExtenderApp.__init__

        def noted(self: ExtenderApp, profile: Profile, **settings: Any) -> None:
            profiles.append(profile)
            original(self, profile, **settings)

        monkeypatch.setattr(ExtenderApp, "__init__", noted)
        options = ["--config", str(configuration), "--scheduler-name", "one", "--port", "0"]
        assert run(["serve-extender", *options]) == 0
        assert capsys.readouterr().err == ""
        assert "NodeResourcesFit" in profiles[0].plugin_names
        assert "ImageLocality" not in profiles[0].plugin_names

    def test_a_warning_where_everybody_is_answered(self, capsys: pytest.CaptureFixture[str]) -> None:
        options = ["serve-extender", "--plugin", "NodeName", "--port", "0"]
        assert run([*options, "--host", "0.0.0.0"]) == 0
        assert capsys.readouterr().err == (
            "kschedfw: warning: everybody who reaches 0.0.0.0 is answered; --tls-client-ca asks for certificates\n"
        )
        assert run([*options, "--host", "localhost"]) == 0
        assert capsys.readouterr().err == ""

    def test_what_does_not_go_together(self, configuration: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert "has several profiles; --scheduler-name says which: one, two" in complaint(
            capsys, "--config", configuration
        )
        assert "--plugin and --args are instead of it" in complaint(
            capsys, "--config", configuration, "--plugin", "NodeName"
        )
        assert "--scheduler-name goes with --config" in complaint(
            capsys, "--plugin", "NodeName", "--scheduler-name", "x"
        )
        assert "--tls-client-ca goes with --tls-cert" in complaint(
            capsys, "--plugin", "NodeName", "--tls-client-ca", "ca.pem"
        )
        assert "none.yaml: No such file" in complaint(capsys, "--config", "none.yaml")

    def test_the_plugin_must_be_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "did you mean 'NodeName'?" in complaint(capsys, "--plugin", "NodeNam")

    def test_each_plugin_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert "lists NodeName more than once" in complaint(
            capsys, "--plugin", "NodeName", "--plugin", "NodeName=2"
        )

    @pytest.mark.parametrize("weight", ["", "0", "-1", "many", "2147483648"])
    def test_weights_are_positive_numbers(self, weight: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert complaint(capsys, "--plugin", f"NodeName={weight}") == (
            f"kschedfw: --plugin NodeName={weight}: the weight must be 1–2147483647\n"
        )

    def test_a_taken_port(self, capsys: pytest.CaptureFixture[str]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            assert complaint(capsys, "--plugin", "NodeName", "--port", port) == (
                f"kschedfw: can't listen on 127.0.0.1, port {port}: Address already in use\n"
            )

    def test_certificate_and_key_belong_together(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert complaint(capsys, "--plugin", "NodeName", "--tls-cert", "c") == (
            "kschedfw: --tls-cert and --tls-key belong together\n"
        )

    def test_a_certificate_that_is_not_there(self, capsys: pytest.CaptureFixture[str]) -> None:
        complained = complaint(capsys, "--plugin", "NodeName", "--tls-cert", "c.pem", "--tls-key", "k.pem")
        assert complained.startswith("kschedfw: certificate c.pem with key k.pem can't be used: ")

    def test_bad_input(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "bad.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: N}}")
        arguments = ["serve-extender", "--plugin", "NodeName", "--cluster", str(tmp_path), "--port", "0"]
        assert run(arguments) == 2
        assert "metadata.name" in capsys.readouterr().err
        assert run([*arguments, "--skip-invalid"]) == 0
        assert "metadata.name" in capsys.readouterr().err


@pytest.mark.slow
def test_its_help_does_not_wait_for_the_server() -> None:
    late = {"uvicorn", "httpx2", "kschedfw_kubernetes.extender_server"}
    code = f"import sys, kschedfw_kubernetes.cli.serve_extender; assert not {late} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
