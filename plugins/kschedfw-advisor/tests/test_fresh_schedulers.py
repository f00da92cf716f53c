"""What is said to fit and to help holds when a scheduler tries it that knows of nothing: in generated clusters."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import pytest
from edits import edited
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_advisor.cli.pending_output import to_json
from kschedfw_advisor.cli.what_if_output import Background
from kschedfw_advisor.pending import explain_pending
from kschedfw_advisor.turns import fit
from small_clusters import REGISTRY, owned

from kschedfw import InMemoryCluster, Pod, Profile, Scheduler, WhatIf, default_profile
from kschedfw.api.meta import Named
from kschedfw.api.objects import object_from_manifest, to_manifest
from kschedfw.framework.clock import VirtualClock
from kschedfw.scheduler import FirstByNameSelector
from kschedfw.testing.properties import examples
from kschedfw.testing.strategies import DrawnCluster, clusters, pods

WITHOUT_PREEMPTION = Profile(
    [plugin for plugin in default_profile().multi_point if plugin.name != "DefaultPreemption"]
)


def placed_by_a_fresh_scheduler(objects: Iterable[Named]) -> set[str]:
    """Run a scheduler on the objects, and return the keys of the pods that were pending and aren't now."""
    objects = list(objects)
    cluster = InMemoryCluster(objects)
    scheduler = Scheduler(
        cluster,
        [WITHOUT_PREEMPTION],
        registry=REGISTRY,
        clock=VirtualClock(),
        selector=FirstByNameSelector(),
    )
    scheduler.run_until_idle()
    pending = {obj.key for obj in objects if isinstance(obj, Pod) and not obj.node_name}
    return {pod.key for pod in cluster.list(Pod) if pod.key in pending and pod.node_name}


def what_if(objects: Sequence[Named]) -> WhatIf:
    return WhatIf(objects, registry=REGISTRY, profiles=[WITHOUT_PREEMPTION], selector=FirstByNameSelector())


def workload(template: Pod, name: str, replicas: int) -> list[Pod]:
    """Pods like the template, with a controller of this name."""
    named = (
        template.with_metadata(attrs.evolve(template.metadata, name=f"{name}-{number}", uid=""))
        for number in range(replicas)
    )
    return [owned(pod, name) for pod in named]


@pytest.mark.slow
@given(clusters(most_nodes=4, most_bound=6, most_pending=3), st.integers(1, 4))
@settings(max_examples=examples(300, usual=4))
def test_what_pending_says_to_fit_and_to_help_does(drawn: DrawnCluster, replicas: int) -> None:
    """The edits are made to manifests, of which a fresh scheduler places as many pods as was said."""
    bound = [owned(pod, pod.name) for pod in drawn.bound]
    wanted = [
        pod for number, each in enumerate(drawn.pending) for pod in workload(each, f"w-{number}", replicas)
    ]
    objects: list[Named] = [*drawn.nodes, *bound, *wanted]
    with what_if(objects) as asked:
        answer = explain_pending(asked)
        after = list(asked.objects())
    document: Any = to_json(answer, Background([]))
    assert placed_by_a_fresh_scheduler(objects) == {each["pod"] for each in document["placed"]}
    for kind in (kind for group in document["groups"] for kind in group["kinds"]):
        alone = [
            to_manifest(obj)
            for obj in after
            if not isinstance(obj, Pod) or obj.node_name or obj.key in kind["pods"]
        ]
        for remedy in kind["helps"]:
            changed = edited(copy.deepcopy(alone), remedy["edits"], kind["pods"])
            placed = placed_by_a_fresh_scheduler(map(object_from_manifest, changed))
            assert len(placed & {*kind["pods"]}) == remedy["placed"], remedy["changes"]


@pytest.mark.slow
@given(clusters(most_nodes=4, most_bound=6, most_pending=0), pods())
@settings(max_examples=examples(300, usual=4))
def test_as_many_replicas_as_fit_are_placed_and_no_more(drawn: DrawnCluster, template: Pod) -> None:
    objects: list[Named] = [*drawn.nodes, *(owned(pod, pod.name) for pod in drawn.bound)]
    template = attrs.evolve(template, spec=attrs.evolve(template.spec, node_name="", scheduling_gates=()))
    with what_if(objects) as asked, asked.transaction() as trial:
        found = fit(trial, template, at_most=20)
    replicas = workload(template, "replica", found.count + 1)
    placed = placed_by_a_fresh_scheduler([*objects, *replicas])
    assert len(placed) == found.count + (found.refusal is None)
