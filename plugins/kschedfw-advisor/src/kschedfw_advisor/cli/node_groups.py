"""`--node-group`: groups of nodes that could be added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kschedfw.cli import UsageError, tell
from kschedfw_advisor.node_groups import NodeGroup, NodeGroupError, read_node_groups

NodeGroupOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Nodes that could be added: Node manifests, or mappings with name, template, min, max, price, selector. "
        "Repeatable.",
    ),
]


def node_groups_of(paths: Sequence[Path]) -> tuple[NodeGroup, ...]:
    """The groups in the files.

    Raises:
        UsageError: files are wrong. The message has a single problem; several are printed to stderr.
    """
    try:
        return read_node_groups(paths)
    except NodeGroupError as error:
        if len(error.problems) == 1:
            raise UsageError(error.problems[0]) from None
        tell(error.problems)
        raise UsageError(f"{len(error.problems)} problems in the node groups, so nothing was done") from None
