"""Dynamic resource allocation: devices that pods claim (resource.k8s.io/v1), for kschedfw.

The plugin `DynamicResources` allocates them, `ClaimController` makes claims from templates in a cluster in memory, and
`kschedfw_devices.cel` has the selectors of devices. The names in `__init__.pyi` are imported when they are first used.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
