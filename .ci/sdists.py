"""Runs the tests of distributions from their sdists alone: `make sdists DIST='kschedfw-advisor …'`.

A packager has no more than an sdist. So each is unpacked into an empty folder, installed with its extra `test` into an
empty environment, and tested there by pytest with its own configuration. The other distributions of this repository
are wheels that were built from the same checkout; everything else comes from the index. A file that the sdist lacks, a
requirement that `test` doesn't name and an import from the repository's own tests fail here.

Without names, all distributions that have tests are tried.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import release
from packaging.requirements import Requirement


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as place:
        built = options.directory or Path(place) / "dist"
        if options.directory is None:
            release.build(release.projects(release.REPOSITORY), built, release.environment())
        wanted = options.names or [
            each.name for each in release.projects(release.REPOSITORY)[1:] if (each / "tests").is_dir()
        ]
        failed = [name for name in wanted if not _passes(name, built.resolve(), Path(place) / name)]
    if failed:
        _give_up(f"failed: {' '.join(failed)}")
    print(f"tests of {len(wanted)} sdists passed")


def _passes(name: str, built: Path, place: Path) -> bool:
    """Install and test the sdist of this name in an empty folder."""
    archives = sorted(built.glob(f"{name.replace('-', '_')}-*.tar.gz"))
    if len(archives) != 1:
        _give_up(f"{len(archives)} sdists of {name} are in {built}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(place, filter="data")
    (source,) = place.iterdir()
    print(f"== {archives[0].name}: install", flush=True)
    venv.create(place / "venv", symlinks=os.name != "nt")
    programs = place / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(programs / "python"),
        "--disable-pip-version-check",
        "--quiet",
    ]
    wheels = {each.name: each for each in map(release.Wheel.read, built.glob("*.whl"))}
    needed = [wheels[each].requirement() for each in sorted(_needed(wheels, name, "test") - {name})]
    # From the directory alone: an index may have the same names, for something else.
    _run([*pip, "install", "--no-index", "--no-deps", "--find-links", str(built), *needed])
    _run([*pip, "install", f"{source}[test]"])
    print(f"== {archives[0].name}: pytest", flush=True)
    # Nothing of this checkout may help: neither its modules, nor its configuration, nor programs of its environment.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    return _run([str(programs / "pytest"), "-q"], cwd=source, env=env, check=False) == 0


def _needed(wheels: Mapping[str, release.Wheel], name: str, extra: str) -> set[str]:
    """Return the distributions of this repository that one needs with an extra, itself among them."""
    found: set[tuple[str, str]] = set()
    left = [(name, ""), (name, extra)]
    while left:
        at = left.pop()
        if at in found:
            continue
        found.add(at)
        for requirement in wheels[at[0]].requires:
            if requirement.name in wheels and _applies(requirement, at[1]):
                left += [(requirement.name, each) for each in ("", *requirement.extras)]
    return {each for each, _ in found}


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def _run(command: list[str], *, check: bool = True, **options: Any) -> int:
    code = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, **options).returncode
    if check and code:
        _give_up(f"failed: {' '.join(command)}")
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="sdists", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a distribution in plugins/")
    parser.add_argument(
        "--directory",
        type=Path,
        metavar="DIR",
        help="where the sdists and wheels of all distributions are; else they are built for the time being",
    )
    return parser.parse_args()


def _give_up(message: str) -> NoReturn:
    sys.exit(f"sdists: {message}")


if __name__ == "__main__":
    main()
