"""The objects that are scheduled, and their reading from manifests.

The names are in `__init__.pyi`; a name's module is imported when the name is first used.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
