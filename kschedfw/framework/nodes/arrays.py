"""The arrays that hold something by node."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
"""An array of int64: rows of a NodeTable, or scores."""
Codes = npt.NDArray[np.int32]
"""An array of int32: an index into a list of values, by node."""
