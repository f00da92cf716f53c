"""The engine that calls the plugins of a profile."""
