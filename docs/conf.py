"""How Sphinx makes a site of these pages: `make docs`."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "kschedfw"
author = "the maintainers of kschedfw"
release = version = version_of("kschedfw")

extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "changelog.d"]

html_theme = "furo"
html_title = f"kschedfw {release}"

myst_heading_anchors = 4
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
