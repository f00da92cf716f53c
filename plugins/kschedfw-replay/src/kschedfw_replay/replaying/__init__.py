"""Recordings replayed: what happened, what a configuration makes of it, and how both are measured."""
