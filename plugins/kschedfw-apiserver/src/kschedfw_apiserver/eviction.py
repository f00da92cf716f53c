"""Evictions (`pods/eviction`): deletions that budgets can refuse."""

from __future__ import annotations

from typing import Any, Final

from kschedfw.api import PodDisruptionBudget, as_selector
from kschedfw_apiserver import status
from kschedfw_apiserver.pod_rules import with_condition
from kschedfw_apiserver.resources import DISRUPTION_BUDGETS
from kschedfw_apiserver.store import Store, Stored

_WITHOUT_BUDGET: Final = ("Pending", "Succeeded", "Failed")
_SEVERAL: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)


def spend_budget(store: Store, pod: Stored) -> tuple[Stored, dict[str, Any]] | None:
    """Return the pod's budget, and the budget's manifest with one disruption less; None if no budget applies.

    Raises:
        StatusError: the budget allows no disruption, or there are several budgets.
    """
    manifest = pod.manifest
    if manifest["status"].get("phase") in _WITHOUT_BUDGET or "deletionTimestamp" in manifest["metadata"]:
        return None
    labels, (namespace, name) = manifest["metadata"].get("labels") or {}, pod.key
    budgets = [
        each
        for each in store.cluster.list(PodDisruptionBudget, namespace)
        if as_selector(each.spec.selector).matches(labels)
    ]
    if not budgets:
        return None
    if len(budgets) > 1:
        raise status.internal_error(_SEVERAL)
    budget = store.get(DISRUPTION_BUDGETS, namespace, budgets[0].name)
    assert budget is not None
    said = budget.manifest.get("status") or {}
    if said.get("observedGeneration", 0) < budget.manifest["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {budgets[0].name} is still being processed by the server.", 10)
    allowed = said.get("disruptionsAllowed", 0)
    if allowed <= 0:
        message = (
            f"The disruption budget {budgets[0].name} needs {said.get('desiredHealthy', 0)} healthy pods and has "
            f"{said.get('currentHealthy', 0)} currently"
        )
        raise _refused(message)
    disrupted = {**(said.get("disruptedPods") or {}), name: store.time()}
    status_after = {**said, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}
    return budget, {**budget.manifest, "status": status_after}


def _refused(why: str, retry_after: int = 0) -> status.StatusError:
    return status.too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry_after=retry_after,
        causes=[{"reason": "DisruptionBudget", "message": why}],
    )


def marked_as_evicted(store: Store, pod: Stored) -> dict[str, Any]:
    """Return the pod with the condition that says why it is deleted."""
    pod_status = pod.manifest["status"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": store.time(),
    }
    conditions = with_condition(pod_status.get("conditions") or [], condition)
    return {**pod.manifest, "status": {**pod_status, "conditions": conditions}}
