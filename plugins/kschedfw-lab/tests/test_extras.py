"""Without its extra, a part of the experiments says in one line how to install it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kschedfw.api import how_to_install


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "name", "extra"), [("gymnasium", "Environment", "gym"), ("optuna", "tune", "optuna")]
)
def test_the_error_has_the_command(package: str, name: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{package!r}] = None
import kschedfw_lab
try:
    kschedfw_lab.{name}
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingExtraError ")
    assert done.stdout.endswith(f"install it with: {how_to_install('kschedfw-lab', extra)}\n")
    assert done.stdout.count("\n") == 1
