"""Runs what README and the pages show with nothing but wheels: `make verify ONLY=installed`.

The wheels of all distributions are built and installed, with what users' extras bring, into an empty environment. The
documents and the examples are copied into a folder without the packages' sources, and every example and command that
they show runs there, as `make pages` runs them in a checkout. Then the lines that need no environment are tried:
`uvx …` and `pipx run …`, by the programs of these names that pip has installed beside the wheels.

This repository's distributions come from the wheels alone; an index is asked for the others.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import attrs
import release

REPOSITORY = release.REPOSITORY
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "conftest.py",
    "docs",
    "examples",
    "deploy",
    "plugins/*/README.md",
    "plugins/*/example/*",
)
# The helpers of conftest.py, which are nobody's package.
HELPERS = ("tests/fixtures.py",)
POLICIES = "plugins/*/README.md"
# What conftest.py needs, beside what kschedfw[testing] brings.
FOR_PAGES = ("pytest-timeout", "sybil")
LINE = re.compile(r"(?:^\$ |`)((?:uvx|pipx run) [^`\n]+)", re.MULTILINE)
CONFIGURATION = """\
[pytest]
addopts = --import-mode=importlib -q
kschedfw_profiles = true
pythonpath = .
timeout = 1200
"""


@attrs.frozen
class Installed:
    """An environment with the wheels, and a folder with the documents."""

    programs: Path
    folder: Path
    wheels: Path

    def run(self, *command: str) -> str:
        """Run a command of the environment in the folder; return what it prints.

        The process ends with an error if the command does.
        """
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST"))}
        env |= {
            "PATH": f"{self.programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            # Both ask pip or uv for kschedfw, which no index has.
            "PIP_FIND_LINKS": str(self.wheels),
            "UV_FIND_LINKS": str(self.wheels),
        }
        print(f"$ {shlex.join(command)}", flush=True)
        done = subprocess.run(
            command,
            check=False,
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            _give_up(f"failed: {shlex.join(command)}\n{done.stdout}")
        return done.stdout


def main() -> None:
    options = _options()
    if options.directory is None:
        directory = REPOSITORY / "build" / "installed" / "dist"
        release.build(release.projects(REPOSITORY), directory, release.environment())
    else:
        directory = options.directory
    wheels = [release.Wheel.read(each) for each in sorted(directory.glob("*.whl"))]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "folder"
        copy_documents(folder)
        venv.create(Path(place) / "venv", symlinks=os.name != "nt", with_pip=True)
        programs = Path(place) / "venv" / ("Scripts" if os.name == "nt" else "bin")
        installed = Installed(programs, folder, directory.resolve())
        policies, parts = _split(wheels)
        _install(installed, parts, FOR_PAGES)
        shown = installed.run("python", "-m", "pytest", "docs", "README.md", *_examples(folder))
        _install(installed, policies, ())
        shown += installed.run("python", "-m", "pytest", *_relative(folder, POLICIES))
        passed = sum(map(int, re.findall(r"(\d+) passed", shown)))
        _install(installed, (), ("pipx", "uv"))
        lines = run_lines(installed, wheels)
    print(f"{passed} examples and {lines} lines without an environment, from {len(wheels)} wheels")


def copy_documents(folder: Path) -> None:
    """Copy the files that git has of the documents."""
    listed = subprocess.run(
        ["git", "-C", str(REPOSITORY), "ls-files", "--", *DOCUMENTS, *HELPERS],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in listed.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(REPOSITORY / name, folder / name)
    (folder / "pytest.ini").write_text(CONFIGURATION, encoding="utf-8")


def run_lines(installed: Installed, wheels: Sequence[release.Wheel]) -> int:
    """Run the documents' lines of uvx and pipx that read files of the checkout; return their number."""
    versions = {each.name: each.version for each in wheels}
    lines = {
        line
        for document in sorted(installed.folder.glob("**/*.md"))
        for line in LINE.findall(document.read_text(encoding="utf-8"))
        if "examples/" in line
    }
    for line in sorted(lines):
        installed.run(*shlex.split(from_wheels(line, versions)))
    return len(lines)


def from_wheels(line: str, versions: Mapping[str, str]) -> str:
    """Return the line with kschedfw's wheel in place of the checkout or of a file."""
    return re.sub(
        r"'(?:\.|dist/kschedfw-[^\[']*)(\[[^\]]*\])?'", rf"'kschedfw\1=={versions['kschedfw']}'", line
    )


def _split(wheels: Sequence[release.Wheel]) -> tuple[list[release.Wheel], list[release.Wheel]]:
    """Return the policies, and kschedfw with what completes it, which the Makefile lists."""
    listed = re.search(
        r"^PARTS := (.*)$", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert listed is not None
    parts = {"kschedfw", *(Path(each).name for each in listed[1].split())}
    return [each for each in wheels if each.name not in parts], [
        each for each in wheels if each.name in parts
    ]


def _install(installed: Installed, wheels: Sequence[release.Wheel], others: Sequence[str]) -> None:
    wanted = [each.requirement(each.extras - release.FOR_DEVELOPERS) for each in wheels]
    installed.run("python", "-m", "pip", "install", "--quiet", *wanted, *others)


def _examples(folder: Path) -> list[str]:
    return _relative(folder, "examples/*/README.md")


def _relative(folder: Path, pattern: str) -> list[str]:
    return [str(each.relative_to(folder)) for each in sorted(folder.glob(pattern))]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="installed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--directory", type=Path, metavar="DIR", help="where the wheels are; else they are built"
    )
    return parser.parse_args()


def _give_up(message: str) -> NoReturn:
    sys.exit(f"installed: {message}")


if __name__ == "__main__":
    main()
