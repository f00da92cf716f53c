"""What plugins that go by measured load have in common."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from kschedfw import Handle, Node, Plugin
from kschedfw_loadaware.args import SourceArgs
from kschedfw_loadaware.collector import Collector
from kschedfw_loadaware.sources import MetricsSource

SourceArgsT = TypeVar("SourceArgsT", bound=SourceArgs)


class MeasuredPlugin(Plugin[SourceArgsT]):
    """Has a collector of metrics, from where the arguments say, or in a subclass from a `source` of its own."""

    source: ClassVar[MetricsSource | None] = None

    def __init__(self, args: SourceArgsT, handle: Handle) -> None:
        super().__init__(args, handle)
        source = self.source
        if source is None:
            source = args.make_source(lambda: handle.cluster.list(Node))
        self._collector = Collector(source, handle.clock.now)
