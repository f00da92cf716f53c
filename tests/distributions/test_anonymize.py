"""Other names, the same decisions."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from kschedfw_kubernetes import Anonymizer

from kschedfw.api import object_from_manifest, parse_manifests, read_manifests
from kschedfw.api.meta import Named, OwnerReference
from kschedfw.api.objects import to_manifest
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.simulator import Simulation
from tests.api.any_objects import Manifest, documents

SAMPLE = Path(__file__).parents[2] / "examples" / "sample-cluster"
_PODS = 60


@pytest.fixture(scope="module")
def sample() -> list[Named]:
    """Of the sample's objects all but most pods."""
    objects = list(read_manifests(SAMPLE).objects())
    pods = [obj for obj in objects if isinstance(obj, Pod)][:: len(objects) // _PODS]
    return [obj for obj in objects if not isinstance(obj, Pod)] + pods


SECRETIVE = """
apiVersion: v1
kind: Node
metadata:
  name: machine-of-acme
  labels:
    kubernetes.io/hostname: machine-of-acme
    topology.kubernetes.io/zone: acme-basement
    acme.com/rack: "7"
  annotations: {acme.com/admin: bob@acme.com}
spec: {taints: [{key: acme.com/dedicated, value: acme-db, effect: NoSchedule}]}
status:
  allocatable: {cpu: "4", memory: 8Gi, pods: "10", nvidia.com/gpu: "1"}
  images: [{names: ["registry.acme.com/db:1"], sizeBytes: 50000000}]
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: acme is ready}]
---
apiVersion: v1
kind: Pod
metadata: {name: acme-db-0, namespace: acme, labels: {app: acme-db}, annotations: {acme.com/note: secret of acme}}
spec:
  nodeSelector: {acme.com/rack: "7"}
  tolerations: [{key: acme.com/dedicated, operator: Equal, value: acme-db, effect: NoSchedule}]
  containers:
  - {name: acme, image: registry.acme.com/db:1, resources: {requests: {cpu: "1"}, limits: {nvidia.com/gpu: "1"}}}
  volumes: [{name: data-acme, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: acme-fast,
    accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: acme.com/rack, labelSelector: {matchExpressions: [{key: app, operator: In, values: [acme-db]}]}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: acme-db-0-data-acme, namespace: acme}
spec: {storageClassName: acme-fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def test_nothing_that_the_user_chose_is_left_and_references_hold() -> None:
    objects = list(parse_manifests(SECRETIVE).objects())
    renamed = list(Anonymizer().anonymized(objects))
    manifests = {obj.__class__.__name__: to_manifest(obj) for obj in renamed}
    assert "acme" not in json.dumps(list(manifests.values()))
    node, pod, claim = (manifests[kind] for kind in ("Node", "Pod", "PersistentVolumeClaim"))
    assert node["metadata"]["name"] == "node-1"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "node-1"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    assert pod["spec"]["nodeSelector"].items() <= node["metadata"]["labels"].items()
    toleration, taint = pod["spec"]["tolerations"][0], node["spec"]["taints"][0]
    assert (toleration["key"], toleration["value"]) == (taint["key"], taint["value"])
    assert pod["spec"]["containers"][0]["image"] == node["status"]["images"][0]["names"][0]
    term = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert term["topologyKey"] in node["metadata"]["labels"]
    expression = term["labelSelector"]["matchExpressions"][0]
    assert pod["metadata"]["labels"] == {expression["key"]: expression["values"][0]}
    volume = pod["spec"]["volumes"][0]
    assert claim["metadata"]["name"] == f"{pod['metadata']['name']}-{volume['name']}"


def test_policies_still_say_how_much_of_what() -> None:
    objects = list(
        parse_manifests("""
{kind: ResourceQuota, apiVersion: v1, metadata: {name: acme}, spec: {hard: {requests.cpu: 2}, scopes: [BestEffort]}}
---
{kind: LimitRange, apiVersion: v1, metadata: {name: acme}, spec: {limits: [{type: Container, max: {cpu: 1}}]}}
""").objects()
    )
    renamed = list(Anonymizer().anonymized(objects))
    assert "acme" not in {each.name for each in renamed}
    assert [to_manifest(each)["spec"] for each in renamed] == [to_manifest(each)["spec"] for each in objects]


def test_what_comes_out_is_valid(sample: list[Named]) -> None:
    for obj in Anonymizer().anonymized(sample):
        object_from_manifest(to_manifest(obj))


def assert_decided_alike(objects: list[Named], renamed: list[Named]) -> None:
    names = dict(zip([obj.name for obj in objects], [obj.name for obj in renamed], strict=True))
    before = Simulation(InMemoryCluster(objects), seed=3).run().decisions
    after = Simulation(InMemoryCluster(renamed), seed=3).run().decisions
    assert [(each.outcome, names.get(each.node or "", each.node)) for each in before] == [
        (each.outcome, each.node) for each in after
    ]


def test_decisions_are_the_same(sample: list[Named]) -> None:
    assert_decided_alike(sample, list(Anonymizer().anonymized(sample)))


def test_with_a_secret_objects_get_the_same_names_one_at_a_time_in_any_process() -> None:
    node, claim, pod = parse_manifests(SECRETIVE).objects()
    objects = [node, pod, claim]
    together, alone = Anonymizer(b"s"), [Anonymizer(b"s") for _ in objects]
    manifests = [together.manifest(obj) for obj in objects]
    assert "acme" not in json.dumps(manifests)
    # The claim's own name needs the pod, as long as the claim doesn't tell its owner.
    assert [each.manifest(obj) for each, obj in zip(alone, objects, strict=True)][:2] == manifests[:2]
    assert manifests[0]["metadata"]["name"] != Anonymizer(b"t").manifest(node)["metadata"]["name"]
    volume = manifests[1]["spec"]["volumes"][0]
    assert manifests[2]["metadata"]["name"] == f"{manifests[1]['metadata']['name']}-{volume['name']}"


def test_with_a_secret_a_claim_that_tells_its_owner_is_named_after_it_before_the_pod_is_seen() -> None:
    _, claim, pod = parse_manifests(SECRETIVE).objects()
    owner = OwnerReference("Pod", pod.name, controller=True)
    owned = claim.with_metadata(attrs.evolve(claim.metadata, owner_references=(owner,)))
    anonymizer = Anonymizer(b"s")
    name = anonymizer.manifest(owned)["metadata"]["name"]
    manifest = anonymizer.manifest(pod)
    assert name == f"{manifest['metadata']['name']}-{manifest['spec']['volumes'][0]['name']}"


def test_with_a_secret_decisions_are_the_same(sample: list[Named]) -> None:
    anonymizer = Anonymizer(b"s")
    assert_decided_alike(sample, [object_from_manifest(anonymizer.manifest(obj)) for obj in sample])


@given(documents())
def test_objects_of_any_kind_get_other_names(manifests: list[Manifest]) -> None:
    loaded = parse_manifests("\n---\n".join(map(json.dumps, manifests)))
    objects = loaded.objects(skip_invalid=True)
    renamed = list(Anonymizer().anonymized(objects))
    assert [type(obj) for obj in renamed] == [type(obj) for obj in objects]
