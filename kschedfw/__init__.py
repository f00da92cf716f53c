"""kschedfw: a pluggable scheduling framework with the semantics of kube-scheduler.

The names in `__init__.pyi` are the public interface, together with those in `__all__` of the packages that the
reference in the documentation lists (docs/reference.md); everything else may change. A name's module is imported when
the name is first used, so importing kschedfw is quick.
"""

from importlib.metadata import version as _version

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

__version__ = _version("kschedfw")
__all__ += ["__version__"]
