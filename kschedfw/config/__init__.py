"""Configurations: KubeSchedulerConfiguration documents, the default profile, feature gates, and what extends them.

The names are in `__init__.pyi`; a name's module is imported when the name is first used: a scheduler with the default
profile reads no YAML.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
