"""Measures policies, plugins and configurations on the OpenB trace, by the protocol of Weng et al., USENIX ATC '23.

    python -m kschedfw_gpushare.openb --data DIR
    python -m kschedfw_gpushare.openb --data DIR --policy FGD --plugin MyPlugin --config profile.yaml

The trace's pods are shuffled. Copies of randomly drawn pods are appended until all pods request 1.3 times the cluster's
GPUs. The pods are scheduled one by one in that order. No pod leaves, and a pod that fits nowhere is dropped. Two curves
are measured while pods arrive: the allocated share of all GPUs, and the fragmented share of idle GPUs.
"""

from kschedfw_gpushare.openb.contenders import OfConfiguration, OfPlugin, OfPolicy
from kschedfw_gpushare.openb.replay import FailedRunError, Run, replay
from kschedfw_gpushare.openb.trace import Trace, TraceError

__all__ = [
    "FailedRunError",
    "OfConfiguration",
    "OfPlugin",
    "OfPolicy",
    "Run",
    "Trace",
    "TraceError",
    "replay",
]
