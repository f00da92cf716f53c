"""Experiments of published papers, done again."""
