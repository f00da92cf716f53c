"""Sources of clusters: the options that they add to commands, and what is told where one isn't installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import attrs
import click
import pytest
from click.testing import CliRunner

from kschedfw import make_node
from kschedfw.api import Manifests, Node
from kschedfw.api.distributions import entry_points_of
from kschedfw.cli import (
    MANIFESTS,
    ConfigurationChoice,
    Given,
    InputOptions,
    Live,
    Progress,
    Source,
    SourceCluster,
    SourceOption,
    UsageError,
    configuration_options,
    input_options,
    live_options,
)
from kschedfw.cli.live import NO_LIVE_CLUSTER, SOURCES

WITHOUT_KUBERNETES = """
import importlib.metadata as metadata, sys
installed = metadata.distributions
metadata.distributions = lambda: (each for each in installed() if each.name != "kschedfw-kubernetes")
sys.modules["kschedfw_kubernetes"] = None
from kschedfw.cli.app import run
for line in sys.stdin.read().splitlines():
    print("exit code", run(line.split()), file=sys.stderr, flush=True)
"""
# The tests run with kschedfw from a checkout, where no index is asked.
INSTALL = f"which isn't installed: pip install {Path(__file__).parents[2]}/plugins/kschedfw-kubernetes"
NOT_INSTALLED = f"live clusters are read by the distribution kschedfw-kubernetes, {INSTALL}"
EXTENDERS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://localhost:1", filterVerb: filter}]
"""


def read_backup(given: Given, progress: Progress | None) -> SourceCluster:
    name = Path(given["backup"]).name
    node = make_node(name).build()
    return SourceCluster(Manifests.collect([node]), f"backup {name}", ["may not list secrets"])


BACKUPS = Source(
    (
        SourceOption("backup", "DIR", "Read the cluster of this backup.", Path),
        SourceOption("as-of", "TIME", "As it was then.", names_cluster=False),
    ),
    read_backup,
)
ARCHIVE = Source((SourceOption("archive", "NAME", "Read the cluster of this archive."),), read_backup)
NO_SOURCE = object()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The sources of this module, by the names in the parameter, and no others."""
    offers = [EntryPoint(name, f"{__name__}:{name}", "kschedfw.sources") for name in request.param]
    # Other groups are as they are: what is found in them is kept, for later tests, too.
    monkeypatch.setattr(
        "kschedfw.api.extensions.entry_points_of",
        lambda groups: offers if "kschedfw.sources" in groups else entry_points_of(groups),
    )
    monkeypatch.setattr("kschedfw.cli.option_groups.SOURCES", attrs.evolve(SOURCES))  # which looks again


def asking() -> tuple[click.Command, list[Live]]:
    """A command that asks about a cluster, and the clusters that it was asked about."""
    asked = list[Live]()

    @click.command()
    @live_options
    def ask(live: Live) -> None:
        asked.append(live)

    return ask, asked


def without_kubernetes(*commands: str) -> list[tuple[int, str]]:
    """The exit code of each command, and what it tells, in one process without kschedfw-kubernetes."""
    command = [sys.executable, "-c", WITHOUT_KUBERNETES]
    done = subprocess.run(command, input="\n".join(commands), capture_output=True, text=True, check=True)
    told, *rest = done.stderr.split("exit code ")
    found = []
    for each in rest:
        code, _, following = each.partition("\n")
        found.append((int(code), told))
        told = following
    return found


@pytest.mark.parametrize("installed", [["BACKUPS"]], indirect=True)
def test_an_option_of_an_installed_source_names_the_cluster_that_is_read(installed: None) -> None:
    app, asked = asking()
    shown = CliRunner().invoke(app, ["--help"]).output
    assert "--backup" in shown
    assert "--context" not in shown
    assert CliRunner().invoke(app, ["--backup", "some/where", "--as-of", "noon"]).exit_code == 0
    (live,) = asked
    assert (live.is_wanted, live.title) == (True, "where")
    loaded = InputOptions(live=live).read([])
    assert [node.name for node in loaded.cluster.list(Node)] == ["where"]
    assert loaded.notes[:2] == ["read from backup where", "backup where: may not list secrets"]
    assert loaded.problems == ["warning: backup where: may not list secrets"]


@pytest.mark.parametrize("installed", [["BACKUPS"]], indirect=True)
def test_one_parameter_has_all_options_of_a_cluster_and_another_those_of_its_configuration(
    installed: None,
) -> None:
    asked = list[tuple[InputOptions, ConfigurationChoice]]()

    @click.command()
    @input_options
    @configuration_options
    def ask(given: InputOptions, chosen: ConfigurationChoice) -> None:
        asked.append((given, chosen))

    options = "--backup some/where --pods more.yaml --skip-invalid --kube-version 1.37 --limit pods=7"
    assert CliRunner().invoke(ask, options.split()).exit_code == 0
    ((given, chosen),) = asked
    assert (list(given.pods), given.live.title, given.format) == ([Path("more.yaml")], "where", MANIFESTS)
    assert (given.reading.skip_invalid, given.reading.limits.pods) == (True, 7)
    assert chosen.load().gates.version == "1.37"
    assert CliRunner().invoke(ask, []).exit_code == 0
    assert asked[1][1] == ConfigurationChoice(None, None, (), None)


@pytest.mark.parametrize("installed", [["BACKUPS"]], indirect=True)
def test_without_a_source_s_option_no_cluster_is_wanted(installed: None) -> None:
    app, asked = asking()
    assert CliRunner().invoke(app, []).exit_code == 0
    assert asked == [NO_LIVE_CLUSTER]
    assert (asked[0].is_wanted, asked[0].title) == (False, "")


@pytest.mark.parametrize(
    ("installed", "ways"),
    [([], ""), (["BACKUPS", "ARCHIVE"], ", or a live one with --archive or --backup")],
    indirect=["installed"],
)
def test_a_command_without_a_cluster_is_told_the_options_that_name_one(installed: None, ways: str) -> None:
    app, asked = asking()
    CliRunner().invoke(app, [])
    with pytest.raises(UsageError) as refused:
        InputOptions(live=asked[0]).read([])
    assert str(refused.value) == f"there is no cluster: give files{ways}"


@pytest.mark.parametrize("installed", [["BACKUPS", "ARCHIVE"]], indirect=True)
@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--as-of", "noon"], "--as-of noon: goes with a live cluster; say which with --backup"),
        (
            ["--backup", "b", "--archive", "a"],
            "--archive a, --backup b: a cluster is read from one source, not from ARCHIVE and BACKUPS",
        ),
        (
            ["--context", "prod"],
            f"--context prod: {NOT_INSTALLED}",
        ),
    ],
)
def test_options_that_name_no_single_cluster_are_refused(installed: None, args: list[str], told: str) -> None:
    app, asked = asking()
    error = CliRunner().invoke(app, args).exception
    assert isinstance(error, UsageError)
    assert str(error) == told
    assert asked == []


@pytest.mark.parametrize("installed", [["BACKUPS", "NO_SOURCE"]], indirect=True)
def test_a_source_that_cannot_be_loaded_is_a_warning(
    installed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    app, asked = asking()
    assert "NO_SOURCE is object, expected an instance of Source" in capsys.readouterr().err
    assert CliRunner().invoke(app, ["--backup", "b"]).exit_code == 0
    assert asked[0].is_wanted


@pytest.mark.slow
def test_a_context_without_kschedfw_kubernetes_is_refused_with_its_name() -> None:
    asking = ("simulate", "explain", "pending", "compare")
    refused = without_kubernetes(*(f"{command} --context prod x" for command in asking))
    assert refused == [(2, f"kschedfw: --context prod: {NOT_INSTALLED}\n")] * len(asking)


@pytest.mark.slow
def test_without_kschedfw_kubernetes_files_are_simulated_and_extenders_refused_with_its_name(
    cluster_dir: Path, tmp_path: Path
) -> None:
    configuration = tmp_path / "extenders.yaml"
    configuration.write_text(EXTENDERS)
    simulate = f"simulate {cluster_dir}"
    assert without_kubernetes(simulate, f"{simulate} --config {configuration}") == [
        (0, ""),
        (
            2,
            f"kschedfw: extender client 'HTTP' is in the distribution kschedfw-kubernetes, {INSTALL}\n",
        ),
    ]


@pytest.mark.slow
def test_a_command_of_kschedfw_kubernetes_is_refused_with_its_name() -> None:
    for code, told in without_kubernetes("run", "dump", "serve-extender"):
        assert code == 2
        assert f"is in the distribution kschedfw-kubernetes, {INSTALL}" in told
