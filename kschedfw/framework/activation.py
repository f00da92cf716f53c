"""Pods that a plugin wants tried again soon (kube-scheduler `PodsToActivate`)."""

from __future__ import annotations

from collections.abc import Sequence

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState, StateKey

_PODS = StateKey[dict[str, Pod]]("kschedfw.pods_to_activate")


def activate_pods(state: CycleState, *pods: Pod) -> None:
    """Have these pods leave their wait for events or backoff when this pod's cycle has succeeded.

    For hooks from reserve to post_bind: a gang scheduler calls in its siblings this way.
    """
    if _PODS not in state:
        state.write(_PODS, {})
    state.read(_PODS).update({pod.uid: pod for pod in pods})


def take_pods_to_activate(state: CycleState) -> Sequence[Pod]:
    """What was asked for since the last call."""
    if _PODS not in state:
        return ()
    pods = tuple(state.read(_PODS).values())
    state.delete(_PODS)
    return pods
