"""Analyses the results of a sweep: means with intervals, differences from a baseline, and a page with plots."""
