"""Kubernetes clusters: the cluster behind an API server, HTTP extenders on both sides, Prometheus metrics.

The names are in `__init__.pyi`. The module of a name is imported when the name is first used.
"""

from kschedfw.api import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
