"""The parts of an HTTP server that several distributions share: ASGI's types, the server, the check of Host.

The names are in `__init__.pyi`. The module of a name is imported when the name is first used. `Server`, `configured`,
`listen` and `ListenError` need the extra `serve`.
"""

from kschedfw.api import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
