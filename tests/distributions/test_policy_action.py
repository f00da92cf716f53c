"""The action for repositories with a policy: its steps run as on the forge, with a `gh` that notes what it is told."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from kschedfw.testing.waiting import PATIENCE

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
ACTION = REPOSITORY / ".github" / "actions" / "test-policies"
DEFINITION: dict[str, Any] = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {
    step["name"]: step for step in DEFINITION["runs"]["steps"] if "name" in step
}
POLICY = REPOSITORY / "examples" / "policy-tests"
WAITING = """\
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: main, image: web, resources: {requests: {cpu: 1, memory: 1Gi}}}]
"""


def git(folder: Path, *arguments: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", *names, *arguments]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@attrs.frozen
class Forge:
    """A repository with a policy whose latest commit packs, and the folders that the forge gives to steps."""

    root: Path
    base: str

    @property
    def workspace(self) -> Path:
        return self.root / "work"

    @property
    def comment(self) -> str:
        return (self.root / "comment").read_text(encoding="utf-8")

    def run(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run a step with the action's inputs."""
        given = {key: str(value.get("default", "")) for key, value in DEFINITION["inputs"].items()}
        known = {f"inputs.{key}": value for key, value in (given | inputs).items()} | {
            "github.event.pull_request.base.sha || github.event.before": self.base,
            "github.event.pull_request.number": "7",
            "github.repository": "someone/policy",
        }
        step = STEPS[name]
        env = {
            key: re.sub(r"\$\{\{ (.+?) \}\}", lambda found: known[found[1]], str(value))
            for key, value in step["env"].items()
        }
        bins = os.pathsep.join([str(self.root / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.run(
            # As a step with `shell: bash` is run.
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={
                **os.environ,
                **env,
                "PATH": bins,
                "GITHUB_WORKSPACE": str(self.workspace),
                "GITHUB_ACTION_PATH": str(ACTION),
                "RUNNER_TEMP": str(self.root / "temp"),
                "GITHUB_OUTPUT": str(self.root / "output"),
                "GITHUB_STEP_SUMMARY": str(self.root / "summary"),
            },
        )


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    work = tmp_path / "work"
    shutil.copytree(POLICY, work)
    (tmp_path / "temp").mkdir()
    (tmp_path / "bin").mkdir()
    gh = tmp_path / "bin" / "gh"
    gh.write_text(f'#!/bin/bash\necho "$@" > {tmp_path}/told\ncp "${{@: -1}}" {tmp_path}/comment\n')
    gh.chmod(0o755)
    (work / "production.yaml").write_text((POLICY / "cluster.yaml").read_text() + WAITING)
    packs = (work / "scheduler.yaml").read_text()
    (work / "scheduler.yaml").write_text((POLICY / "before.yaml").read_text())
    git(work, "init", "-q")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "before")
    base = git(work, "rev-parse", "HEAD")
    (work / "scheduler.yaml").write_text(packs)
    git(work, "commit", "-qam", "Pack")
    return Forge(tmp_path, base)


def test_the_tests_of_the_policy_run(forge: Forge) -> None:
    done = forge.run("Test")
    assert (done.returncode, done.stdout) == (0, "4 cases: 4 passed\n"), done.stderr
    assert (forge.root / "temp" / "policies.xml").is_file()


def test_a_case_that_fails_ends_the_step(forge: Forge) -> None:
    shutil.copy(POLICY / "before.yaml", forge.workspace / "scheduler.yaml")
    assert forge.run("Test").returncode == 1


def test_pods_that_would_move_are_commented(forge: Forge) -> None:
    done = forge.run("Compare", cluster="production.yaml", **{"compare-options": ""})
    assert done.returncode == 0, done.stderr
    assert (forge.root / "output").read_text() == "moved=1\n"
    forge.run("Comment", token="secret")
    assert (forge.root / "told").read_text().startswith("pr comment 7 --repo someone/policy --edit-last")
    assert "| pods placed | 1 | 1 |" in forge.comment
    assert "1 of 1 pods would fare differently:" in forge.comment
    assert "| default/web | small | big |" in forge.comment
    assert (forge.root / "summary").read_text() == forge.comment


def test_a_condition_that_holds_fails_the_step_and_is_commented(forge: Forge) -> None:
    options = "--fail-on 'moved > 0'"
    done = forge.run("Compare", cluster="production.yaml", **{"compare-options": options})
    assert done.returncode == 3
    assert "`--fail-on moved > 0` holds." in (forge.root / "summary").read_text()


def test_options_are_words_and_no_commands(forge: Forge) -> None:
    options = f"--seed $(touch {forge.root}/run)"
    assert forge.run("Compare", cluster="production.yaml", **{"compare-options": options}).returncode == 2
    assert not (forge.root / "run").exists()


def test_a_change_that_moves_nothing_is_said_to(forge: Forge) -> None:
    git(forge.workspace, "commit", "--allow-empty", "-qm", "nothing")
    same = attrs.evolve(forge, base=git(forge.workspace, "rev-parse", "HEAD"))
    done = same.run("Compare", cluster="production.yaml", **{"compare-options": ""})
    assert done.returncode == 0, done.stderr
    assert "None of 1 pods would fare differently." in (forge.root / "summary").read_text()


def test_a_configuration_that_is_new_is_compared_with_that_of_kube_scheduler(forge: Forge) -> None:
    git(forge.workspace, "mv", "scheduler.yaml", "new.yaml")
    given = {"cluster": "production.yaml", "configuration": "new.yaml", "compare-options": ""}
    done = forge.run("Compare", **given)
    assert done.returncode == 0, done.stderr
    assert "::notice::new.yaml is new" in done.stdout
    assert "| default/web | small | big |" in (forge.root / "summary").read_text()


def test_every_input_has_a_description_and_no_step_is_given_one_as_text() -> None:
    assert all(each["description"] for each in DEFINITION["inputs"].values())
    assert not [name for name, step in STEPS.items() if "${{" in step["run"]]
