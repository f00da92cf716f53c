"""Writes docs/gallery.md from docs/gallery.toml: `python docs/generate_gallery.py`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "gallery.toml"
OUTPUT = Path(__file__).parent / "gallery.md"

PAGE = """\
# Gallery

For everyone: after this page you know whose plugins and commands there are, and how yours gets listed.

<!-- Written by docs/generate_gallery.py from docs/gallery.toml. Change that. -->

This page lists distributions for kschedfw. `make downstream` installs those with plugins beside a checkout, loads each
plugin, and runs the tests that come along. [Plugins of other distributions](distributions.md) shows how those of this
repository are enabled.

## Policies

{policies}

## Commands

{commands}

## Yours

An entry in `docs/gallery.toml` by a pull request, or by the issue form "A plugin for the gallery":

```toml
[[entry]]
name = "kschedfw-quiet"
summary = "nodes that nobody else uses at night"
source = "git+https://git.example/quiet.git@v1.0"
plugins = ["Quiet"]
```

`source` is what [`make downstream DIST=…`](plugin-projects.md#downstream) takes. Its plugins must load, be those
that the entry names, and pass the tests that its distribution has; an entry that fails in two releases in a row is
taken out.
"""


def gallery_page() -> str:
    """The text of docs/gallery.md."""
    entries = tomllib.loads(DATA.read_text(encoding="utf-8"))["entry"]
    return PAGE.format(policies=_table(entries, "plugins"), commands=_table(entries, "commands"))


def _table(entries: list[dict[str, Any]], offered: str) -> str:
    rows = [
        f"| {_name(each)} | {each['summary']} | {', '.join(f'`{name}`' for name in each[offered])} |"
        for each in entries
        if offered in each
    ]
    return "\n".join([f"| distribution | for | {offered} |", "| --- | --- | --- |", *rows])


def _name(entry: dict[str, Any]) -> str:
    link = entry["source"].removeprefix("git+").partition("#")[0]
    return f"[{entry['name']}]({link})" if "://" in link else f"`{entry['name']}`"


if __name__ == "__main__":
    OUTPUT.write_text(gallery_page(), encoding="utf-8")
