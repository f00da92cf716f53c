"""The command of this distribution."""
