"""What is released: the same bytes for the same sources, each archive with its licence; the bill of materials."""

from __future__ import annotations

import hashlib
import os
import runpy
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest

REPOSITORY = Path(__file__).parents[2]
RELEASE: dict[str, Any] = runpy.run_path(str(REPOSITORY / ".ci" / "release.py"))
PROJECTS: Callable[[Path], list[Path]] = RELEASE["projects"]
SOURCES = shutil.ignore_patterns(".*", "__pycache__", "tests", "benchmarks", "build", "dist")


class Built(NamedTuple):
    archives: dict[str, Path]

    @property
    def hashes(self) -> dict[str, str]:
        return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in self.archives.items()}


def built(projects: Sequence[Path], place: Path, epoch: int) -> Built:
    RELEASE["build"](projects, place, os.environ | {"SOURCE_DATE_EPOCH": str(epoch)})
    return Built({each.name: each for each in place.iterdir()})


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is built, so that its files' times and modes can be changed."""
    return shutil.copytree(REPOSITORY, tmp_path_factory.mktemp("checkout") / "sources", ignore=SOURCES)


@pytest.fixture(scope="module")
def once(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return built(PROJECTS(sources), tmp_path_factory.mktemp("once") / "dist", 1_700_000_000)


pytestmark = pytest.mark.slow


def test_every_distribution_is_built_as_sdist_and_wheel(once: Built) -> None:
    names = {path.name for path in PROJECTS(REPOSITORY)[1:]} | {"kschedfw"}
    assert len(names) > 10
    for suffix in (".tar.gz", ".whl"):
        made = {file.split("-")[0].replace("_", "-") for file in once.archives if file.endswith(suffix)}
        assert made == names


def test_every_file_of_a_package_is_in_its_wheel(once: Built, sources: Path) -> None:
    core = [
        *(sources / "kschedfw").rglob("*"),
        sources / "kschedfw_command.py",
        sources / "pytest_kschedfw.py",
    ]
    wheels = {
        file.split("-")[0]: ZipFile(path) for file, path in once.archives.items() if file.endswith(".whl")
    }
    for project in PROJECTS(sources):
        root = project / "src" if (project / "src").is_dir() else project
        files = core if root == project else (project / "src").rglob("*")
        expected = {str(file.relative_to(root)) for file in files if file.is_file()}
        name = "kschedfw" if root == project else project.name.replace("-", "_")
        assert expected
        assert expected - set(wheels.pop(name).namelist()) == set()
    assert not wheels


def test_the_same_sources_give_the_same_bytes_whatever_their_times_and_modes(
    once: Built, sources: Path, tmp_path: Path
) -> None:
    for path in sources.rglob("*.py"):
        path.chmod(0o600)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    # Each distribution is built in the same way, and takes a second: the core and two others stand for all.
    again = built(PROJECTS(sources)[:3], tmp_path / "dist", 1_700_000_000).hashes
    assert len(again) == 6
    assert again == {name: once.hashes[name] for name in again}


def test_archives_carry_the_time_that_is_given(once: Built) -> None:
    for path in once.archives.values():
        if path.suffix == ".whl":
            with ZipFile(path) as wheel:
                assert {each.date_time[:3] for each in wheel.infolist()} == {(2023, 11, 14)}
        else:
            with tarfile.open(path) as archive:
                assert {each.mtime for each in archive} == {1_700_000_000}


def test_every_archive_has_the_licence(once: Built) -> None:
    licence = (REPOSITORY / "LICENSE").read_bytes()
    for path in once.archives.values():
        if path.suffix == ".whl":
            with ZipFile(path) as wheel:
                (name,) = (each for each in wheel.namelist() if each.endswith("licenses/LICENSE"))
                assert wheel.read(name) == licence
        else:
            with tarfile.open(path) as archive:
                (name,) = (each for each in archive.getnames() if each.count("/") == 1 and "LICENSE" in each)
                stored = archive.extractfile(name)
                assert stored is not None
                assert stored.read() == licence


def test_the_bill_of_materials_has_the_digest_of_each_of_our_wheels_and_of_no_other(once: Built) -> None:
    wheels = {name: path for name, path in once.archives.items() if path.suffix == ".whl"}
    read = {wheel.name: wheel for path in wheels.values() for wheel in [RELEASE["Wheel"].read(path)]}
    bill: dict[str, Any] = {
        "metadata": {"component": {"name": "kschedfw"}},
        "components": [{"name": name} for name in read if name != "kschedfw"] + [{"name": "attrs"}],
    }
    RELEASE["with_digests"](bill, wheels.values())
    components = [bill["metadata"]["component"], *bill["components"]]
    digests = {each["hashes"][0]["content"] for each in components if "hashes" in each}
    assert digests == {once.hashes[name] for name in wheels}
    assert [each["name"] for each in components if "hashes" not in each] == ["attrs"]
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/kschedfw@{read['kschedfw'].version}"


def test_a_licence_is_its_expression_or_else_the_ids_and_names_that_are_declared() -> None:
    def component(name: str, *licences: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "version": "1", "licenses": list(licences)}

    text = "The Licence\nof many lines"
    bill = {
        "components": [
            component("named", {"license": {"name": text}}),
            component("ids", {"license": {"id": "MIT"}}, {"license": {"id": "Apache-2.0"}}),
            component("expression", {"expression": "MIT OR Apache-2.0"}),
            {"name": "silent", "version": "1"},
        ]
    }
    assert RELEASE["licences"](bill) == [
        ("expression", "1", "MIT OR Apache-2.0"),
        ("ids", "1", "Apache-2.0, MIT"),
        ("named", "1", "The Licence"),
        ("silent", "1", ""),
    ]


def test_without_a_commit_and_without_a_given_time_nothing_is_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    with pytest.raises(SystemExit, match="set SOURCE_DATE_EPOCH"):
        RELEASE["environment"]()


def test_a_python_that_is_found_but_does_not_run_counts_as_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shim = tmp_path / "python3.99"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(SystemExit, match=r"none of python3\.99 is here"):
        RELEASE["check"](tmp_path, ["python3.99"])
    assert "NOT TESTED on python3.99" in capsys.readouterr().out
