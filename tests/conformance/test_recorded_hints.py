"""Events of changes, and the plugins' queueing hints for a refused pod, are those observed in kube-scheduler v1.36."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kschedfw import Parts, Pod, QueueingHint
from kschedfw.api.kinds import KINDS
from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.meta import Named
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import default_profile
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.event_handlers import events_between

_FILE: Final = Path(__file__).parent / "data" / "hints" / "hints.jsonl.gz"
_KIND: Final = {kind.plural: kind.name for kind in KINDS.values()}
_REGISTRY: Final = Registry()


def recorded() -> Iterator[Any]:
    with gzip.open(_FILE, "rt", encoding="utf-8") as file:
        for line in file:
            case = json.loads(line)
            yield pytest.param(case, id=case["name"])


def parsed(manifest: Mapping[str, Any] | None, plural: str) -> Named | None:
    return None if manifest is None else object_from_manifest(manifest, _KIND[plural])


@pytest.mark.parametrize("case", list(recorded()))
def test_a_refused_pod_is_woken_by_the_events_that_wake_it_in_kube_scheduler(case: Mapping[str, Any]) -> None:
    cluster = InMemoryCluster()
    for plural, manifests in case["objects"].items():
        for manifest in manifests:
            cluster.add(object_from_manifest(manifest, _KIND[plural]))
    pod = parsed(case["pod"], "pods")
    assert isinstance(pod, Pod)
    old, new = (parsed(case[state], case["kind"]) for state in ("old", "new"))
    events = events_between(old, new)

    # Their order decides nothing: each is offered to the pods that none before it has woken.
    assert {event.label for event in events} == {*case["expected"]["events"]}

    plugins = Framework(_REGISTRY, default_profile(), Parts(cluster)).events_to_register()
    hints = {
        plugin: [
            QueueingHint.QUEUE if each.hint is None else each.hint(pod, old, new)
            for event in events
            for each in subscriptions
            if each.matches(event)
        ]
        for plugin, subscriptions in plugins.items()
    }
    woken_by = {plugin for plugin, given in hints.items() if QueueingHint.QUEUE in given}
    assert woken_by == {plugin for plugin, hint in case["expected"]["hints"].items() if hint == "Queue"}
