"""Puts old defects back, and demands that their tests fail: `make planted`.

docs/defects.toml has, for some defects, the file, what is there `now` and what `was` there. Each is planted in a copy
of the last commit; then the defect's test runs there. It must pass as the code is, and fail with the defect. Without
arguments all are planted, else those of the named commits.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

import attrs

REPOSITORY: Final = Path(__file__).resolve().parents[1]
TABLE: Final = REPOSITORY / "docs" / "defects.toml"
_FAILED: Final = 1
"""pytest's exit code where tests ran and some failed: another one is no finding."""


@attrs.frozen
class Planted:
    """A defect that can be put back."""

    commit: str
    test: str
    file: str
    now: str
    was: str

    @contextmanager
    def planted(self, copy: Path) -> Iterator[None]:
        """Have the old code in the place of the present one for the time being."""
        path = copy / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.now) != 1:
            _give_up(
                f"{self.commit}: {self.file}: `now` is there {text.count(self.now)} times instead of once"
            )
        path.write_text(text.replace(self.now, self.was), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")


def read(path: Path) -> list[Planted]:
    """Read the defects that can be put back."""
    fields = attrs.fields_dict(Planted)
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["defect"]
    return [Planted(**{name: row[name] for name in fields}) for row in rows if "now" in row]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="planted", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commits", nargs="*", metavar="COMMIT", help="the commit that mended the defect")
    chosen = parser.parse_args().commits
    defects = read(TABLE)
    if unknown := set(chosen) - {each.commit for each in defects}:
        _give_up(f"no defect that can be put back was mended in {', '.join(sorted(unknown))}")
    defects = [each for each in defects if not chosen or each.commit in chosen]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        _copy_last_commit(copy)
        for defect in defects:
            sound = _run(copy, defect.test)
            with defect.planted(copy):
                found = _run(copy, defect.test)
            verdict = "broken without it" if sound else "found" if found == _FAILED else "NOT FOUND"
            print(f"{defect.commit} {verdict}: {defect.test}", flush=True)
            if verdict != "found":
                wrong.append(defect.commit)
    print(f"{len(defects) - len(wrong)} of {len(defects)} planted defects found")
    if wrong:
        _give_up(f"not found: {', '.join(wrong)}")


def _copy_last_commit(folder: Path) -> None:
    archived = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", "HEAD"], check=True, stdout=subprocess.PIPE
    )
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _run(copy: Path, test: str) -> int:
    """Run a test with the packages of the copy, and return pytest's exit code."""
    path, _, name = test.partition("::")
    sources = [copy, *sorted(copy.glob("plugins/*/src")), *sorted(copy.glob("plugins/*/tests"))]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "", path]
    done = subprocess.run(
        [*command, *(["-k", name.replace("::", " and ")] if name else [])],
        cwd=copy,
        # Before the packages that are installed from this checkout.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, sources)), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode


def _give_up(message: str) -> NoReturn:
    sys.exit(f"planted: {message}")


if __name__ == "__main__":
    main()
