"""The sweeps: which settings are run on which workloads, and for which figure of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from kschedfw_lab.cell import ARCHITECTURES
from kschedfw_lab.cell.shared_state import CommitMode, Detection
from kschedfw_lab.omega.run import Setting

T_JOBS: Final = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""The varied think times per service job, in seconds."""
BATCH_SCHEDULERS: Final = (1, 2, 4, 8, 16, 32)
RATES: Final = (4.0, 8.0, 16.0)
"""The factors of the batch jobs' arrival rate in the sweep over the number of batch schedulers."""


@attrs.frozen
class Point:
    """A setting on a workload. `rate` multiplies the arrivals of batch jobs, only in the published workload."""

    sweep: str
    workload: str
    setting: Setting
    rate: float = 1.0


def points(workloads: Mapping[str, object], scale: float = 1.0) -> Iterator[Point]:
    """Yield all points of all sweeps. `scale` multiplies the virtual time.

    * `architectures`: every architecture, by the service jobs' think time (sections 4.1 to 4.3, figures 5 to 8);
    * `schedulers`: shared state, by the number of batch schedulers and the arrivals (section 4.3, figure 9);
    * `commits`: shared state, by detection and mode, by the service jobs' think time (section 5.2, figure 14).
    """
    for workload in workloads:
        for t_job in T_JOBS:
            for architecture in ARCHITECTURES:
                yield Point(
                    "architectures", workload, Setting(architecture, t_job=t_job, seconds=7200 * scale)
                )
            for detection in Detection:
                for mode in CommitMode:
                    setting = Setting(t_job=t_job, detection=detection, mode=mode, seconds=7200 * scale)
                    yield Point("commits", workload, setting)
    if "published" in workloads:
        for rate in RATES:
            for count in BATCH_SCHEDULERS:
                setting = Setting(batch_schedulers=count, seconds=1800 * scale)
                yield Point("schedulers", "published", setting, rate)
