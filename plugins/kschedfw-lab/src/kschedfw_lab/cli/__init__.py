"""The subcommands `bench`, `compare`, `report`, `sweep` and `tune`."""
