"""Writes the comment on a pull request: which pods fare differently, from the output of `kschedfw compare --json`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

MOST = 30
"""The most pods that the comment lists; GitHub refuses comments of more than 65,536 characters."""


def comment_of(comparison: dict[str, Any]) -> str:
    """Return the comment as Markdown; its first line has the number of pods for the action's output."""
    (moves,) = comparison["moves"]
    found = moves["moves"]
    before, after = comparison["runs"]
    lines = [
        f"<!-- moved: {len(found)} -->",
        "### What this change of the policy does",
        "",
        "| | before | after |",
        "| --- | ---: | ---: |",
        f"| pods placed | {before['pods']['placed']:,} | {after['pods']['placed']:,} |",
        f"| pods without a node | {_without(before):,} | {_without(after):,} |",
        f"| nodes in use | {before['nodesInUse']:,} | {after['nodesInUse']:,} |",
        "",
    ]
    if not found:
        return "\n".join([*lines, f"None of {before['pods']['total']:,} pods would fare differently.", ""])
    lines += [
        f"{len(found):,} of {before['pods']['total']:,} pods would fare differently:",
        "",
        "| pod | before | after |",
        "| --- | --- | --- |",
    ]
    # Pods that lose their place first: they are what a reviewer has to see.
    found = sorted(found, key=lambda move: (_place(move["before"]) is None) - (_place(move["after"]) is None))
    lines += [
        f"| {move['pod']} | {_told(move['before'])} | {_told(move['after'])} |" for move in found[:MOST]
    ]
    if len(found) > MOST:
        lines += ["", f"and {len(found) - MOST:,} more"]
    for failure in comparison["failed"]:
        lines += ["", f"`--fail-on {failure['condition']}` holds."]
    return "\n".join([*lines, ""])


def _without(run: dict[str, Any]) -> int:
    return int(run["pods"]["total"]) - int(run["pods"]["placed"])


def _place(decision: dict[str, Any] | None) -> str | None:
    return decision["node"] if decision is not None and decision["outcome"] == "placed" else None


def _told(decision: dict[str, Any] | None) -> str:
    place = _place(decision)
    if place is not None:
        return place
    # A message may have the separator of columns.
    message = "" if decision is None else decision["message"].replace("|", "\\|").replace("\n", " ")
    return f"no node: {message[:200]}" if message else "no node"


if __name__ == "__main__":
    sys.stdout.write(comment_of(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
