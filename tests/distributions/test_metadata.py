"""What kschedfw tells a package index of itself, and that it can be built from its sdist."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
LINK = re.compile(r"!?\[([^\[\]]+)\]\(([^()]+)\)")


def links(page: str) -> list[tuple[str, str]]:
    """The text and target of each link and picture outside blocks of code."""
    return LINK.findall(re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL))


def test_its_readme_has_no_link_or_picture_that_works_in_the_repository_only() -> None:
    page = ProjectMetadata(str(REPOSITORY), PluginManager()).core.readme
    relative = [text for text, target in links(README) if not target.startswith(("https://", "#"))]
    assert len(relative) > 20
    assert [target for _, target in links(page) if not target.startswith(("https://", "#"))] == []
    assert [text for text in relative if text not in page] == []
    assert LINK.sub(r"\1", page) == LINK.sub(r"\1", README), "only links and pictures differ"


@pytest.mark.slow
def test_a_wheel_built_from_the_sdist_says_the_same_of_itself(tmp_path: Path) -> None:
    def build(target: str, project: Path, place: Path) -> Path:
        command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(place)]
        subprocess.run(command, cwd=project, check=True, capture_output=True)
        (built,) = place.iterdir()
        return built

    with tarfile.open(build("sdist", REPOSITORY, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    with zipfile.ZipFile(build("wheel", source, tmp_path / "wheel")) as wheel:
        (name,) = (each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(wheel.read(name).decode())
        names = set(wheel.namelist())
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == ProjectMetadata(str(REPOSITORY), PluginManager()).core.readme
    assert {"kschedfw/__init__.pyi", "kschedfw/api/__init__.pyi", "kschedfw/py.typed"} <= names
