"""The controllers beside a scheduler on a cluster in memory: ours, and those of installed distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

from kschedfw.api.extensions import Extensions
from kschedfw.cluster.memory import InMemoryCluster
from kschedfw.cluster.volume_controller import VolumeController


class Controller(Protocol):
    """A controller that watches a cluster from its creation on."""

    def close(self) -> None:
        """Stop watching."""
        ...


CONTROLLERS: Final[Extensions[type[object]]] = Extensions("kschedfw.controllers", "controller", type)
"""Classes whose instances are controllers. Each is made with the cluster alone."""


def start_controllers(cluster: InMemoryCluster, *, provision_observed: bool = True) -> Sequence[Controller]:
    """Start the controllers of a simulated cluster: the `VolumeController`, then installed ones in order of names.

    Start them before the scheduler: what they make of a change is there when the scheduler hears of it.
    `provision_observed` is that of `VolumeController`.

    Raises:
        ExtensionError: the controller of a distribution can't be loaded, or two distributions offer one of its name.
    """
    started: list[Controller] = [VolumeController(cluster, provision_observed=provision_observed)]
    for name in CONTROLLERS.names():
        make = cast("Callable[[InMemoryCluster], Controller]", CONTROLLERS.load(name))
        started.append(make(cluster))
    return started
