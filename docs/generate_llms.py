"""Writes docs/llms.txt from docs/index.md: `python docs/generate_llms.py`.

It is the list of pages for agents (llmstxt.org). The links lead to the pages' sources, which Sphinx publishes as text.
"""

from __future__ import annotations

import re
from pathlib import Path

INDEX = Path(__file__).parent / "index.md"
OUTPUT = Path(__file__).parent / "llms.txt"

_ROW = re.compile(r"^\| (?P<text>.+?) \| \[(?P<title>[^]]+)\]\((?P<page>[\w-]+)\.md\) \|$", re.MULTILINE)

PAGE = """\
# kschedfw

> A pluggable scheduling framework for Python with the semantics of Kubernetes' kube-scheduler v1.36: the same
> decisions, and the same messages. Its commands answer questions about a cluster (why pods are pending, what helps,
> drains, room, what if) from a dump or a live cluster, and only read.

To ask about a cluster, begin with `kschedfw pending CLUSTER --json`, or with the tools of `kschedfw mcp` (Agents).
Every command has `--help` with its exit codes.

## Pages

{pages}
"""


def written() -> str:
    """The content of the file."""
    index = INDEX.read_text(encoding="utf-8")
    rows = _ROW.finditer(index[index.index("## All pages") :])
    pages = [f"- [{row['title']}](_sources/{row['page']}.md.txt): to {row['text']}" for row in rows]
    return PAGE.format(pages="\n".join(pages))


if __name__ == "__main__":
    OUTPUT.write_text(written(), encoding="utf-8")
