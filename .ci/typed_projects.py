"""Checks the types of all examples and plugins: `make lint`.

Each is a project of its own, whose modules may have the names of another's. Those without a name in common are checked
by one run of mypy: a run needs half a second for what it knows already of the core.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[1]


class Project(NamedTuple):
    """The directory of a project, the one where its tests' modules begin, and the names of its modules."""

    directory: Path
    base: Path
    modules: frozenset[Path]

    @classmethod
    def of(cls, directory: Path, parts: frozenset[Path]) -> Project:
        # Tests of the distributions that complete kschedfw import their helpers as the core's suite does.
        base = directory / "tests" if directory in parts else directory
        roots = (directory / "src", base, directory)
        modules = (
            next(file.relative_to(root) for root in roots if file.is_relative_to(root))
            for file in directory.rglob("*.py")
        )
        return cls(directory, base, frozenset(modules))


def together(projects: list[Project]) -> list[list[Project]]:
    """Return the projects in as few groups as come of putting each into the first that has none of its names."""
    groups: list[list[Project]] = []
    for project in projects:
        for group in groups:
            if all(project.modules.isdisjoint(other.modules) for other in group):
                group.append(project)
                break
        else:
            groups.append([project])
    return groups


def main(parts: list[str]) -> int:
    """Run mypy on each group; return the first exit code that isn't 0. The examples may use the plugins' packages."""
    directories = sorted(
        each.relative_to(REPOSITORY)
        for folder in ("examples", "plugins")
        for each in (REPOSITORY / folder).iterdir()
        if any(each.rglob("*.py"))
    )
    os.chdir(REPOSITORY)
    known = frozenset(map(Path, parts))
    for group in together([Project.of(each, known) for each in directories]):
        names = [str(project.directory) for project in group]
        print(f"== mypy {' '.join(names)}", flush=True)
        path = [*(project.base for project in group), *sorted(Path("plugins").glob("*/src"))]
        env = os.environ | {"MYPYPATH": os.pathsep.join(map(str, path))}
        if code := subprocess.run([sys.executable, "-m", "mypy", *names], check=False, env=env).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
