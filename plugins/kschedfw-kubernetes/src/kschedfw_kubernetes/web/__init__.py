"""The parts of an HTTP server that several distributions share: ASGI's types, the server, the check of Host.

The names are in `__init__.pyi`. The module of a name is imported when the name is first used. `Server`, `configured`,
`listen` and `ListenError` need the extra `serve`.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
