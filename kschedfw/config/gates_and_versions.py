"""The framework's names that users of configurations need: feature gates, versions, and the origin of a plugin."""

from kschedfw.framework.gate_table import FEATURE_GATES, GENERIC_WORKLOAD, FeatureGate, GateState, Stage
from kschedfw.framework.gates import BOOLEANS, DEFAULT_GATES, FeatureGateError, FeatureGates
from kschedfw.framework.profile import Origin
from kschedfw.framework.versions import REFERENCE, VERSIONS, VersionChange

__all__ = [
    "BOOLEANS",
    "DEFAULT_GATES",
    "FEATURE_GATES",
    "FeatureGate",
    "FeatureGateError",
    "FeatureGates",
    "GENERIC_WORKLOAD",
    "GateState",
    "Origin",
    "REFERENCE",
    "Stage",
    "VERSIONS",
    "VersionChange",
]
