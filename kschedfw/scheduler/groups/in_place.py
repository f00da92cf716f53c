"""Spares victims of a group while its members keep the nodes that they got without any (kube-scheduler v1.37)."""

from __future__ import annotations

from kschedfw.api import Pod
from kschedfw.api.records import frozen
from kschedfw.framework.handle import Handle
from kschedfw.framework.nodes.pod_info import PodInfo
from kschedfw.framework.preemption.units import VictimUnit
from kschedfw.framework.status import Status
from kschedfw.scheduler.groups.trial import GroupResult, MemberResult, SnapshotTrial


class ReprieveError(Exception):
    """The failure of a plugin while victims were put back."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


@frozen(eq=False)
class ReprieveInPlace:
    """Puts units back one by one, and asks the filters about each member on its node.

    The group's algorithm has run once, on `trial` without any unit, with the result `placed`. Each member's state is
    that of this run: it knows the members before it, and none after it. Members take their nodes one after the other
    while a unit is tried, and give them back at its end.
    """

    _handle: Handle
    _trial: SnapshotTrial
    _placed: GroupResult

    def spares(self, unit: VictimUnit) -> bool:
        """Put a unit back if all members still pass. Return whether they do.

        Raises:
            ReprieveError: a plugin can't update a member's state.
        """
        for pod in unit.pods:
            self._put_back(pod)
        seated: list[MemberResult] = []
        try:
            for member in self._members:
                if not self._passes(member):
                    for pod in unit.pods:
                        self._take_away(pod)
                    return False
                self._seat(member)
                seated.append(member)
            return True
        finally:
            # In reverse order, as plugins have reserved.
            for member in reversed(seated):
                self._unseat(member)

    @property
    def _members(self) -> list[MemberResult]:
        return [each for each in self._placed.members if each.assumed is not None]

    def _passes(self, member: MemberResult) -> bool:
        attempt = member.attempt
        node_info = self._handle.snapshot.get(member.node_name)
        return attempt.framework.run_filter_plugins_with_nominated_pods(
            attempt.state, attempt.pod, node_info
        ).is_success

    def _put_back(self, pod: Pod) -> None:
        self._trial.put_back([pod])
        info, node_info = PodInfo.of(pod), self._handle.snapshot.get(pod.node_name)
        for member in self._members:
            attempt = member.attempt
            _check(attempt.framework.run_pre_filter_add_pod(attempt.state, attempt.pod, info, node_info))

    def _take_away(self, pod: Pod) -> None:
        self._trial.remove([pod])
        info, node_info = PodInfo.of(pod), self._handle.snapshot.get(pod.node_name)
        for member in self._members:
            attempt = member.attempt
            _check(attempt.framework.run_pre_filter_remove_pod(attempt.state, attempt.pod, info, node_info))

    def _seat(self, member: MemberResult) -> None:
        assert member.assumed is not None
        self._trial.put_back([member.assumed])
        # kube-scheduler ignores the answer as well: the member had its reservation in the run without victims.
        member.attempt.framework.run_reserve_plugins_reserve(
            member.attempt.state, member.assumed, member.node_name
        )

    def _unseat(self, member: MemberResult) -> None:
        assert member.assumed is not None
        member.attempt.framework.run_reserve_plugins_unreserve(
            member.attempt.state, member.assumed, member.node_name
        )
        self._trial.remove([member.assumed])


def _check(status: Status) -> None:
    if not status.is_success:
        raise ReprieveError(status)
