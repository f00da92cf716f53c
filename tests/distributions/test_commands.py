"""Subcommands of installed distributions: listed without importing their apps, and run like kschedfw's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kschedfw.testing.waiting import PATIENCE
from tests.distributions.site import Site

COMMAND = """
from kschedfw.cli import Command

GREET = Command("Greet a node.", "greeter_app:app")
NO_APP = Command("Do nothing.", "greeter_app:missing")
"""
APP = """
import click


@click.command()
@click.argument("node")
@click.option("--loudly", is_flag=True)
def app(node: str, loudly: bool) -> None:
    print(f"Hello, {node}{'!' if loudly else '.'}")
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def kschedfw(site: Site, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "kschedfw", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=site.environment | {"COLUMNS": "200"},
        timeout=PATIENCE,
    )


def install(site: Site, *entry_points: str, command: str = COMMAND, app: str = APP) -> None:
    (site.path / "greeter_app.py").write_text(app)
    site.install("greeter", "1.2", "greeter", command, *entry_points, group="kschedfw.commands")


def test_an_installed_command_is_listed_and_runs(site: Site) -> None:
    install(site, "greet = greeter:GREET")
    assert "  greet           Greet a node.\n" in kschedfw(site, "--help").stdout
    done = kschedfw(site, "greet", "n1", "--loudly")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello, n1!\n", "")


def test_the_list_of_commands_does_not_import_the_app(site: Site) -> None:
    install(site, "greet = greeter:GREET", app="raise RuntimeError('imported')")
    assert "Greet a node." in kschedfw(site, "--help").stdout


@pytest.mark.slow
def test_a_command_that_cannot_be_loaded_says_so_in_the_list_and_harms_no_other(site: Site) -> None:
    install(site, "greet = greeter:GREET", command="raise ValueError('no luck')")
    listed = kschedfw(site, "--help")
    assert listed.returncode == 0
    assert "greet           (can't be used: command 'greet' of greeter 1.2" in listed.stdout
    assert kschedfw(site, "plugins", "list").returncode == 0
    done = kschedfw(site, "greet", "n1")
    assert (done.returncode, done.stderr) == (
        2,
        (
            "kschedfw: command 'greet' of greeter 1.2: loading greeter:GREET failed: ValueError: no luck "
            "(greeter.py, line 1)\n"
        ),
    )


def test_an_app_that_does_not_exist_is_one_error(site: Site) -> None:
    install(site, "greet = greeter:NO_APP")
    done = kschedfw(site, "greet", "n1")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "kschedfw: command 'greet' of greeter 1.2: loading greeter_app:missing failed: "
    )
    assert len(done.stderr.splitlines()) == 1


def test_a_command_that_is_no_command_is_refused_with_what_it_is(site: Site) -> None:
    install(site, "greet = greeter:GREET", command="GREET = 'greeter_app:app'")
    done = kschedfw(site, "greet", "n1")
    assert done.returncode == 2
    assert "greeter:GREET is str, expected an instance of Command" in done.stderr


def test_a_name_that_two_distributions_offer_is_refused_with_both(site: Site) -> None:
    install(site, "simulate = greeter:GREET")
    done = kschedfw(site, "simulate", "n1")
    assert done.returncode == 2
    assert (
        "is offered by greeter:GREET of greeter 1.2 and kschedfw.cli.commands:SIMULATE of kschedfw"
        in done.stderr
    )
    assert done.stderr.endswith("; uninstall all but one\n")


def test_a_misspelt_command_is_told_the_similar_one_of_a_distribution(site: Site) -> None:
    install(site, "greet = greeter:GREET")
    assert "'greet'" in kschedfw(site, "great").stderr
