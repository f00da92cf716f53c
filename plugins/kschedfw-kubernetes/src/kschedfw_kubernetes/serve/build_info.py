"""The scheduler's version, and the features of kube-scheduler that it has."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import version
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kschedfw.config import REFERENCE, FeatureGates, Stage

NAME: Final = "kschedfw"
EMULATED: Final = REFERENCE
"""The minor version of kube-scheduler whose behaviour kschedfw reproduces."""


def own_version() -> str:
    """Return the version of the installed distribution, such as `0.1.0`."""
    return version(NAME)


def interpreter() -> str:
    """Return the Python implementation and version, such as `CPython 3.12.4`."""
    return f"{platform.python_implementation()} {platform.python_version()}"


class BuildInfo(Collector):
    """`kubernetes_build_info` and `kubernetes_feature_enabled`, under the names and labels of component-base.

    `git_version` is a semantic version of Kubernetes, with kschedfw's own version after the plus. Alerts on version
    skew read the part before the plus, and would always fire if it were kschedfw's. The labels for Go, the commit and
    the date are empty, since a wheel has none of these. A feature counts as enabled if kschedfw has its behaviour.
    """

    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def collect(self) -> Iterable[Metric]:
        major, _, minor = EMULATED.partition(".")
        labels = {
            "major": major,
            "minor": minor,
            "git_version": f"v{EMULATED}.0+{NAME}.{own_version().replace('+', '.')}",
            "git_commit": "",
            "git_tree_state": "",
            "build_date": "",
            "go_version": "",
            "compiler": interpreter(),
            "platform": f"{platform.system().lower()}/{_architecture()}",
        }
        build = GaugeMetricFamily(
            "kubernetes_build_info",
            "1, labelled by the version of Kubernetes whose scheduler this is, by its own, and by the interpreter.",
            labels=tuple(labels),
        )
        build.add_metric(tuple(labels.values()), 1)
        features = GaugeMetricFamily(
            "kubernetes_feature_enabled",
            "Whether a feature of kube-scheduler is there (1) or not (0), by its name and stage.",
            labels=("name", "stage"),
        )
        for name, state, is_here in self._gates.features:
            # The stage of a generally available feature is empty in Kubernetes.
            stage = "" if state.stage is Stage.GA else state.stage.upper()
            features.add_metric((name, stage), float(is_here))
        yield from (build, features)


def _architecture() -> str:
    """Return the machine's architecture by its name in Go."""
    machine = platform.machine()
    return {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}.get(machine, machine)
