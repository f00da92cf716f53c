"""Feature gates that change the plugins of a Policy or algorithm provider.

The defaults are those of kube-scheduler v1.20, the last version with algorithm providers. A gate that was locked or
removed by then can still be set here, to get the behaviour of an older version. v1.23 dropped these gates together with
the Policies.
"""

from __future__ import annotations

from typing import Final

from kschedfw.config import FeatureGate, GateState, Stage

EVEN_PODS_SPREAD: Final = "EvenPodsSpread"
DEFAULT_POD_TOPOLOGY_SPREAD: Final = "DefaultPodTopologySpread"
RESOURCE_LIMITS: Final = "ResourceLimitsPriorityFunction"
TAINT_NODES_BY_CONDITION: Final = "TaintNodesByCondition"
DISABLE_PREEMPTION: Final = "DisablePreemption"

_DEFAULTS, _REMOVED = "1.20", "1.23"

DEFAULT_POD_TOPOLOGY_SPREAD_GATE: Final = FeatureGate(
    {_DEFAULTS: GateState(Stage.BETA, True)},
    "PodTopologySpread with its system defaults replaces SelectorSpread; "
    "without the gate SelectorSpread is enabled",
    removed=_REMOVED,
)
DISABLE_PREEMPTION_GATE: Final = FeatureGate(
    {_DEFAULTS: GateState(Stage.DEPRECATED, False)},
    "DefaultPreemption is disabled, as by the field disablePreemption until v1.18",
    instead="disable DefaultPreemption at postFilter instead",
    removed=_REMOVED,
)
EVEN_PODS_SPREAD_GATE: Final = FeatureGate(
    {_DEFAULTS: GateState(Stage.GA, True)},
    "PodTopologySpread is enabled by default and has the names EvenPodsSpread and EvenPodsSpreadPriority",
    removed=_REMOVED,
)
RESOURCE_LIMITS_GATE: Final = FeatureGate(
    {_DEFAULTS: GateState(Stage.ALPHA, False)},
    "ResourceLimits is enabled by default with weight 1 and has the name ResourceLimitsPriority",
    removed=_REMOVED,
)
TAINT_NODES_BY_CONDITION_GATE: Final = FeatureGate(
    {_DEFAULTS: GateState(Stage.GA, True)},
    "a node's conditions are represented by taints; "
    "without the gate the CheckNode… plugins check its conditions",
    removed=_REMOVED,
)
