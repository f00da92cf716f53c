"""Makes the pictures of README.md: `python docs/generate_pictures.py` (the screenshot needs Chromium).

`explain.svg` is what a terminal shows of `kschedfw explain`, `explore.png` the page of `kschedfw explore`,
`pods-per-second.svg` a chart of the table in docs/beside-kube-scheduler.md.
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

from kschedfw_lab.pages.axes import BOTTOM, LEFT, RIGHT, TOP, WIDTH, Axis, general_ticks, line
from kschedfw_lab.pages.charts import Chart, Series, marked, picture
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

REPOSITORY = Path(__file__).parents[1]
PICTURES = REPOSITORY / "docs" / "pictures"
COLUMNS = 92
COMMAND = "kschedfw explain examples/capacity/cluster.yaml report"
LAST = "Behind the reasons"
"""The section of the output with which the picture ends."""
LOW = 120
"""The height of a chart, of which two are below each other."""
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


def rates() -> dict[str, list[tuple[int, int, int]]]:
    """Return nodes, kschedfw's pods/s and kube-scheduler's by the work, from the table of measurements."""
    page = (REPOSITORY / "docs" / "beside-kube-scheduler.md").read_text(encoding="utf-8")
    found: dict[str, list[tuple[int, int, int]]] = {}
    for nodes, work, cells in re.findall(
        r"^\| ([\d,]+) nodes, [\d,]+ pods, (\w+) \|(.+) \|$", page, re.MULTILINE
    ):
        ours, theirs = cells.split("|")[-2:]
        found.setdefault(work, []).append((int(nodes.replace(",", "")), int(ours), int(theirs)))
    return found


def chart() -> str:
    """Return pods/s against the number of nodes as SVG: a chart for each work, a line for each scheduler."""
    found = rates()
    x = Axis.powers([nodes for rows in found.values() for nodes, *_ in rows], LEFT, WIDTH - RIGHT)
    y = Axis(0, max(max(pair) for rows in found.values() for _, *pair in rows), LOW - BOTTOM, TOP)
    charts = [
        Chart(
            f"{work}, pods/s",
            "pods per second by nodes",
            "nodes",
            general_ticks(x, [nodes for nodes, *_ in rows]),
            general_ticks(y),
            tuple(
                Series(
                    number,
                    name,
                    line([(x.at(at), y.at(rate)) for at, rate in points]),
                    marked(points, number, x, y),
                )
                for number, name in enumerate(("kschedfw run", "kube-scheduler"))
                for points in [[(row[0], row[1 + number]) for row in rows]]
            ),
            LOW,
        )
        for work, rows in found.items()
    ]
    return picture("Pods per second by nodes, kschedfw run and kube-scheduler", charts, columns=2)


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
    (PICTURES / "pods-per-second.svg").write_text(chart(), encoding="utf-8")
    take_screenshot(PICTURES / "explore.png")
