"""One run of a policy with a seed."""

from __future__ import annotations

from pathlib import Path

from kschedfw_lab.packing.churn import churn
from kschedfw_lab.packing.compaction import compacted
from kschedfw_lab.packing.policies import Policy
from kschedfw_lab.packing.workload import read_trace
from kschedfw_lab.reproduction import Measured


def measure(nodes: Path, pods: Path, policy: Policy, seed: int) -> Measured:
    """Return all metrics of a policy with a seed."""
    trace = read_trace(nodes, pods)
    return {
        **churn(trace, policy, seed),
        "machines": compacted(trace, policy, seed),
        "machines.without_gpus": compacted(trace.without_gpus(), policy, seed),
    }, {}
