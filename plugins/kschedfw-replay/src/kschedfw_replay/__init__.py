"""Recordings of real clusters, and other policies on them.

The names are in `__init__.pyi`; a name's module is imported when the name is first used.
"""

from kschedfw.api import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
