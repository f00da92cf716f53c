"""The site is built without a warning; no page is left out, no link leads nowhere, every public name has an entry.

Sphinx reads for half a minute. CI does so for each change, beside the other tests; links and their sections are
followed in test_links.py, too.
"""

from __future__ import annotations

import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kschedfw.testing.waiting import PATIENCE

pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.long]

DOCS = Path(__file__).parents[2] / "docs"
PUBLIC_MODULES = set(
    re.findall(r"\| `(kschedfw[\w.]*)` \|", (DOCS / "reference.md").read_text(encoding="utf-8"))
)


def test_the_site_is_read_without_warnings(tmp_path: Path) -> None:
    """Writing the HTML, as `make docs` does, takes as long again and finds nothing more.

    Nor do the types in signatures, to which a third of the time goes: no link to one of them is ever a warning.
    """
    options = ["-W", "--keep-going", "-q", "-b", "dummy", "-d", str(tmp_path / "cache")]
    options += ["-D", "autodoc_typehints=none"]
    result = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, str(DOCS), str(tmp_path / "site")],
        check=False,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    assert result.returncode == 0, result.stderr
    environment = pickle.loads((tmp_path / "cache" / "environment.pickle").read_bytes())
    pages = {page.relative_to(DOCS) for folder in (".", "reference") for page in (DOCS / folder).glob("*.md")}
    assert {str(page.with_suffix("")) for page in pages} - environment.all_docs.keys() == set()
    documented = environment.domaindata["py"]["objects"]
    assert public_names() - {name.rpartition(".")[2] for name in documented} == set()


def public_names() -> set[str]:
    modules = [importlib.import_module(name) for name in PUBLIC_MODULES]
    return {name for module in modules for name in module.__all__} - {"__version__"}
