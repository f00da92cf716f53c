"""A page as one file, with its data, scripts and styles in it; it loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kschedfw.api.errors import KschedfwError
from kschedfw.api.node import Node
from kschedfw.explain import Explanation
from kschedfw.pages.assets import data_block, environment, joined, style
from kschedfw.pages.decision_matrix import DecisionMatrix, decision_matrix
from kschedfw.pages.replay import replay
from kschedfw.simulator import Report, Timeline

MOST_ATTEMPTS = 20
"""Of how many attempts a page has the matrices: the last ones."""


class PageFileError(KschedfwError):
    """The error of a page that can't be written to that file; says why."""


class _Attempts(msgspec.Struct, frozen=True):
    """The attempts, and the place of the one to show first."""

    attempts: list[DecisionMatrix]
    shown: int


class StaticPage:
    """A writer of pages to a file. Obstacles are raised at once, before any work.

    Raises:
        MissingExtraError: jinja2 isn't installed.
        PageFileError: the file can't be written.
    """

    def __init__(self, file: Path) -> None:
        self._template = environment().get_template("static.html")
        self._file = file
        if file.is_dir() or not file.parent.is_dir():
            why = "is a directory" if file.is_dir() else "its directory isn't there"
            raise PageFileError(f"--html {file}: {why}")

    def write_simulation(self, nodes: Sequence[Node], timeline: Timeline, report: Report) -> None:
        """Write the map over time, the queues, and the pods that weren't placed."""
        summary = f"{report.pods:,} pods to schedule on {report.nodes:,} nodes; seed {report.seed}"
        run = (report.profile, timeline, report)
        self._write("A simulation", summary, replay(nodes, [run]), "static_simulation.js")

    def write_explanation(self, attempts: Sequence[Explanation], shown: Explanation) -> None:
        """Write the matrices of the last attempts, and the text of `kschedfw explain`."""
        kept = [each for each in attempts if each is shown or each in attempts[-MOST_ATTEMPTS:]]
        content = _Attempts([decision_matrix(each) for each in kept], kept.index(shown))
        self._write(f"Why: {shown.pod}", "", content, "static_explanation.js")

    def _write(self, heading: str, subtitle: str, content: object, module: str) -> None:
        script, styles = joined(module), style()
        policy = (
            f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(styles)}; "
            "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
        )
        page = self._template.render(
            title=f"kschedfw: {heading}",
            heading=heading,
            subtitle=subtitle,
            policy=policy,
            style=styles,
            script=script,
            data=data_block(content),
        )
        self._file.write_text(page, encoding="utf-8", errors="replace")


def _hash(text: str) -> str:
    """Return the source of this very text for a content security policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
