"""Replays of recordings: the real course, the course under a configuration, and measures of both."""
