"""Recordings on disk: their format, writing and reading."""
