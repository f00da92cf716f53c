"""Experiments at scale: sweeps with their results, and reproductions of published experiments.

The names are in `__init__.pyi`. The module of a name is imported when the name is first used.
"""

from kschedfw.api import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
