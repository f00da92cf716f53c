"""The subcommands `dump`, `run` and `serve-extender`."""
