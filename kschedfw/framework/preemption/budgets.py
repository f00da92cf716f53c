"""PodDisruptionBudgets, and the evictions that violate them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kschedfw.api import Pod, PodDisruptionBudget, Selector, as_selector
from kschedfw.api.records import frozen
from kschedfw.framework.nodes.pod_info import PodInfo


@frozen
class _Budget:
    namespace: str
    selector: Selector
    allowed: int
    disrupted: Mapping[str, str]

    def covers(self, pod: Pod) -> bool:
        # The eviction of a disrupted pod was already subtracted from the budget by the API server.
        return (
            pod.namespace == self.namespace
            and self.selector.matches(pod.labels)
            and pod.name not in self.disrupted
        )


@frozen
class DisruptionBudgets:
    """The PodDisruptionBudgets of a cluster with their selectors compiled, once for all nodes of a dry run.

    A budget whose selector is absent or empty covers no pod, and a pod without labels is covered by none. With
    `ends_at_first` (v1.37) a pod that violates a budget isn't subtracted from the budgets after it.
    """

    _budgets: tuple[_Budget, ...] = ()
    _ends_at_first: bool = False

    @classmethod
    def of(cls, budgets: Iterable[PodDisruptionBudget], *, ends_at_first: bool = False) -> DisruptionBudgets:
        compiled = (
            _Budget(
                each.namespace,
                as_selector(each.spec.selector),
                each.status.disruptions_allowed,
                each.status.disrupted_pods,
            )
            for each in budgets
        )
        return cls(tuple(budget for budget in compiled if not budget.selector.everything), ends_at_first)

    def violated(self, units: Sequence[Sequence[Pod]]) -> list[bool]:
        """Return for each unit whether evicting it after the units before it violates a budget.

        The pods of a unit are subtracted up to the first that violates a budget; the unit's other pods aren't.
        """
        left = [budget.allowed for budget in self._budgets]
        return [any(self._takes_too_much(pod, left) for pod in unit) for unit in units]

    def violations(self, units: Sequence[Sequence[Pod]]) -> list[int]:
        """Return for each unit how many of its pods violate a budget, evicted after the units before it.

        Semantics: kube-scheduler v1.37 `FilterVictimsWithPDBViolation`.
        """
        left = [budget.allowed for budget in self._budgets]
        return [sum(self._takes_too_much(pod, left) for pod in unit) for unit in units]

    def _takes_too_much(self, pod: Pod, left: list[int]) -> bool:
        """Subtract a pod's eviction from the budgets that cover it. Return whether one falls below 0."""
        violates = False
        for index, budget in enumerate(self._budgets):
            if pod.labels and budget.covers(pod):
                left[index] -= 1
                violates |= left[index] < 0
                if violates and self._ends_at_first:
                    break
        return violates

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Split pods into those whose eviction, in this order, violates a budget, and the others; orders are kept.

        A pod is subtracted from every budget that covers it, up to v1.36 even if one of them is violated.
        """
        left = [budget.allowed for budget in self._budgets]
        violating: list[PodInfo] = []
        allowed: list[PodInfo] = []
        for info in pods:
            (violating if self._takes_too_much(info.pod, left) else allowed).append(info)
        return violating, allowed
