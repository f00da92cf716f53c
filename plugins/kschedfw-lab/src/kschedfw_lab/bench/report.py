"""A benchmark's report: measurements or growth, and the machine."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version

import attrs

from kschedfw import Evaluation, ExtensionPoint, Profile
from kschedfw_lab.bench.forms import FormsComparison
from kschedfw_lab.bench.growth import LIMIT_BYTES, Axis, GrowthRow
from kschedfw_lab.bench.memo import PluginUse, together
from kschedfw_lab.bench.results import Measurement
from kschedfw_lab.bench.stage import ALL_NODES
from kschedfw_lab.bench.yardstick import (
    SIDE_BY_SIDE_SOURCE,
    SOURCE,
    kube_scheduler_pods_per_second,
    side_by_side_pods_per_second,
)


@attrs.frozen
class Machine:
    """The machine and the versions that the figures were measured with."""

    system: str
    cpus: int
    python: str
    kschedfw: str
    numpy: str

    @classmethod
    def this(cls) -> Machine:
        return cls(
            system=f"{platform.system()} {platform.machine()}",
            cpus=os.cpu_count() or 1,
            python=f"{platform.python_implementation()} {platform.python_version()}"
            # Python before 3.13 lacks this function, and always has the GIL.
            + ("" if getattr(sys, "_is_gil_enabled", lambda: True)() else " without GIL"),
            kschedfw=version("kschedfw"),
            numpy=version("numpy"),
        )


@attrs.frozen
class BenchReport:
    """Measurements in the order in which they were made, or the rows of a growth table if there is an axis.

    `baseline` has the same measurements with the default profile, if `profile` is another one. `source` is the file of
    the profile, if any. If the forms of one plugin were compared, `forms` is set and there are no measurements.
    """

    machine: Machine
    profile: Profile
    evaluation: Evaluation
    measurements: Sequence[Measurement] = ()
    baseline: Sequence[Measurement] = ()
    axis: Axis | None = None
    growth: Sequence[GrowthRow] = ()
    interrupted: bool = False
    source: str = ""
    forms: FormsComparison | None = None

    def baseline_of(self, measurement: Measurement) -> Measurement | None:
        """Return the same measurement with the default profile; None if there is none."""
        return next((each for each in self.baseline if _what(each) == _what(measurement)), None)

    @property
    def plugins(self) -> tuple[PluginUse, ...]:
        """Return how often the profile's plugins were called, over all measurements with 100 % of the nodes.

        If there are none of these, over all measurements.
        """
        measured = [*self.measurements, *(row.measurement for row in self.growth)]
        every = [each for each in measured if each.percentage == ALL_NODES] or measured
        return together([use for each in every for use in each.plugins])

    def to_json(self) -> dict[str, object]:
        """The report in types that `json.dumps` knows; the keys are part of kschedfw's interface."""
        return {
            "machine": attrs.asdict(self.machine),
            "profile": [{"name": name, "weight": weight} for name, weight in self._plugins().items()],
            "evaluation": self.evaluation.value,
            "profileSource": self.source or None,
            "interrupted": self.interrupted,
            "measurements": [_with_yardstick(measurement) for measurement in self.measurements],
            "baseline": [_with_yardstick(measurement) for measurement in self.baseline],
            "yardstick": SOURCE,
            "yardstickSideBySide": SIDE_BY_SIDE_SOURCE,
            "growth": None
            if self.axis is None
            else {
                "axis": self.axis.value,
                "limitBytesEach": LIMIT_BYTES.get(self.axis),
                "rows": [row.to_json() for row in self.growth],
            },
            "forms": None if self.forms is None else self.forms.to_json(),
            "plugins": [use.to_json() for use in self.plugins],
        }

    def _plugins(self) -> dict[str, int]:
        """Return the profile's plugins with the weights of their scores; 0 for plugins that don't score."""
        listed = (*self.profile.multi_point, *self.profile.points.get(ExtensionPoint.SCORE, ()))
        return dict.fromkeys(self.profile.plugin_names, 0) | {plugin.name: plugin.weight for plugin in listed}


def _what(measurement: Measurement) -> tuple[object, ...]:
    return measurement.workload, measurement.part, measurement.percentage


def _with_yardstick(measurement: Measurement) -> dict[str, object]:
    return measurement.to_json() | {
        "kubeSchedulerPodsPerSecond": kube_scheduler_pods_per_second(measurement),
        "kubeSchedulerSideBySidePodsPerSecond": side_by_side_pods_per_second(measurement),
    }
