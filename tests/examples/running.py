"""Runs a numbered example as its README says."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kschedfw.testing.waiting import PATIENCE

REPOSITORY = Path(__file__).parents[2]


def output_as_shown(example: str, script: str, *python_path: Path) -> list[str]:
    """What the script prints, line by line; it has to be what the example's README shows."""
    path = os.pathsep.join([*map(str, python_path), os.environ.get("PYTHONPATH", "")])
    directory = REPOSITORY / "examples" / example
    result = subprocess.run(
        [sys.executable, directory / script],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": path.strip(os.pathsep)},
        timeout=PATIENCE,
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    command = f"$ python examples/{example}/{script}\n"
    assert f"{command}{result.stdout}```\n" in (directory / "README.md").read_text(encoding="utf-8")
    return result.stdout.splitlines()


def loaded(example: str, script: str) -> Any:
    """The script as a module, whose classes can be imported by name, also in another process."""
    path = REPOSITORY / "examples" / example / script
    name = f"example_{path.parent.name.replace('-', '_')}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
