"""Measures how fast a profile schedules, and how much memory that takes, on workloads like scheduler_perf's."""
