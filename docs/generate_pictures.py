"""Makes the pictures of README.md: `python docs/generate_pictures.py` (the screenshot needs Chromium).

`explain.svg` is what a terminal shows of `kschedfw explain`, `explore.png` the page of `kschedfw explore`.
"""

from __future__ import annotations

import html
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

REPOSITORY = Path(__file__).parents[1]
PICTURES = REPOSITORY / "docs" / "pictures"
COLUMNS = 92
COMMAND = "kschedfw explain examples/capacity/cluster.yaml report"
LAST = "Behind the reasons"
"""The section of the output with which the picture ends."""
PAGE = ("explore", "examples/sample-cluster", "--seed", "1", "--no-progress")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def explained() -> str:
    """The beginning of what the command prints, with the colours of a terminal."""
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", *COMMAND.split()]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    end = next(number for number, line in enumerate(lines) if LAST in line)
    return "\n".join(lines[:end]).rstrip()


def terminal_picture(shown: str) -> str:
    """A terminal with the command and what it shows, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(f"[bold green]$[/] {COMMAND}", highlight=False)
    console.print(Text.from_ansi(shown))
    svg = console.export_svg(title="kschedfw explain", unique_id="explain")
    # Nobody who looks at the picture should have to fetch a font for it.
    return re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)


def words_of(svg: str) -> list[str]:
    """The words in a picture of a terminal, in order: styles and places in it change with the version of Rich."""
    return html.unescape(" ".join(re.findall(r"<text [^>]*>(.*?)</text>", svg))).split()


def take_screenshot(path: Path) -> None:
    """Serve the sample cluster, and photograph the page once it is drawn."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"generate_pictures: there is no {', '.join(BROWSERS)}")
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "kschedfw", *PAGE], cwd=REPOSITORY, stderr=subprocess.PIPE, text=True
    ) as served:
        try:
            assert served.stderr is not None
            url = next(match[0] for line in served.stderr if (match := re.search(r"http://\S+", line)))
            with sync_playwright() as playwright:
                # Without its sandbox, which doesn't work for root in a container; it sees nothing but this page.
                opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
                page = opened.new_page(viewport={"width": 1200, "height": 720})
                page.goto(url)
                page.wait_for_selector("#pending-side:not([aria-busy]) h2")
                page.screenshot(path=path)
                opened.close()
        finally:
            served.terminate()


if __name__ == "__main__":
    (PICTURES / "explain.svg").write_text(terminal_picture(explained()), encoding="utf-8")
    take_screenshot(PICTURES / "explore.png")
