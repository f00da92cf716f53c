"""An API server for tests: the cluster in memory behind HTTP, as a kube-apiserver would serve it.

The names are in `__init__.pyi`. The module of a name is imported when the name is first used: pytest imports this
package in projects that have no use for it.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
