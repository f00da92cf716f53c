"""`kschedfw explore`: its arguments, and how it starts and ends. What it serves: see tests/explore."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from explore.processes import explored

from kschedfw.api import how_to_install
from kschedfw.api.extensions import Extensions
from kschedfw.cli.app import run
from kschedfw.cli.output import PAGES, Page

WEB = "kschedfw_kubernetes.web"


def complaint(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 2) -> str:
    """The one line that says what is wrong."""
    assert run(["explore", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.slow
def test_serves_behind_a_token_until_ctrl_c(cluster_dir: Path) -> None:
    with explored(cluster_dir) as page:
        assert "cluster" in page.read("")
        assert '"default/too-big"' in page.read("api/state")
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(page.base)


class TestInThisProcess:
    @pytest.fixture(autouse=True)
    def _no_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Everything but the serving."""
        monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)

    def test_ends_well(self, cluster_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["explore", str(cluster_dir), "--profile", "default", "--reschedule", "all"]) == 0
        assert "1 bound pod freed first" in capsys.readouterr().err

    def test_warns_if_others_can_reach_it(
        self, cluster_dir: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["explore", str(cluster_dir), "--host", "0.0.0.0"]) == 0
        assert capsys.readouterr().err == (
            "kschedfw: warning: the page is reachable from other machines, at 0.0.0.0, without encryption\n"
        )

    @pytest.mark.parametrize("extra", ["starlette.applications", "uvicorn"])
    def test_needs_the_extra(
        self,
        cluster_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        extra: str,
    ) -> None:
        for name in [name for name in sys.modules if name.startswith(("kschedfw_advisor.explore.", WEB))]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, extra, None)
        told = complaint(capsys, cluster_dir, code=1)
        assert (
            told
            == f"kschedfw: explore needs the extra explore: {how_to_install('kschedfw-advisor', 'explore')}\n"
        )

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ([], "there is no cluster"),
            (["CLUSTER", "--profile", "nothing"], "--profile nothing: no such file"),
            (["CLUSTER", "--config", "nothing.yaml"], "nothing.yaml: No such file"),
            (["CLUSTER", "--host", "203.0.113.1"], "can't listen on 203.0.113.1"),
        ],
    )
    def test_bad_arguments(
        self, cluster_dir: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
    ) -> None:
        given = [str(cluster_dir) if each == "CLUSTER" else each for each in arguments]
        assert problem in complaint(capsys, *given)


class TestHtml:
    @pytest.mark.parametrize("command", [["simulate"], ["explain", "fits"]])
    def test_needs_a_writer_of_pages_before_any_work(
        self,
        cluster_dir: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        command: list[str],
    ) -> None:
        nobody = Extensions[type[Page]]("nobody.offers.pages", "page", type, PAGES.homes)
        monkeypatch.setattr("kschedfw.cli.output.PAGES", nobody)
        name, *rest = command
        assert run([name, str(cluster_dir), *rest, "--html", str(cluster_dir / "page.html")]) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err == (
            "kschedfw: --html: page 'static' is in the distribution kschedfw-lab, which isn't installed: "
            f"{how_to_install('kschedfw-lab')}\n"
        )

    @pytest.mark.parametrize("command", [["simulate"], ["explain", "fits"]])
    def test_a_file_that_cant_be_written(
        self, cluster_dir: Path, capsys: pytest.CaptureFixture[str], command: list[str]
    ) -> None:
        name, *rest = command
        assert run([name, str(cluster_dir), *rest, "--html", str(cluster_dir)]) == 2
        assert capsys.readouterr().err == f"kschedfw: --html {cluster_dir}: is a directory\n"
