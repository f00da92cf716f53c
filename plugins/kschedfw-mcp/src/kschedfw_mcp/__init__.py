"""Answers to agents' questions about a cluster, by the Model Context Protocol: `kschedfw mcp`."""
