"""Reading takes objects of all kinds as they are: what is asked of workloads is asked of no other kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given

from kschedfw.api.kinds import KINDS
from kschedfw.api.manifests import Manifests, parse_manifests
from kschedfw.api.objects import object_from_manifest, to_manifest
from kschedfw.api.workloads import CronJob, DaemonSet, Deployment, Job
from kschedfw.cluster import InMemoryCluster
from kschedfw.cluster.references import missing_objects
from tests.api.any_objects import KIND_NAMES, Manifest, documents, everything_of_a_dump

_REPLACED = (Deployment, DaemonSet, Job, CronJob)
"""Kinds of which at most pods are left."""


def read(manifests: list[Manifest]) -> Manifests:
    return parse_manifests("\n---\n".join(map(json.dumps, manifests)))


@given(documents())
def test_every_object_of_any_list_is_loaded_counted_or_refused(manifests: list[Manifest]) -> None:
    loaded = read(manifests)
    # Names are drawn from a few, so that owners are found: a second object of a name is the only problem.
    assert all("Duplicate value" in str(problem) for problem in loaded.problems)
    given: Counter[str] = Counter()
    for document in manifests:
        kind = document["kind"].removesuffix("List")
        given.update(item.get("kind", kind) for item in document.get("items", [document]))
    there = Counter(type(obj).__name__ for obj in loaded.objects(skip_invalid=True))
    refused = Counter(problem.subject.split()[0] for problem in loaded.problems)
    for kind in KINDS.values():
        foreign = sum(each.kind.name == kind.name for each in loaded.custom_objects)
        # Controllers make further pods, ReplicaSets and claims.
        if kind.name not in ("Pod", "ReplicaSet") and kind.cls not in _REPLACED:
            assert there[kind.name] + foreign + refused[kind.name] == given[kind.name]


@given(documents())
def test_what_is_loaded_makes_a_cluster_that_can_be_asked_and_written(manifests: list[Manifest]) -> None:
    objects = read(manifests).objects(skip_invalid=True)
    missing_objects(InMemoryCluster(objects))
    assert [object_from_manifest(to_manifest(obj)) for obj in objects] == list(objects)


def as_one_list(objects: list[Manifest]) -> list[Manifest]:
    return [{"apiVersion": "v1", "kind": "List", "items": objects}]


def as_lists_of_each_kind(objects: list[Manifest]) -> list[Manifest]:
    return [
        {
            "apiVersion": obj["apiVersion"],
            "kind": f"{obj['kind']}List",
            "items": [{key: obj[key] for key in obj if key not in ("apiVersion", "kind")}],
        }
        for obj in objects
    ]


@pytest.mark.parametrize("form", [as_one_list, as_lists_of_each_kind])
def test_lists_are_read_as_the_documents_of_their_objects(
    form: Callable[[list[Manifest]], list[Manifest]],
) -> None:
    listed, single = read(form(everything_of_a_dump())), read(everything_of_a_dump())
    assert listed.objects() == single.objects()
    assert listed.custom_objects == single.custom_objects
    assert listed.ignored == single.ignored


def test_one_object_of_every_kind_as_an_api_server_writes_it_is_read() -> None:
    loaded = read(everything_of_a_dump())
    assert not loaded.problems
    assert {type(obj).__name__ for obj in loaded.objects()} == {*KINDS, "CustomObject"} - {
        cls.__name__ for cls in _REPLACED
    }
    assert len(loaded.custom_objects) + loaded.ignored["ConfigMap"] + loaded.ignored["Ingress"] == len(
        KIND_NAMES
    ) - len(KINDS)
