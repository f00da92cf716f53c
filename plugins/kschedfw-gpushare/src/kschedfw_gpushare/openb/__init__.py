"""Measures policies, plugins and configurations on the OpenB trace, by the protocol of Weng et al., USENIX ATC '23.

python -m kschedfw_gpushare.openb --data DIR
python -m kschedfw_gpushare.openb --data DIR --policy FGD --plugin MyPlugin --config profile.yaml

The trace's pods are shuffled, and copies of randomly drawn ones appended until they ask for 1.3 times the GPUs of the
cluster. They are scheduled one by one in that order; none leaves, and one that fits nowhere is dropped. What is
measured is how much of all GPUs is allocated as more and more arrives, and how much of what is idle is fragmented.
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
