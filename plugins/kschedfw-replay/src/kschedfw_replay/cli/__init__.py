"""The subcommands of this distribution."""
