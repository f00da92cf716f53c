"""Searches for weights and arguments with Optuna, and holds what it found against the default on other days."""
