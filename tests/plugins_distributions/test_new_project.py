"""What `kschedfw plugins new` makes passes its own checks untouched, and `.ci/downstream.py` finds that out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kschedfw.cli import app
from kschedfw.testing.waiting import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.long]

REPOSITORY = Path(__file__).parents[2]
DOWNSTREAM = [sys.executable, str(REPOSITORY / ".ci" / "downstream.py")]
LAYERED = [*DOWNSTREAM, "--layered"]
CHECKS = {
    "ruff check": [sys.executable, "-m", "ruff", "check", "--no-cache"],
    "ruff format": [sys.executable, "-m", "ruff", "format", "--no-cache", "--check"],
    "mypy": [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "../mypy_cache"],
}


def run(command: list[str], cwd: Path) -> tuple[int, str]:
    done = subprocess.run(
        command,
        check=False,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout


def new_project(directory: Path, name: str, *options: str) -> Path:
    project = directory / name
    assert app.run(["plugins", "new", name, "--dest", str(project), *options]) == 0
    return project


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("projects")
    return {
        "usual": new_project(directory, "kschedfw-gpu-share"),
        "with a command": new_project(directory, "kschedfw-racks", "--command", "racks"),
        "short": new_project(directory, "q", "--license", "MIT"),
        "capitals and digits": new_project(directory, "NUMA-2", "--license", "BSD-3-Clause"),
        "long": new_project(
            directory, "kschedfw-" + "n" * 31, "--class-name", "N" * 25, "--description", "Long " * 60
        ),
    }


# The tutorial's project passes them each time: tests/docs/test_tutorial.py.
@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(["with a command"], id="usual names", marks=pytest.mark.nightly),
        pytest.param(["usual"], id="without a command", marks=pytest.mark.nightly),
        pytest.param(["short", "capitals and digits", "long"], id="other names", marks=pytest.mark.nightly),
    ],
)
def test_it_passes_its_linters_and_type_checks(projects: dict[str, Path], kinds: list[str]) -> None:
    for kind in kinds:  # one after the other, as they share mypy's cache
        for name, command in CHECKS.items():
            code, output = run(command, projects[kind])
            assert code == 0, f"{kind}: {name}: {output}"


# The tutorial begins with such a project, installs it and runs its tests: tests/docs/test_tutorial.py does so.
@pytest.mark.nightly
def test_its_tests_pass_its_plugin_is_listed_and_simulates_and_its_command_is_in_the_help(
    projects: dict[str, Path], tmp_path: Path
) -> None:
    project, place = projects["usual"], tmp_path / "environment"
    given = [str(project), str(projects["with a command"])]
    code, output = run([*LAYERED, "--venv", str(place), *given], tmp_path)
    assert code == 0, output
    assert "GpuShare of kschedfw-gpu-share 0.1.0 loads" in output
    assert output.count("passed in") == 2  # those of the command call it, and its source of clusters

    command = [str(place / "bin" / "python"), "-m", "kschedfw"]
    code, output = run([*command, "--help"], project)
    assert re.search(r"(?m)^  racks +Show how many pods of each namespace are on each node\.$", output)
    code, output = run([*command, "plugins", "list", "--json"], project)
    (listed,) = (each for each in json.loads(output) if each["name"] == "GpuShare")
    assert listed["distribution"] == "kschedfw-gpu-share 0.1.0"
    assert listed["extensionPoints"] == ["filter", "score"]
    simulate = ["simulate", "example/cluster.yaml", "--config", "example/profile.yaml", "--json"]
    code, output = run([*command, *simulate], project)
    assert code == 0, output
    report = json.loads(output)
    assert (report["pods"]["placed"], report["pods"]["unschedulable"]) == (4, 1)
    assert [each["text"] for each in report["reasons"]] == ["node(s) had enough pods of the namespace"]


@pytest.mark.nightly
def test_the_recipe_takes_files_and_urls_and_says_whose_tests_fail(tmp_path: Path) -> None:
    good, bad = (new_project(tmp_path, name) for name in ("kschedfw-good", "kschedfw-bad"))
    plugin = bad / "src" / "kschedfw_bad" / "plugin.py"
    plugin.write_text(plugin.read_text(encoding="utf-8").replace("100 *", "99 *"), encoding="utf-8")
    (bad / "tests" / "test_contract.py").unlink()  # it takes longest, and finds nothing here
    (sdist,) = built(bad, "sdist")
    (wheel,) = built(good, "wheel")
    code, output = run([*LAYERED, "--venv", "environment", str(wheel), sdist.as_uri()], tmp_path)
    assert code == 1
    assert "test_a_node_scores_by_what_is_left_of_the_limit" in output
    assert f"== {wheel}: a wheel, without tests\n" in output
    assert output.endswith(f"downstream: failed: {sdist.as_uri()}\n")


def built(project: Path, kind: str) -> Iterator[Path]:
    code, output = run([sys.executable, "-m", "hatchling", "build", "--target", kind], project)
    assert code == 0, output
    return (project / "dist").iterdir()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["no-such-thing"], "downstream: 'no-such-thing' is no directory, no file and no URL\n"),
        (["--venv", ".", "."], "downstream: . is no virtual environment, so it isn't replaced\n"),
    ],
)
def test_what_is_no_distribution_is_said_at_once(tmp_path: Path, arguments: list[str], problem: str) -> None:
    place = [] if "--venv" in arguments else ["--venv", str(tmp_path / "environment")]
    assert run([*DOWNSTREAM, *place, *arguments], tmp_path) == (1, problem)
