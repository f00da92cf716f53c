"""Builds and checks what is released: `make build` and `make release`.

`build` writes the sdist and the wheel of every distribution: the core's and those of plugins/. The same commit gives
the same bytes, whenever and wherever it is built: archives carry the commit's time, and no mode or owner of a file.

`check` builds everything twice and compares the bytes. For each Python that the machine has, it installs the wheels
with every extra into an empty environment, lets pip check that the requirements agree, and schedules the sample
cluster. Beside the archives it writes what a user's environment consists of: a software bill of materials (CycloneDX)
and the licences.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from email.parser import Parser
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from zipfile import ZipFile

from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[1]
SUPPORTED = ("python3.11", "python3.12", "python3.13", "python3.14")
FOR_DEVELOPERS = frozenset({"dev", "docs", "release", "test"})
"""Extras that nobody installs who only uses kschedfw: they are checked, and not in the bill of materials."""


class Wheel(NamedTuple):
    """The metadata of a wheel."""

    name: str
    version: str
    extras: frozenset[str]
    requires: tuple[Requirement, ...]

    @classmethod
    def read(cls, path: Path) -> Wheel:
        with ZipFile(path) as archive:
            (file,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
            metadata = Parser().parsestr(archive.read(file).decode())
        extras = frozenset(metadata.get_all("Provides-Extra", ()))
        requires = tuple(map(Requirement, metadata.get_all("Requires-Dist", ())))
        return cls(metadata["Name"], metadata["Version"], extras, requires)

    def requirement(self, extras: Iterable[str] = ()) -> str:
        """Return the requirement of this version with the extras, as pip reads it."""
        listed = ",".join(sorted(extras))
        return f"{self.name}{f'[{listed}]' if listed else ''}=={self.version}"


def main() -> None:
    options = _options()
    if options.command == "build":
        build(projects(REPOSITORY), options.directory, environment())
    else:
        check(options.directory, options.python or SUPPORTED)
    print(*sorted(options.directory.iterdir()), sep="\n")


def projects(repository: Path) -> list[Path]:
    """The directories of all distributions, the core's first."""
    return [repository, *sorted(each.parent for each in repository.glob("plugins/*/pyproject.toml"))]


def environment() -> dict[str, str]:
    """Return the process's environment, with the time of the commit in SOURCE_DATE_EPOCH unless it is set.

    https://reproducible-builds.org/specs/source-date-epoch says what the variable means.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        command = ["git", "-C", str(REPOSITORY), "log", "-1", "--format=%ct"]
        try:
            given = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            _give_up(
                "there is no commit whose time could be taken: set SOURCE_DATE_EPOCH to seconds since 1970"
            )
    return os.environ | {"SOURCE_DATE_EPOCH": given}


def build(found: Sequence[Path], directory: Path, env: Mapping[str, str]) -> None:
    """Write sdist and wheel of each project into the directory, in place of what is there."""
    shutil.rmtree(directory, ignore_errors=True)
    for project in found:
        command = [sys.executable, "-m", "hatchling", "build", "--directory", str(directory.resolve())]
        done = subprocess.run(command, check=False, cwd=project, env=env, capture_output=True, text=True)
        if done.returncode:
            _give_up(f"{project} can't be built:\n{done.stdout}{done.stderr}")


def check(directory: Path, pythons: Sequence[str]) -> None:
    """Build and check everything; the files of the release are in the directory then."""
    present = [each for each in pythons if _runs(each)]
    for each in pythons:
        if each not in present:
            print(f"NOT TESTED on {each}: this machine hasn't got it", flush=True)
    if not present:
        _give_up(f"none of {', '.join(pythons)} is here; name another one by --python")
    env = environment()
    build(projects(REPOSITORY), directory, env)
    with tempfile.TemporaryDirectory() as again:
        build(projects(REPOSITORY), Path(again), env)
        _compare(directory, Path(again))
    wheels = [Wheel.read(each) for each in sorted(directory.glob("*.whl"))]
    for python in present:
        with tempfile.TemporaryDirectory() as place:
            print(f"== {len(wheels)} wheels in an empty environment of {python}", flush=True)
            _install(python, Path(place), wheels, directory, env)


def _runs(python: str) -> bool:
    """Tell whether the command runs: a version manager's shim of a version that isn't selected is found, and fails."""
    return (
        bool(shutil.which(python))
        and not subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode
    )


def _compare(directory: Path, again: Path) -> None:
    differing = [
        each.name for each in directory.iterdir() if each.read_bytes() != (again / each.name).read_bytes()
    ]
    if differing:
        _give_up(f"building twice gave different bytes: {', '.join(sorted(differing))}")


def _install(
    python: str, place: Path, wheels: Sequence[Wheel], directory: Path, env: Mapping[str, str]
) -> None:
    _run([python, "-m", "venv", "--without-pip", str(place)])
    inside = str(place / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    pip = [sys.executable, "-m", "pip", "--python", inside, "--disable-pip-version-check", "--quiet"]
    source = ["--find-links", str(directory)]
    # By name, and from the directory alone: the path of a wheel would get into the bill of materials, and an index may
    # have the same version, built from something else.
    ours = [each.requirement() for each in wheels]
    _run([*pip, "install", "--no-index", "--no-deps", *source, *ours])
    used = [each.requirement(each.extras - FOR_DEVELOPERS) for each in wheels]
    _run([*pip, "install", *source, *used])
    _run([*pip, "check"])
    _write_bill(inside, directory, env)
    with tempfile.TemporaryDirectory() as elsewhere:
        # Not in the checkout, whose modules would be found before those installed.
        sample = REPOSITORY / "examples" / "sample-cluster"
        _run([inside, "-m", "kschedfw", "simulate", str(sample), "--seed", "1"], cwd=Path(elsewhere))
    _run([*pip, "install", *source, *(each.requirement(each.extras) for each in wheels)])
    _run([*pip, "check"])


def _write_bill(inside: str, directory: Path, env: Mapping[str, str]) -> None:
    bill = directory / "sbom.cdx.json"
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    command += ["--pyproject", str(REPOSITORY / "pyproject.toml"), "--mc-type", "library"]
    _run([*command, "--output-file", str(bill), inside], env=env)
    content = with_digests(json.loads(bill.read_text(encoding="utf-8")), sorted(directory.glob("*.whl")))
    bill.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    listed = licences(content)
    rows = [f"| {name} | {version} | {licence or 'not declared'} |" for name, version, licence in listed]
    table = ["| package | version | licence |", "| --- | --- | --- |", *rows]
    (directory / "licences.md").write_text("\n".join([*table, ""]), encoding="utf-8")


def with_digests(bill: dict[str, Any], wheels: Iterable[Path]) -> dict[str, Any]:
    """Return the bill of materials with the package URL and the SHA-256 of each of our wheels.

    Without them, the bill would hold for any file of that name and version.
    """
    components = {each["name"]: each for each in (bill["metadata"]["component"], *bill["components"])}
    for path in wheels:
        wheel = Wheel.read(path)
        component = components[wheel.name]
        component["purl"] = f"pkg:pypi/{wheel.name}@{wheel.version}"
        component["hashes"] = [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]
    return bill


def licences(bill: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, version and licence of each component of a bill of materials, by name; the licence is empty if unknown."""
    return sorted(
        (each["name"], each["version"], _licence(each.get("licenses", ())))
        for each in bill.get("components", ())
    )


def _licence(declared: Iterable[Mapping[str, Any]]) -> str:
    """The licence by its SPDX expression, else by the ids or names that were declared."""
    found = []
    for each in declared:
        if "expression" in each:
            return str(each["expression"])
        licence = each["license"]
        found.append(str(licence.get("id") or licence["name"]))
    # A name may be a licence's whole text.
    return ", ".join(sorted({re.split(r"[\n|]", each.strip(), maxsplit=1)[0] for each in found}))


def _run(command: list[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    if subprocess.run(command, check=False, stdin=subprocess.DEVNULL, cwd=cwd, env=env).returncode:
        _give_up(f"failed: {' '.join(command)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["build", "check"])
    parser.add_argument(
        "--directory", type=Path, default=REPOSITORY / "dist", help="where to; what is there is removed"
    )
    parser.add_argument(
        "--python", action="append", metavar="COMMAND", help="a Python to install into. Repeatable."
    )
    return parser.parse_args()


def _give_up(message: str) -> NoReturn:
    sys.exit(f"release: {message}")


if __name__ == "__main__":
    main()
