"""Learned batch forms: which parts of its arguments a pure hook reads, and its answers by the values of those parts."""
