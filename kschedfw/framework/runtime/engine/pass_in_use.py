"""The choice between the two forms of the pass: compiled, or with NumPy."""

from __future__ import annotations

import sys
from functools import cache
from typing import Final, cast

from kschedfw.framework.runtime.engine.passes import Pass

_LARGE: Final = 256
"""The number of nodes from which on Numba, whose loading takes half a second, is loaded early."""
_PODS_IN_LARGE: Final = 32
"""The number of pods that are placed with NumPy in a large cluster, so that questions about a few load nothing."""
_PODS_IN_SMALL: Final = 10_000
"""The number of pods in a smaller one, where the compiled pass spares 50 µs a pod."""
_PODS_WHILE_BINDING: Final = 5_000
"""The number of pods where others are bound in the background.

While Numba is loaded, for 0.6 s of processor time, no pod is decided, so the API server has nothing to do. The compiled
pass spares 0.13 ms a pod on 500 nodes, 0.24 ms on 5,000.
"""

MOST_FOLLOWED: Final = 1000
"""The number of nodes up to which pods with kept totals don't count as placed: either form looks at a node or two.

`kschedfw run` took 1.98 s of processor time and 100 MiB for 1,000 pods alike on 500 nodes without Numba; 2.24 s and
227 MiB with it.
"""


def pass_for(nodes: int, pods: int, *, binds_in_background: bool = False) -> Pass:
    """Return the form for the next pod, which looks at so many nodes. `pods` is the number of those that did before.

    For `binds_in_background` see `Parts`. Loading Numba must pay, unless another framework or the user's own code has
    loaded it. Both forms compute the same numbers, so the choice changes no decision.
    """
    if "numba" not in sys.modules:
        enough = _PODS_IN_LARGE if nodes >= _LARGE else _PODS_IN_SMALL
        if pods < (max(enough, _PODS_WHILE_BINDING) if binds_in_background else enough):
            return with_numpy()
    return compiled_pass() or with_numpy()


@cache
def compiled_pass() -> Pass | None:
    """Return the compiled form; None without Numba."""
    try:
        from kschedfw.framework.runtime.engine import _pass  # Numba takes a while to load, and may be missing
    except ImportError:
        return None
    return cast("Pass", _pass)


@cache
def with_numpy() -> Pass:
    """Return NumPy's form."""
    from kschedfw.framework.runtime.engine import numpy_pass  # only where it is used

    return cast("Pass", numpy_pass)
