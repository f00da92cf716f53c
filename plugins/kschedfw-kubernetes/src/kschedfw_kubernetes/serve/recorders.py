"""Recorders of metrics that `kschedfw run --recorder` adds to Prometheus'."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kschedfw.metrics import RECORDERS, MetricsRecorder, NoMetrics, PluginMetric

_log = logging.getLogger(__name__)

_TOLD: Final = tuple(
    name for name in vars(MetricsRecorder) if not name.startswith("_") and name != "before_reading"
)
"""The methods that tell something. Several recorders are told for every pod, since each may be read at another time."""
"""The names of a recorder's methods."""


def made_recorders(names: Sequence[str]) -> Mapping[str, MetricsRecorder]:
    """Return the recorders of these names, as installed distributions make them.

    Raises:
        ExtensionError: no installed distribution offers a recorder of this name, or it can't be loaded.
        KschedfwError: a recorder can't be made, as its distribution says.
    """
    made = {}
    for name in dict.fromkeys(names):
        offered = RECORDERS.load(name)
        with RECORDERS.calling(name):
            recorder = made[name] = offered.make()
        if missing := [each for each in _TOLD if not callable(getattr(recorder, each, None))]:
            what = f"it made a {type(recorder).__name__}, which lacks {', '.join(missing)}"
            raise RECORDERS.failure(name, what)
    return made


def all_of(own: MetricsRecorder, others: Mapping[str, MetricsRecorder]) -> MetricsRecorder:
    """Return a recorder that tells `own`, and then each of the others, by name.

    One of the others that raises is reported once in the log and told nothing more: a distribution's mistake must
    not end scheduling.
    """
    return _All(own, [_Guarded(name, recorder) for name, recorder in others.items()]) if others else own


class _Guarded:
    """A recorder of another distribution, until it raises."""

    def __init__(self, name: str, recorder: MetricsRecorder) -> None:
        self._name = name
        self._recorder = recorder
        self._failed = False

    def method(self, name: str) -> Callable[..., Any]:
        return partial(self.call, getattr(self._recorder, name))

    def call(self, told: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        if self._failed:
            return None
        try:
            return told(*args, **kwargs)
        # SystemExit as well: a recorder isn't asked whether the process goes on.
        except (Exception, SystemExit):
            self._failed = True
            _log.exception("The recorder of metrics %r failed, and is told nothing more", self._name)
            return None


class _All(NoMetrics):
    """Tells several recorders: a method of the class is replaced by one of the instance that calls theirs."""

    def __init__(self, own: MetricsRecorder, others: Sequence[_Guarded]) -> None:
        self._own = own
        self._others = others
        for name in _TOLD:
            if name != "plugin_metric":
                setattr(
                    self,
                    name,
                    _one_after_another([getattr(own, name), *(each.method(name) for each in others)]),
                )

    def plugin_metric(self, metric: PluginMetric) -> Callable[[float, tuple[str, ...]], None] | None:
        """Return a function that records a value with every recorder that wants this metric."""
        own = self._own.plugin_metric(metric)
        records = [] if own is None else [own]
        for each in self._others:
            record = each.method("plugin_metric")(metric)
            if record is not None:
                records.append(partial(each.call, record))
        return _one_after_another(records) if records else None


def _one_after_another(calls: Sequence[Callable[..., object]]) -> Callable[..., None]:
    def tell(*args: object, **kwargs: object) -> None:
        for call in calls:
            call(*args, **kwargs)

    return tell
