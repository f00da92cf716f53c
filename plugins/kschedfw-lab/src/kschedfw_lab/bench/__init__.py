"""Measures the speed and the memory use of scheduling with a profile, on workloads like scheduler_perf's."""
