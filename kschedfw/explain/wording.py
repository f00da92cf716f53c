"""Evidence of in-tree plugins that are plain hooks, in the words and with the codes of explanations.

A pure filter needs no `evidence` of its own, since what it read can be shown (`learned_evidence`). These are worded
because tools act on their codes, or because the filter reads sums that don't tell whose pod it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from kschedfw.api.node import Taint
from kschedfw.api.pod import HostPort, Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.diagnosis import Evidence
from kschedfw.framework.nodes.node_info import ANY_IP, DEFAULT_PROTOCOL, HostPortInfo, NodeInfo
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.plugins._tolerations import has_untolerated_taint
from kschedfw.plugins.node_declared_features import NodeDeclaredFeatures, required_features
from kschedfw.plugins.node_name import NodeName
from kschedfw.plugins.node_ports import NodePorts, conflicts
from kschedfw.plugins.node_unschedulable import NodeUnschedulable
from kschedfw.plugins.taint_toleration import TaintToleration

Wording: TypeAlias = Callable[[AnyPlugin, CycleState, Pod, NodeInfo], Iterator[Evidence]]


def _untolerated_taints(
    plugin: AnyPlugin, _state: CycleState, pod: Pod, node_info: NodeInfo
) -> Iterator[Evidence]:
    assert isinstance(plugin, TaintToleration)
    for taint in node_info.node.spec.taints:
        if has_untolerated_taint((taint,), pod.spec.tolerations, compares=plugin.compares):
            yield _of_taint(taint)


# Thousands of nodes have the same few taints.
@lru_cache(maxsize=1024)
def _of_taint(taint: Taint) -> Evidence:
    value = f"={taint.value}" if taint.value else ""
    return Evidence(
        f"taint {taint.key}{value}:{taint.effect}",
        values={"key": taint.key, "value": taint.value, "effect": taint.effect.value},
        code="untolerated-taint",
    )


def _taken_ports(_plugin: AnyPlugin, _state: CycleState, pod: Pod, node_info: NodeInfo) -> Iterator[Evidence]:
    for wanted in pod.host_ports:
        for holder in node_info.pods:
            # Pod by pod, since the node's `used_ports` don't tell whose they are.
            if conflicts([wanted], HostPortInfo.of(holder.pod.host_ports)):
                yield _held(wanted, holder.pod)


def _held(wanted: HostPort, holder: Pod) -> Evidence:
    ip, protocol, port = wanted
    protocol = protocol or DEFAULT_PROTOCOL
    address = "" if ip in ("", ANY_IP) else f" on {ip}"
    return Evidence(
        f"hostPort {port}/{protocol}{address}",
        f"held by {holder.key}",
        values={"port": port, "protocol": protocol, "hostIP": ip or ANY_IP, "pod": holder.key},
        code="host-port",
    )


def _undeclared_features(
    _plugin: AnyPlugin, _state: CycleState, pod: Pod, node_info: NodeInfo
) -> Iterator[Evidence]:
    declared = node_info.node.status.declared_features
    for feature in sorted(required_features(pod).difference(declared)):
        yield Evidence(
            f"feature {feature}", "not declared", values={"feature": feature}, code="undeclared-feature"
        )


WORDED: Final[Mapping[type[AnyPlugin], Wording]] = {
    NodeDeclaredFeatures: _undeclared_features,
    NodePorts: _taken_ports,
    TaintToleration: _untolerated_taints,
}
"""The evidence for a refusal of a node, by the plugin that refuses it."""

UNWORDED: Final[frozenset[type[AnyPlugin]]] = frozenset((NodeName, NodeUnschedulable))
"""The plugins whose reasons say it all, so that they get no evidence."""
