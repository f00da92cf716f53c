"""The cluster of a real API server: client, reflectors, writes, events, leader election."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
