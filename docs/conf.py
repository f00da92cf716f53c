"""Sphinx's configuration, for `make docs`."""

from __future__ import annotations

import gc
import sys
import tomllib
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import index
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
from figures import marked
from signatures import readable

HERE = Path(__file__).parent

# Each young collection goes through the nodes of the page that is read: at 700 objects, as usual, they take a
# quarter of the time of a build.
gc.set_threshold(1_000_000)

project = "kschedfw"
author = "the maintainers of kschedfw"
release = version = version_of("kschedfw")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "changelog.d"]

html_theme = "furo"
html_title = f"kschedfw {release}"
html_extra_path = ["llms.txt"]  # what agents read first; see docs/generate_llms.py
html_search_scorer = str(HERE / "search_scorer.js")

myst_heading_anchors = 4
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

# The reference of public names comes from the docstrings, in which `name` is code.
default_role = "code"
autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_use_ivar = True  # what a docstring lists under "Attributes" is listed once
suppress_warnings = ["ref.python"]  # several classes have a field named `type`, which annotations name, too


def mark_old_figures(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Mark the tables of figures that are older than the code; see docs/figures.py."""
    source[0] = marked(source[0])


def index_terms(app: Sphinx, document: nodes.document) -> None:
    """Put a page's terms of docs/search.toml into the index, which the search asks first."""
    terms = tomllib.loads((HERE / "search.toml").read_text(encoding="utf-8"))["terms"]
    entries = []
    for term, place in terms.items():
        page, _, section = place.partition("#")
        if page == app.env.docname:
            entries.append(("single", term, section, "main", None))
    if entries:
        document.insert(0, index(entries=entries))


def shorten_defaults(
    _app: Sphinx,
    _what: str,
    _name: str,
    _object: object,
    _options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Write default values so that they can be read; see docs/signatures.py."""
    return signature and readable(signature), returned


def setup(app: Sphinx) -> None:
    app.connect("source-read", mark_old_figures)
    app.connect("doctree-read", index_terms)
    app.connect("autodoc-process-signature", shorten_defaults)
