"""The `Cluster` protocol, where objects live, and the cluster in memory that is its embedded default.

The names are in `__init__.pyi`; a name's module is imported when the name is first used.
"""

from kschedfw.api.lazy import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
