"""The site is built without a warning: no page is left out, and no link leads nowhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


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
    pages = {page.stem for page in DOCS.glob("*.md")}
    assert pages <= {page.stem for page in (tmp_path / "site").glob("*.html")}
