"""The versions of Kubernetes that kschedfw decides as, and the rules in which they differ.

A feature gate's state by version is in `kschedfw.framework.gate_table`. What changed without a gate is a `Rule`, in the
module of the version that changed it. `FeatureGates` knows which version's rules hold; the code that a rule changes
asks `gates.follows(RULE)` once, where it is made, and never compares versions. Other distributions ask by its name.
"""

from typing import Final

from kschedfw.framework.versions import v1_37
from kschedfw.framework.versions.rule import (
    REFERENCE,
    VERSIONS,
    Basis,
    Rule,
    VersionChange,
    is_since,
    version_number,
)

RULES: Final = v1_37.RULES
"""All rules, the oldest version's first."""

__all__ = ["REFERENCE", "RULES", "VERSIONS", "Basis", "Rule", "VersionChange", "is_since", "version_number"]
