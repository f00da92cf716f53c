"""Scheduling in asyncio: a scheduler whose calls are awaited, and a cluster whose methods are."""

from kschedfw.aio.bridge import AsyncCluster, ClusterBridge
from kschedfw.aio.scheduler import AsyncPlacement, AsyncScheduler, NotOpenError

__all__ = ["AsyncCluster", "AsyncPlacement", "AsyncScheduler", "ClusterBridge", "NotOpenError"]
