"""The base class of plugins that score by measured load."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from kschedfw import Handle, Node, Plugin
from kschedfw_loadaware.args import SourceArgs
from kschedfw_loadaware.collector import Collector
from kschedfw_loadaware.sources import MetricsSource

SourceArgsT = TypeVar("SourceArgsT", bound=SourceArgs)


class MeasuredPlugin(Plugin[SourceArgsT]):
    """A plugin with a collector of metrics.

    The arguments name the source of the metrics. A subclass may set `source` instead. Scores read the latest report,
    which changes without pods or nodes, so they aren't pure.
    """

    source: ClassVar[MetricsSource | None] = None

    def __init__(self, args: SourceArgsT, handle: Handle) -> None:
        super().__init__(args, handle)
        source = self.source
        if source is None:
            source = args.make_source(lambda: handle.cluster.list(Node))
        self._collector = Collector(source, handle.clock.now)
