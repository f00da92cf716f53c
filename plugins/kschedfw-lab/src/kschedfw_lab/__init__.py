"""Experiments at scale: sweeps with their results, and reproductions of published experiments.

The names are in `__init__.pyi`. The module of a name is imported when the name is first used.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
