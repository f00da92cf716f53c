"""A directory of installed distributions, for programs that find them."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PRELUDE = """
import json, sys
from kschedfw import InMemoryCluster, Framework, KschedfwError, Parts, Profile, Registry
from kschedfw import make_node, make_pod
from kschedfw.testing import FrameworkHarness

def framework(*names):
    return Framework(Registry(), Profile(names), Parts(InMemoryCluster()))

def failure(*names):
    try:
        framework(*names)
    except KschedfwError as error:
        return [type(error).__name__, str(error), type(error.__cause__).__name__]
"""


class Site:
    """A directory that distributions are installed into."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def install(
        self,
        distribution: str,
        version: str,
        module: str,
        source: str,
        *entry_points: str,
        group: str = "kschedfw",
    ) -> None:
        (self.path / f"{module}.py").write_text(source, encoding="utf-8")
        info = self.path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        points = "\n".join([f"[{group}]", *entry_points, ""])
        (info / "entry_points.txt").write_text(points, encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process that has these distributions."""
        paths = [str(self.path), os.environ.get("PYTHONPATH", "")]
        return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def run(self, program: str) -> Any:
        """What the program says `answer` is, run where these distributions are installed, too.

        It runs in this process, which has imported kschedfw already; what it imports from here is forgotten.
        """
        sys.path.insert(0, str(self.path))
        importlib.invalidate_caches()
        namespace: dict[str, Any] = {}
        try:
            exec(f"{PRELUDE}\n{program}", namespace)
        finally:
            sys.path.remove(str(self.path))
            ours = {file.stem for file in self.path.glob("*.py")}
            for name in ours & sys.modules.keys():
                del sys.modules[name]
        return json.loads(json.dumps(namespace["answer"]))

    def run_alone(self, program: str) -> Any:
        """What the program says `answer` is, in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", f"{PRELUDE}\n{program}\nprint(json.dumps(answer))"],
            check=False,
            capture_output=True,
            text=True,
            env=self.environment,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
