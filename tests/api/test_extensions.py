"""How to install what is missing: from the checkout that kschedfw was installed from, else from an index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kschedfw.api.extensions import checkout, how_to_install


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in which kschedfw is installed, instead of the tests' own one; returns its metadata's."""
    metadata = tmp_path / "site" / "kschedfw-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kschedfw\nVersion: 1.0\n")
    monkeypatch.setattr("sys.path", [str(metadata.parent)])
    return metadata


def record(metadata: Path, url: str, *, is_editable: bool = False) -> None:
    recorded = {"url": url, "dir_info": {"editable": True} if is_editable else {}}
    (metadata / "direct_url.json").write_text(json.dumps(recorded))


def test_from_a_checkout_its_own_projects_are_installed(site: Path, tmp_path: Path) -> None:
    place = tmp_path / "my checkout"
    project = place / "plugins" / "kschedfw-lab"
    project.mkdir(parents=True)
    record(site, place.as_uri(), is_editable=True)
    assert checkout() == (place, True)
    assert how_to_install("kschedfw-lab") == f"pip install '{project}'"
    assert how_to_install("kschedfw-lab", "gym") == f"pip install --editable '{project}[gym]'"
    assert how_to_install("kschedfw", "html") == f"pip install --editable '{place}[html]'"
    assert how_to_install("kschedfw-others") == "pip install kschedfw-others"


def test_an_extra_of_a_checkout_that_is_not_editable_is_installed_likewise(
    site: Path, tmp_path: Path
) -> None:
    record(site, tmp_path.as_uri())
    assert how_to_install("kschedfw", "html") == f"pip install '{tmp_path}[html]'"


def test_from_an_index_so_is_the_rest(site: Path) -> None:
    assert checkout() is None
    assert how_to_install("kschedfw-lab") == "pip install kschedfw-lab"
    assert how_to_install("kschedfw-lab", "gym") == "pip install 'kschedfw-lab[gym]'"


def test_from_an_archive_on_the_web_it_is_the_same(site: Path) -> None:
    record(site, "https://example.com/kschedfw-1.0.tar.gz")
    assert how_to_install("kschedfw", "html") == "pip install 'kschedfw[html]'"
    assert how_to_install("kschedfw-lab") == "pip install kschedfw-lab"


def test_without_an_installed_kschedfw_too(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [])
    assert how_to_install("kschedfw-lab") == "pip install kschedfw-lab"
