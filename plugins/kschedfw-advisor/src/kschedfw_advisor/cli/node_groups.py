"""`--node-group`: groups of nodes that could be added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kschedfw.cli import FILE, UsageError, tell
from kschedfw_advisor.node_groups import NodeGroup, NodeGroupError, read_node_groups

node_group_option = click.option(
    "--node-group",
    "groups",
    multiple=True,
    type=FILE,
    callback=lambda _context, _option, paths: _groups(paths),
    metavar="FILE",
    help="Nodes that could be added: Node manifests, or mappings with name, template, min, max, price, selector. "
    "Repeatable.",
)


def _groups(paths: Sequence[Path]) -> tuple[NodeGroup, ...]:
    """Return the groups in the files.

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
