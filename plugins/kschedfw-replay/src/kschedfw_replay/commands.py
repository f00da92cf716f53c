"""The subcommands of this distribution; their apps are imported when they are called."""
