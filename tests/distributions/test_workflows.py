"""The workflows of the forge run what the Makefile has, with no more rights than they need."""

from __future__ import annotations

import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
FILES = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
WORKFLOWS: dict[str, dict[str, Any]] = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}
TARGETS = set(re.findall(r"^(\w+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
PARTS = set(tomllib.loads((REPOSITORY / ".ci" / "verify.toml").read_text()))
JOBS = [(name, job) for name, workflow in WORKFLOWS.items() for job in workflow["jobs"]]


def steps(workflow: str, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = WORKFLOWS[workflow]["jobs"][job]["steps"]
    return found


def made(workflow: str, job: str) -> Iterator[tuple[str, list[str]]]:
    """The targets that a job makes, each with the words after it."""
    for step in steps(workflow, job):
        for line in re.findall(r"^make (.+)$", step.get("run", ""), re.MULTILINE):
            words = [each for each in line.split() if not re.match(r"PYTHON=|--jobs=", each)]
            yield words[0], words[1:]


def test_there_is_one_for_changes_one_for_every_night_and_one_for_releases() -> None:
    assert set(WORKFLOWS) == {"ci", "nightly", "release"}


@pytest.mark.parametrize(("workflow", "job"), JOBS)
def test_a_job_makes_targets_that_there_are(workflow: str, job: str) -> None:
    assert {target for target, _ in made(workflow, job)} <= TARGETS


def test_changes_run_all_that_make_test_runs_on_every_python() -> None:
    recipe = re.search(r"^test: .*\n\t@(.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    wanted = set(recipe[1].split("$(ALL_CORES) ")[1].split())
    run = {target for job in WORKFLOWS["ci"]["jobs"] for target, _ in made("ci", job)}
    assert wanted | {"docs", "release", "verify"} <= run
    pythons = {f"python{each}" for each in WORKFLOWS["ci"]["jobs"]["tests"]["strategy"]["matrix"]["python"]}
    assert pythons == set(runpy.run_path(str(REPOSITORY / ".ci" / "release.py"))["SUPPORTED"])


def test_every_night_all_parts_of_verify_run_but_those_that_need_what_the_forge_lacks() -> None:
    listed = WORKFLOWS["nightly"]["jobs"]["parts"]["strategy"]["matrix"]["parts"]
    named = [part for parts in listed for part in parts.split()]
    assert len(named) == len(set(named))
    assert set(named) == PARTS - {"kube-apiserver", "beside", "recordings-shared"}


@pytest.mark.parametrize(("workflow", "job"), JOBS)
def test_a_job_ends_and_has_only_the_rights_that_it_names(workflow: str, job: str) -> None:
    content = WORKFLOWS[workflow]
    assert content["permissions"] == {"contents": "read"}
    assert 0 < content["jobs"][job]["timeout-minutes"] < 360
    rights = content["jobs"][job].get("permissions", {})
    assert workflow == "release" or rights == {}
    for step in steps(workflow, job):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        # What a ref or a title says must not become part of a script.
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize(("workflow", "job"), JOBS)
def test_actions_are_those_of_the_forge_itself(workflow: str, job: str) -> None:
    used = [step["uses"] for step in steps(workflow, job) if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", each) for each in used)


def test_what_is_released_is_scanned_before_it_is_pushed_and_signed_after() -> None:
    scripts = [step.get("run", "") + step.get("uses", "") for step in steps("release", "image")]
    order = [
        next(index for index, script in enumerate(scripts) if word in script)
        for word in ("podman build", "trivy", "podman manifest push", "actions/attest-build-provenance")
    ]
    assert order == sorted(order)
    (archives,) = (
        step["with"]["subject-path"]
        for step in steps("release", "archives")
        if "attest-build-provenance" in step.get("uses", "")
    )
    assert archives == "dist/*"
    (build,) = (script for script in scripts if "podman build" in script)
    assert "deploy/Containerfile" in build
    assert "linux/amd64,linux/arm64" in build
