"""The `kschedfw` command, and helpers for commands of other distributions.

The names are in `__init__.pyi`; a name's module is imported when the name is first used. All but `Command` and
`main` need the extra `cli`.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
