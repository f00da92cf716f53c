"""kschedfw: a pluggable scheduling framework with the semantics of kube-scheduler.

The names in `__init__.pyi` are the public interface, together with those in `__all__` of the packages that the
reference in the documentation lists (docs/reference.md); everything else may change. A name's module is imported when
the name is first used, so importing kschedfw is quick.
"""

import lazy_loader as _lazy

from kschedfw.api.garbage import without_collections as _without_collections

_attribute, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        # Reading the distribution's metadata takes longer than all else here.
        from importlib.metadata import version

        return version("kschedfw")
    # Half of a scheduler's modules come with the first name. Collections take an eighth of that time, and free nothing.
    with _without_collections():
        return _attribute(name)


__all__ += ["__version__"]
