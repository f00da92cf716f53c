"""Lets extenders with a say in preemption narrow the candidates down."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from kschedfw.api.errors import KschedfwError
from kschedfw.api.pod import Pod
from kschedfw.framework.extender import Extender, Victims
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.preemption.candidates import Candidate

logger = logging.getLogger(__name__)


class NoVictimsError(KschedfwError):
    """An extender named a node for preemption but nobody to evict there."""

    def __init__(self, node_name: str) -> None:
        super().__init__(node_name)
        self.node_name = node_name

    def __str__(self) -> str:
        return f'expected at least one victim pod on node "{self.node_name}"'


def ask_extenders(
    extenders: Iterable[Extender], pod: Pod, candidates: Sequence[Candidate], snapshot: Snapshot
) -> Sequence[Candidate]:
    """The candidates that are left, with the victims that extenders chose.

    Extenders are asked one after the other, each about what the one before left, until nothing is. One that is
    ignorable is passed over when it fails, and so are nodes for which it names no victims.

    Raises:
        NoVictimsError: an extender that isn't ignorable left a node without victims.
        Exception: whatever an extender that isn't ignorable failed with.
    """
    asked = [each for each in extenders if each.supports_preemption and each.is_interested(pod)]
    if not asked:
        return candidates
    victims_by_node = {candidate.node_name: candidate.victims for candidate in candidates}
    for extender in asked:
        if not victims_by_node:
            break
        try:
            answer = extender.process_preemption(pod, dict(victims_by_node), snapshot)
        except Exception:
            if not extender.is_ignorable:
                raise
            logger.info(
                "extender %s failed and is ignorable, so it is passed over", extender.name, exc_info=True
            )
            continue
        victims_by_node = {
            node_name: victims
            for node_name, victims in answer.items()
            if _has_victims(extender, node_name, victims)
        }
    return tuple(Candidate(node_name, victims) for node_name, victims in victims_by_node.items())


def _has_victims(extender: Extender, node_name: str, victims: Victims) -> bool:
    if victims.pods:
        return True
    if not extender.is_ignorable:
        raise NoVictimsError(node_name)
    return False
