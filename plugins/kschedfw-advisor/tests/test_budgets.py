"""What budgets allow that no controller has seen yet: the rules of the disruption controller."""

from __future__ import annotations

import pytest
from kschedfw_advisor.budgets import Budgets
from small_clusters import budget, node, owned, running, what_if

from kschedfw import Pod, make_pod
from kschedfw.api import PodDisruptionBudget
from kschedfw.api.manifests import parse_manifests
from kschedfw.what_if.what_if import WhatIf


def allowed(cluster: WhatIf, *missing: Pod) -> int:
    with cluster.transaction() as trial:
        Budgets(cluster.cluster).update(trial, missing)
        (found,) = cluster.cluster.list(PodDisruptionBudget)
    return found.status.disruptions_allowed


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": 0}, 0),
        ({"maxUnavailable": "50%"}, 3),
        ({"maxUnavailable": "100%"}, 5),
        ({"minAvailable": 4}, 1),
        ({"minAvailable": 9}, 0),
        ({"minAvailable": "50%"}, 2),
        ({"minAvailable": "0%"}, 5),
    ],
)
def test_percentages_are_of_the_wanted_pods_and_rounded_up(spec: dict[str, int | str], expected: int) -> None:
    pods = [running(f"web-{number}", "n1") for number in range(5)]
    assert allowed(what_if(node("n1", cpu=9).build(), pods, budget("web", "web", **spec))) == expected


def test_pods_that_are_missing_count_against_it() -> None:
    pods = [running(f"web-{number}", "n1") for number in range(3)]
    cluster = what_if(node("n1").build(), pods, budget("web", maxUnavailable=2))
    assert allowed(cluster, pods[0]) == 1
    assert allowed(cluster, *pods) == 0


def test_pending_pods_are_not_healthy() -> None:
    cluster = what_if(
        node("n1").build(),
        running("web-0", "n1"),
        owned(make_pod("web-1").labels(app="web")),
        budget("web", minAvailable=1),
    )
    assert allowed(cluster) == 0


def test_the_controllers_say_how_many_pods_are_wanted() -> None:
    wanting = parse_manifests("""
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i}]}
---
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 4, pods: 10}}}
""")
    cluster = what_if(wanting.objects(), budget("web", maxUnavailable="50%"))
    assert allowed(cluster) == 0, "all four are pending"
    with cluster.transaction() as trial:
        trial.schedule(cluster.pending)
        trial.commit()
    assert allowed(cluster) == 2


def test_no_pod_at_all_allows_nothing() -> None:
    assert allowed(what_if(node("n1").build(), budget("web", maxUnavailable=1))) == 0
