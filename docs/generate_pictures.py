"""Makes the pictures of README.md: `python docs/generate_pictures.py` (the screenshot needs Chromium).

`explain.svg` is what a terminal shows of `kschedfw explain`, `explore.png` the page of `kschedfw explore`,
`pods-per-second.svg` a chart of the table in docs/beside-kube-scheduler.md.
"""

from __future__ import annotations

import html
import io
import math
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
CHART = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">
<title>Pods per second against nodes, kschedfw run and kube-scheduler</title>
<style>
text {{ fill: #57606a }} .head {{ fill: #24292f; font-weight: bold }}
.end {{ text-anchor: end }} .mid {{ text-anchor: middle }}
.grid {{ stroke: #d0d7de }} .line {{ fill: none; stroke-width: 2 }}
.ours {{ stroke: #0969da }} .theirs {{ stroke: #bc4c00; stroke-dasharray: 5 3 }}
circle.ours {{ fill: #0969da }} circle.theirs {{ fill: #bc4c00; stroke-dasharray: none }}
</style>
<rect width="100%" height="100%" fill="#ffffff"/>
<text class="head" x="44" y="20">pods/s by nodes</text>
<path class="line ours" d="M180 16h24"/><text x="210" y="20">kschedfw run</text>
<path class="line theirs" d="M310 16h24"/><text x="340" y="20">kube-scheduler</text>
{drawn}
</svg>
"""
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
    """Return pods/s against the number of nodes as SVG: a panel for each work, a line for each scheduler."""
    panels = rates()
    most = max(max(ours, theirs) for rows in panels.values() for _, ours, theirs in rows)
    top = 100 * math.ceil(most / 100)
    counts = sorted({nodes for rows in panels.values() for nodes, *_ in rows})
    width, height, gap, left, above = 190, 150, 24, 44, 52

    def x(panel: int, nodes: int) -> float:
        share = math.log(nodes / counts[0]) / math.log(counts[-1] / counts[0])
        return left + panel * (width + gap) + 14 + share * (width - 28)

    def y(rate: float) -> float:
        return above + height * (1 - rate / top)

    drawn = []
    for rate in range(0, top + 1, 200):
        drawn.append(f'<text class="end" x="{left - 6}" y="{y(rate) + 4:.0f}">{rate}</text>')
        for panel in range(len(panels)):
            begin = left + panel * (width + gap)
            drawn.append(f'<path class="grid" d="M{begin} {y(rate):.1f}h{width}"/>')
    for panel, (work, rows) in enumerate(panels.items()):
        begin = left + panel * (width + gap)
        drawn.append(f'<text class="head" x="{begin}" y="{above - 10}">{work}</text>')
        for name, column in (("theirs", 2), ("ours", 1)):
            points = [(x(panel, row[0]), y(row[column])) for row in rows]
            drawn.append(
                f'<polyline class="line {name}" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>'
            )
            drawn += [f'<circle class="{name}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>' for a, b in points]
        drawn += [
            f'<text class="mid" x="{x(panel, nodes):.1f}" y="{above + height + 18}">{nodes:,}</text>'
            for nodes in counts
        ]
    return CHART.format(
        width=left + len(panels) * (width + gap), height=above + height + 28, drawn="\n".join(drawn)
    )


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
