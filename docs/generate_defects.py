"""Writes docs/defects.md from docs/defects.toml: `python docs/generate_defects.py`."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
TABLE: Final = HERE / "defects.toml"
PAGE: Final = HERE / "defects.md"
BEGIN: Final = """\
# Defects

For everyone who asks how far kschedfw can be trusted: after this page you know what was wrong on the main branch once,
how it was found, and which test fails if it comes back.

<!-- Written by docs/generate_defects.py from docs/defects.toml. Change that. -->

The list has defects that changed a decision, lost or delayed something, took memory or time without bound, or told
something wrong. How one was found is taken from the message of the commit that mended it or, where that is silent, from
the kind of the test that came with it.

| how | |
| --- | --- |
| beside kube-scheduler | the same cluster given to both, on a real API server |
| a recording | decisions and events recorded from kube-scheduler or from a cluster |
| a property | drawn input: Hypothesis, streams of changes, hostile input, contracts of plugins |
| a trial | soak, faults, and very large or very long input |
| a user's trial | somebody who used it for a purpose of their own |
| a reading | a review of the code |

`make planted` puts the defects marked **↺** back, one after the other in a copy of the checkout, and runs their tests:
each must fail.
"""


def written(defects: Sequence[Mapping[str, Any]]) -> str:
    """The page for these defects."""
    found = Counter(each["found"] for each in defects)
    counts = ", ".join(f"{how} {number}" for how, number in found.most_common())
    planted = sum("now" in each for each in defects)
    rows = ["| defect | found by | mended in | test |", "| --- | --- | --- | --- |"]
    for each in defects:
        mark = " **↺**" if "now" in each else ""
        rows.append(f"| {each['what']}{mark} | {each['found']} | {each['commit']} | `{each['test']}` |")
    summary = f"{len(defects)} defects, found by: {counts}. {planted} of them are put back."
    return "\n".join([BEGIN, summary, "", *rows, ""])


if __name__ == "__main__":
    PAGE.write_text(written(tomllib.loads(TABLE.read_text(encoding="utf-8"))["defect"]), encoding="utf-8")
