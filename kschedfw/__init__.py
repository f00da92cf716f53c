"""kschedfw: a pluggable scheduling framework with the semantics of kube-scheduler.

The names in `__init__.pyi` are the public interface, together with those in `__all__` of `kschedfw.api`,
`kschedfw.cluster`, `kschedfw.simulator`, `kschedfw.what_if`, `kschedfw.compare`, `kschedfw.experiments`,
`kschedfw.explain` and `kschedfw.testing`; everything else may change. A name's module is imported when the name is
first used, so importing kschedfw is quick.

The reference in the documentation (docs/reference.md) has them by audience.
"""

from importlib.metadata import version as _version

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

__version__ = _version("kschedfw")
__all__ += ["__version__"]
