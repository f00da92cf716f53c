"""Prints the test files that the uncommitted changes can break, as `make quick` runs them.

A test file is printed if it changed, or if it imports a module that changed, directly or through other modules. Where
nothing is uncommitted, the last commit counts as the change. A change of what all tests share (pyproject.toml,
conftest.py) prints every directory of tests, and so does a change of a file that is no Python and lies outside the
tests: nobody imports it, so nothing says who reads it. Pages of the documentation break no test here.

Imports are followed by name: `from kschedfw import Status` is an import of the module that has `Status`, as the stub
beside the package says. Plugins that a test reaches only through an entry point aren't followed: else a change of one
plugin would run all tests of the scheduler. A change of the core doesn't run the tests of distributions, which use its
public names alone: they are nearly half of all. `make test` runs everything.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

REPOSITORY = Path(__file__).resolve().parents[1]
CORE = REPOSITORY / "kschedfw"

SHARED = frozenset({"pyproject.toml", "conftest.py", "tests/fixtures.py"})
WITHOUT_TESTS = ("docs/", "examples/", "README.md", "CONTRIBUTING.md", ".ci/", "Makefile", "LICENSE")


def changed_paths() -> list[str]:
    """Return the paths that differ from the last commit, or else those that the last commit changed."""
    uncommitted = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    return uncommitted or _git("diff", "--name-only", "HEAD~1", "HEAD")


def _git(*arguments: str) -> list[str]:
    output = subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, check=True, capture_output=True, text=True
    ).stdout
    return output.splitlines()


class ImportGraph:
    """Who imports what, among the Python files below some roots.

    Imports are found by their text: to parse 100,000 lines takes 13 s. What stands in a docstring only runs more tests.

    Args:
        roots: directories from which modules are imported, such as `.` and `plugins/kschedfw-lab/src`.
        folders: the folders of Python files to read, below the roots.
    """

    def __init__(self, roots: Iterable[Path], folders: Iterable[Path]) -> None:
        self._roots = sorted(
            (f"{root}/" for root in roots), key=len, reverse=True
        )  # the innermost root names a module
        self._files: dict[str, list[Path]] = defaultdict(list)
        self._names: dict[Path, list[tuple[str, str]]] = {}  # a module, and a name that is imported from it
        for folder in folders:
            for file in (*folder.rglob("*.py"), *folder.rglob("*.pyi")):
                module = self._module(file)
                self._files[module].append(file)
                self._names[file] = [*_imported_names(file.read_text(encoding="utf-8"), module)]
        self._importers: dict[Path, set[Path]] = defaultdict(set)
        self._readers: dict[Path, set[Path]] = defaultdict(set)
        """Who imports names by a package that re-exports them, by the package's file. A change of another of its names
        doesn't reach them, a change of the file itself does."""
        for file, names in self._names.items():
            for module, name in names:
                for imported in self._homes(module, name, file):
                    self._importers[imported].add(file)

    def affected(self, changed: Iterable[Path]) -> set[Path]:
        """Return the changed files, and those that import one of them, directly or through others."""
        found: set[Path] = set()
        left = list(changed)
        left += [reader for file in left for reader in self._readers[file]]
        while left:
            file = left.pop()
            if file not in found:
                found.add(file)
                left += self._importers[file]
        return found

    def _module(self, file: Path) -> str:
        root = next(root for root in self._roots if str(file).startswith(root))
        return str(file.with_suffix(""))[len(root) :].replace("/", ".").removesuffix(".__init__")

    def _homes(self, module: str, name: str, importer: Path) -> list[Path]:
        """Return the files of the module that has a name which `importer` imports from `module`."""
        if (submodule := f"{module}.{name}") in self._files:
            return self._files[submodule]
        files = self._files.get(module, [])
        for file in files:
            if file.stem == "__init__":
                for source, reexported in self._names[file]:
                    if reexported == name and source != module:
                        self._readers[file].add(importer)
                        return self._homes(source, name, importer)
        return files


def _imported_names(text: str, module: str) -> Iterator[tuple[str, str]]:
    for found in _IMPORT.finditer(text):
        source, names, plain, entry_point = found.groups()
        if entry_point is not None:
            yield entry_point.rpartition(".")[::2][0], entry_point.rpartition(".")[2]
        elif plain is not None:
            for name in plain.split(","):
                yield name.split(" as ")[0].strip(), ""
        else:
            package = (
                f"{module}.{source[1:]}" if source.startswith(".") else source
            )  # stubs of packages are relative
            for name in names.strip("()").split(","):
                if word := name.split("#")[0].split(" as ")[0].strip():
                    yield package, word


_IMPORT = re.compile(
    r"""^[ \t]*from\ ([\w.]+)\ import\ (\([^)]*\)|[^\n#]+)
    | ^[ \t]*import\ ([\w.,\ ]+)
    | "([\w.]+):\w+" """,
    re.MULTILINE | re.VERBOSE,
)
"""Imports, and the objects that entry points and `Command` name: `"kschedfw.cli.pending:app"`."""


def selected(changed: Iterable[str], suites: list[str]) -> list[str]:
    """Return what pytest gets: test files, or all `suites`."""
    python: list[Path] = []
    data: list[Path] = []
    for name in changed:
        path = REPOSITORY / name
        if name in SHARED:
            return suites
        if path.suffix in (".py", ".pyi") and not name.startswith(WITHOUT_TESTS):
            python.append(path)
        elif any(PurePosixPath(name).is_relative_to(suite) for suite in suites):
            data.append(path.parent)
        elif not name.startswith(WITHOUT_TESTS) and path.suffix != ".md":
            return suites
    sources = [
        REPOSITORY,
        *REPOSITORY.glob("plugins/*/src"),
        *(REPOSITORY / suite for suite in suites if "/" in suite),
    ]
    folders = [
        REPOSITORY / "kschedfw",
        *REPOSITORY.glob("plugins/*/src"),
        *(REPOSITORY / suite for suite in suites),
    ]
    graph = ImportGraph(sources, folders)
    outside = [path for path in python if CORE not in path.parents]
    affected = {file for file in graph.affected(python) if REPOSITORY / "tests" in file.parents}
    affected |= graph.affected(outside)
    tests = {file for file in affected if file.name.startswith("test_") and file.exists()}
    tests |= {file for folder in data for file in folder.parent.glob("test_*.py")}
    tests |= {file for folder in data for file in folder.glob("test_*.py")}
    return sorted(str(test.relative_to(REPOSITORY)) for test in tests if _in(test, suites))


def _in(test: Path, suites: list[str]) -> bool:
    return any((REPOSITORY / suite) in test.parents for suite in suites)


if __name__ == "__main__":
    print("\n".join(selected(changed_paths(), sys.argv[1:] or ["tests"])))
