"""The cluster of a real API server: client, reflectors, writes, events, leader election."""

from kschedfw.api import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
