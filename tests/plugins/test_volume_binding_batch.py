"""VolumeBinding's batch form says of many nodes what the scalar form says of each."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import make_node, make_pod
from kschedfw.api.builders import VolumeBuilder
from kschedfw.api.meta import Named
from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.testing import FrameworkHarness
from tests.plugins.batches import Asked, some_rows
from tests.plugins.storage import ZONE, claim, csi_node, driver, room, storage_class, volume

pytestmark = pytest.mark.slow

CLAIMS = ("c0", "c1", "c2")
CLASSES = ("wait", "make")
SIZES = ("1Gi", "2Gi", "3Gi")
HOSTNAME = "kubernetes.io/hostname"


@attrs.frozen
class Storage:
    """A pod with claims, nodes, and what there is for the claims."""

    pod: Pod
    nodes: list[Node]
    objects: list[Named]


@st.composite
def volumes(draw: st.DrawFn, name: str) -> VolumeBuilder:
    made = volume(name, draw(st.sampled_from(SIZES)), storage_class=draw(st.sampled_from(CLASSES)))
    where = draw(st.sampled_from(["", ZONE, HOSTNAME]))
    if where == ZONE:
        made.node_affinity_in(ZONE, *draw(st.lists(st.sampled_from("123"), min_size=1, max_size=2)))
    elif where == HOSTNAME:
        made.node_affinity_in(HOSTNAME, f"n{draw(st.integers(0, 4))}")
    if draw(st.integers(0, 4)) == 0:
        made.claimed_by(f"default/{draw(st.sampled_from(CLAIMS))}")
    if draw(st.integers(0, 4)) == 0:
        made.source({"awsElasticBlockStore": {"volumeID": name}})
    return made


@st.composite
def storages(draw: st.DrawFn) -> Storage:
    nodes = [
        make_node(f"n{index}").zone(draw(st.sampled_from("123"))).build()
        for index in range(draw(st.integers(1, 5)))
    ]
    there = [f"v{index}" for index in range(draw(st.integers(0, 5)))]
    objects: list[Named] = [draw(volumes(name)).build() for name in there]
    objects.append(storage_class())
    objects.append(
        storage_class(
            "make",
            provisioner="csi.example.com",
            zones=tuple(draw(st.lists(st.sampled_from("123"), max_size=2, unique=True))),
        )
    )
    if draw(st.booleans()):
        objects.append(driver())
        objects += [room(f"r{zone}", zone, draw(st.sampled_from(SIZES))) for zone in "12"]
    objects += [
        csi_node(node.name, migrated=("kubernetes.io/aws-ebs",)) for node in nodes if draw(st.booleans())
    ]
    pod = make_pod()
    for name in CLAIMS[: draw(st.integers(1, 3))]:
        made = claim(name, draw(st.sampled_from(SIZES)), storage_class=draw(st.sampled_from(CLASSES)))
        match draw(st.integers(0, 5)):
            case 0 | 1:
                made.bound_to(draw(st.sampled_from([*there, "gone"])))
            case 2:
                made.annotations({"volume.kubernetes.io/selected-node": f"n{draw(st.integers(0, 4))}"})
        objects.append(made.build())
        pod.claim(name)
    return Storage(pod.build(), nodes, objects)


@given(storages(), st.data())
def test_both_forms_agree(storage: Storage, data: st.DataObject) -> None:
    asked = Asked.of(FrameworkHarness("VolumeBinding", nodes=storage.nodes, objects=storage.objects))
    rows = data.draw(some_rows(len(storage.nodes)))
    assert asked.batch(storage.pod, rows) == asked.scalar(storage.pod, rows.tolist())


@given(storages(), storages())
def test_pods_with_the_same_signature_are_told_the_same(first: Storage, second: Storage) -> None:
    """Where volumes are all bound, what counts is from where they can be used."""
    objects = {(type(obj), obj.key): obj for obj in (*second.objects, *first.objects)}
    asked = Asked.of(FrameworkHarness("VolumeBinding", nodes=first.nodes, objects=objects.values()))
    rows = range(len(first.nodes))
    for pod in (first.pod, second.pod):
        signature = asked.plugin.sign(pod)
        asked.harness.pre_filter(pod)
        if signature is not None and "VolumeBinding" not in asked.harness.state.skip_filter_plugins:
            bound = set(signature)  # type: ignore[call-overload]
            answers = asked.scalar(pod, rows)
            for (refusal, _), node in zip(answers, first.nodes, strict=True):
                assert (refusal is None) == all(reach.has(node.labels) for reach in bound)
