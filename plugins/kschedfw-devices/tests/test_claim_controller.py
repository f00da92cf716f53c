"""Claims come and go with the pods that they are made for."""

from __future__ import annotations

import attrs
import pytest
from kschedfw_devices import ClaimController

from kschedfw.api.manifests import object_from_manifest, parse_manifests
from kschedfw.api.meta import Named
from kschedfw.api.pod import Pod, PodPhase
from kschedfw.api.resource_claims import ResourceClaim
from kschedfw.cluster import InMemoryCluster

TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec:
  metadata: {labels: {team: a}}
  spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
"""


def template() -> Named:
    (found,) = parse_manifests(TEMPLATE).objects()
    return found


def pod(name: str, **claim: str) -> Named:
    spec = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": [{"name": "g", **claim}]}
    return object_from_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def claims(cluster: InMemoryCluster) -> list[str]:
    return [each.name for each in cluster.list(ResourceClaim)]


def test_a_pod_gets_a_claim_of_its_own_and_is_told_its_name() -> None:
    cluster = InMemoryCluster([template(), pod("p", resourceClaimTemplateName="one")])
    ClaimController(cluster)
    (made,) = cluster.list(ResourceClaim)
    present = cluster.get(Pod, "default/p")
    assert present is not None
    assert made.is_owned_by(present)
    assert made.labels == {"team": "a"}
    assert made.annotations == {"resource.kubernetes.io/pod-claim-name": "g"}
    (told,) = present.status.resource_claim_statuses
    assert (told.name, told.resource_claim_name) == ("g", made.name)


def test_it_waits_for_the_template_and_makes_each_claim_once() -> None:
    cluster = InMemoryCluster([pod("p", resourceClaimTemplateName="one")])
    ClaimController(cluster)
    assert claims(cluster) == []
    cluster.add(template())
    assert claims(cluster) == ["p-g"]
    ClaimController(cluster)
    assert claims(cluster) == ["p-g"]


@pytest.mark.parametrize("is_deleted", [True, False])
def test_it_no_longer_waits_for_a_pod_that_was_deleted_or_has_ended(is_deleted: bool) -> None:
    cluster = InMemoryCluster([pod("p", resourceClaimTemplateName="one")])
    controller = ClaimController(cluster)
    present = cluster.get(Pod, "default/p")
    assert present is not None
    if is_deleted:
        cluster.delete(present)
    else:
        cluster.update(present.with_status(attrs.evolve(present.status, phase=PodPhase.SUCCEEDED)))
    assert controller._waiting == {}
    cluster.add(template())
    assert claims(cluster) == []


def test_the_claim_goes_with_its_pod() -> None:
    cluster = InMemoryCluster([template(), pod("p", resourceClaimTemplateName="one")])
    ClaimController(cluster)
    present = cluster.get(Pod, "default/p")
    assert present is not None
    cluster.delete(present)
    assert claims(cluster) == []


def test_a_claim_of_several_pods_is_deallocated_when_the_last_of_them_goes() -> None:
    users = [pod("p", resourceClaimName="c"), pod("q", resourceClaimName="c")]
    cluster = InMemoryCluster(users)
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "finalizers": ["resource.kubernetes.io/delete-protection"]},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": []}},
            "reservedFor": [{"resource": "pods", "name": each.name, "uid": each.uid} for each in users],
        },
    }
    cluster.add(object_from_manifest(manifest))
    ClaimController(cluster)
    for left, user in ((1, "p"), (0, "q")):
        present = cluster.get(Pod, f"default/{user}")
        assert present is not None
        cluster.delete(present)
        (claim,) = cluster.list(ResourceClaim)
        assert len(claim.status.reserved_for) == left
        assert (claim.status.allocation is not None) is bool(left)
    assert claim.metadata.finalizers == ()
