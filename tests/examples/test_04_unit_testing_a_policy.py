"""The fourth example's tests pass, and fail where the policy is another one."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kschedfw_apiserver.processes import WITHOUT_HYPOTHESIS

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "04-unit-testing-a-policy"
WITHOUT_CONTRACT = ("-k", "not Contract", *WITHOUT_HYPOTHESIS)


def run_tests(directory: Path, working_directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, directory],
        check=False,
        capture_output=True,
        encoding="utf-8",
        cwd=working_directory,
    )


def copy(directory: Path, *, file: str, old: str, new: str) -> Path:
    """The example, with something changed."""
    changed = shutil.copytree(EXAMPLE, directory / "changed") / file
    text = changed.read_text(encoding="utf-8")
    assert text.count(old) == 1
    changed.write_text(text.replace(old, new), encoding="utf-8")
    return changed.parent


def test_as_many_tests_pass_as_its_readme_shows(tmp_path: Path) -> None:
    result = run_tests(EXAMPLE, tmp_path)
    assert result.returncode == 0, result.stdout
    passed = re.search(r"= (\d+ passed) in ", result.stdout)
    assert passed is not None
    assert f"= {passed[1]} in ... =" in (EXAMPLE / "README.md").read_text(encoding="utf-8")


def test_another_weight_is_another_decision_as_its_readme_says(tmp_path: Path) -> None:
    result = run_tests(
        copy(tmp_path, file="test_quiet.py", old="weight=2", new="weight=1"), tmp_path, *WITHOUT_CONTRACT
    )
    assert "* default/crawler-3: node: b → a" in result.stdout
    assert "1 failed" in result.stdout


@pytest.mark.nightly
def test_a_policy_that_is_less_strict_is_noticed(tmp_path: Path) -> None:
    result = run_tests(
        copy(tmp_path, file="quiet.py", old=">= self.args", new="> self.args"), tmp_path, *WITHOUT_CONTRACT
    )
    assert (
        "FAILED changed/test_quiet.py::test_a_batch_pod_waits_until_a_critical_one_has_left" in result.stdout
    )
    assert "2 failed" in result.stdout
