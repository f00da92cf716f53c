"""The subcommand of this distribution; its app is imported when it is called."""

from __future__ import annotations

from typing import Final

from kschedfw.cli import Command

MCP: Final = Command("Answer agents' questions about a cluster.", "kschedfw_mcp.cli.mcp:mcp")
