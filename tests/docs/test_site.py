"""The site is built without a warning; no page is left out, no link leads nowhere, every public name has an entry."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
PUBLIC_MODULES = set(
    re.findall(r"\| `(kschedfw[\w.]*)` \|", (DOCS / "reference.md").read_text(encoding="utf-8"))
)


def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    options = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "cache")]
    result = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(tmp_path / "site")],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    site = tmp_path / "site"
    pages = [page for folder in (".", "reference") for page in (DOCS / folder).glob("*.md")]
    assert [page for page in pages if not (site / page.relative_to(DOCS)).with_suffix(".html").exists()] == []
    assert public_names() - documented_names(site / "reference") == set()


def public_names() -> set[str]:
    modules = [importlib.import_module(name) for name in PUBLIC_MODULES]
    return {name for module in modules for name in module.__all__} - {"__version__"}


def documented_names(pages: Path) -> set[str]:
    """The last parts of all names that have an entry of their own; what is in several modules has one."""
    texts = [page.read_text(encoding="utf-8") for page in pages.glob("*.html")]
    return {
        name.rpartition(".")[2]
        for text in texts
        for name in re.findall(r'<dt [^>]*id="(kschedfw[\w.]+)"', text)
    }
