"""Searches for weights and arguments with Optuna, and compares the result with the default on other days."""
