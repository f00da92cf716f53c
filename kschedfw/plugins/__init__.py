"""The in-tree plugins, one module or package each, found through the entry-point group `kschedfw` like all others.

Modules whose names begin with an underscore are no plugins; several plugins share them. The names in
`__init__.pyi` are for plugins of other distributions that follow an in-tree one.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
