"""The causes for which pods are refused in a transaction, with codes for programs: one explanation for pods alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Final

from kschedfw import Pod, Transaction
from kschedfw.api import group_key
from kschedfw.explain import Cause, causes_of
from kschedfw_advisor.workloads import likeness

MOST_KINDS: Final = 40
"""For how many kinds of pods causes are sought: each asks every filter about every node."""


def causes_by_pod(trial: Transaction, pods: Iterable[Pod]) -> Mapping[str, tuple[Cause, ...]]:
    """Return the causes that keep pods off nodes as the transaction stands, by pod key, the decisive ones first.

    Left out are members of groups, pods that fit by themselves, and pods beyond the first `MOST_KINDS` kinds.
    """
    known: dict[Hashable, tuple[Cause, ...]] = {}
    found: dict[str, tuple[Cause, ...]] = {}
    for pod in pods:
        kind = likeness(pod)
        if group_key(pod) or (kind not in known and len(known) == MOST_KINDS):
            continue
        if kind not in known:
            explanation = trial.explain(pod)
            known[kind] = causes_of(explanation) if explanation.node is None else ()
        found[pod.key] = known[kind]
    return found
