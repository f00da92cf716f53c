"""What pods refer to and isn't there."""

from __future__ import annotations

import pytest

from kschedfw import make_claim, make_node, make_pod, make_volume
from kschedfw.api.manifests import object_from_manifest, pod_from_manifest, read_manifests
from kschedfw.api.meta import Named
from kschedfw.cluster import InMemoryCluster, MissingObject, claim_problems, missing_objects


def missing(*objects: Named) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(each.kind, each.name, each.pods) for each in missing_objects(InMemoryCluster(objects))]


def owned(kind: str, api_version: str = "apps/v1", **spec: object) -> Named:
    owner = {"kind": kind, "apiVersion": api_version, "name": "web", "uid": "1", "controller": True}
    return pod_from_manifest(
        {
            "metadata": {"name": "web-1", "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "main", "image": "app"}], **spec},
        }
    )


def storage_class(name: str, binding: str) -> Named:
    manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": binding,
    }
    return object_from_manifest(manifest)


class TestStorage:
    def test_a_claim_is_missing_once_for_all_its_pods(self) -> None:
        pods = [make_pod(name).claim("data").build() for name in ("a", "b")]
        assert missing(*pods) == [("PersistentVolumeClaim", "default/data", ("default/a", "default/b"))]

    def test_the_volume_of_a_bound_claim_and_the_class_of_one_that_waits(self) -> None:
        bound = make_claim("bound").requests("1Gi").storage_class("fast").bound_to("pv-1").build()
        waits = make_claim("waits").requests("1Gi").storage_class("slow").build()
        pod = make_pod("a").claim("bound").claim("waits").build()
        assert missing(bound, waits, pod) == [
            ("PersistentVolume", "pv-1", ("default/a",)),
            ("StorageClass", "slow", ("default/a",)),
        ]

    def test_what_is_there_is_not_missing(self) -> None:
        volume = make_volume("pv-1").capacity("1Gi").build()
        claim = make_claim("data").requests("1Gi").bound_to("pv-1").build()
        assert missing(volume, claim, make_pod("a").claim("data").build()) == []

    def test_claims_that_are_made_for_the_pod_need_not_be_there(self) -> None:
        assert missing(make_pod("a").ephemeral_volume("scratch").build()) == []


class TestProblemsOfClaims:
    OTHERS = (
        make_claim("data").requests("1Gi").storage_class("gp33").build(),
        make_claim("logs").requests("1Gi").storage_class("tape").build(),
        make_claim("plain").requests("1Gi").build(),
        make_claim("slow").requests("1Gi").storage_class("gp3").build(),
        make_claim("later").requests("1Gi").storage_class("waits").build(),
        make_claim("bound").requests("1Gi").storage_class("gone").bound_to("pv-1").build(),
        storage_class("gp3", "Immediate"),
        storage_class("waits", "WaitForFirstConsumer"),
    )

    @pytest.mark.parametrize(
        ("claim", "told", "misspelt"),
        [
            (
                "dtaa",
                "claim default/dtaa doesn't exist (did you mean data?)",
                ("PersistentVolumeClaim", "default/dtaa"),
            ),
            ("images", "claim default/images doesn't exist", None),
            (
                "data",
                "claim default/data is pending: there is no StorageClass gp33 to make it a volume (did you mean gp3?)",
                ("StorageClass", "gp33"),
            ),
            (
                "logs",
                "claim default/logs is pending: there is no StorageClass tape to make it a volume",
                None,
            ),
            (
                "plain",
                (
                    "claim default/plain is pending: it has no StorageClass, and none is the default, so it waits for "
                    "a PersistentVolume that fits"
                ),
                None,
            ),
            (
                "slow",
                (
                    "claim default/slow is pending: provisioner ebs.csi.aws.com of StorageClass gp3 has to make it a "
                    "volume; kubectl -n default describe pvc slow says what it did"
                ),
                None,
            ),
        ],
    )
    def test_why_a_claim_has_no_volume(self, claim: str, told: str, misspelt: tuple[str, str] | None) -> None:
        pod = make_pod("a").claim(claim).build()
        (problem,) = claim_problems(pod, InMemoryCluster(self.OTHERS))
        assert (problem.text, problem.misspelt) == (told, misspelt)

    def test_claims_that_are_bound_or_wait_for_their_consumer_have_none(self) -> None:
        pod = make_pod("a").claim("later").claim("bound").ephemeral_volume("scratch").build()
        there = InMemoryCluster([*self.OTHERS, make_volume("pv-1").capacity("1Gi").build()])
        assert list(claim_problems(pod, there)) == []
        (problem,) = claim_problems(pod, InMemoryCluster(self.OTHERS))
        assert problem.text == "claim default/bound is of volume pv-1, which doesn't exist"

    def test_claims_of_other_namespaces_are_not_meant(self) -> None:
        pod = make_pod("a").namespace("other").claim("dtaa").build()
        (problem,) = claim_problems(pod, InMemoryCluster(self.OTHERS))
        assert problem.text == "claim other/dtaa doesn't exist"


class TestDeviceClasses:
    ALTERNATIVES = (
        {"name": "one", "exactly": {"deviceClassName": "gpu"}},
        {
            "name": "two",
            "firstAvailable": [{"name": name, "deviceClassName": name} for name in ("tpu", "gpu")],
        },
    )

    @staticmethod
    def claim(**status: object) -> Named:
        return object_from_manifest(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "namespace": "default"},
                "spec": {"devices": {"requests": TestDeviceClasses.ALTERNATIVES}},
                "status": status,
            }
        )

    @staticmethod
    def pod(**source: str) -> Named:
        return pod_from_manifest(
            {
                "metadata": {"name": "a"},
                "spec": {
                    "containers": [{"name": "main", "image": "app"}],
                    "resourceClaims": [{"name": "devices", **source}],
                },
            }
        )

    def test_those_of_a_claim_that_waits_for_devices(self) -> None:
        assert missing(self.claim(), self.pod(resourceClaimName="c")) == [
            ("DeviceClass", "gpu", ("default/a",)),
            ("DeviceClass", "tpu", ("default/a",)),
        ]

    def test_not_those_of_a_claim_that_has_its_devices(self) -> None:
        assert missing(self.claim(allocation={}), self.pod(resourceClaimName="c")) == []

    def test_those_of_a_template_and_the_template(self) -> None:
        template = object_from_manifest(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "t", "namespace": "default"},
                "spec": {"spec": {"devices": {"requests": self.ALTERNATIVES[:1]}}},
            }
        )
        pod = self.pod(resourceClaimTemplateName="t")
        assert missing(template, pod) == [("DeviceClass", "gpu", ("default/a",))]
        assert missing(pod) == [("ResourceClaimTemplate", "default/t", ("default/a",))]


def test_nodes_of_bound_pods_but_not_of_those_that_have_ended() -> None:
    spec = {"nodeName": "gone", "containers": [{"name": "main", "image": "app"}]}
    ended = {"metadata": {"name": "ended"}, "spec": spec, "status": {"phase": "Succeeded"}}
    assert missing(
        make_node("n1").build(),
        make_pod("a").node("n1").build(),
        make_pod("b").node("n2").build(),
        pod_from_manifest(ended),
    ) == [("Node", "n2", ("default/b",))]


def test_the_priority_class_of_a_pod_without_a_priority() -> None:
    def classed(name: str, class_name: str, **spec: object) -> Named:
        manifest = make_pod(name).manifest()
        containers = [{"name": "main", "image": "app"}]
        manifest["spec"] = {"priorityClassName": class_name, "containers": containers, **spec}
        return pod_from_manifest(manifest)

    system = classed("system", "system-node-critical")
    assert missing(classed("a", "high"), classed("b", "low", priority=3), system) == [
        ("PriorityClass", "high", ("default/a",))
    ]


def test_the_controllers_that_default_spreading_counts_by() -> None:
    assert missing(owned("ReplicaSet")) == [("ReplicaSet", "default/web", ("default/web-1",))]
    assert missing(owned("Job", "batch/v1")) == []
    assert missing(owned("ReplicaSet", nodeName="n1"), make_node("n1").build()) == []


def test_namespaces_whose_labels_a_term_asks_for() -> None:
    manifest = make_pod("a").manifest()
    manifest["spec"] = {
        "containers": [{"name": "main", "image": "app"}],
        "affinity": {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "zone",
                        "labelSelector": {},
                        "namespaceSelector": {"matchLabels": {"team": "a"}},
                    }
                ]
            }
        },
    }
    pod = pod_from_manifest(manifest)
    assert missing(pod) == [("Namespace", "default", ("default/a",))]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    assert missing(object_from_manifest(namespace), pod) == []
    assert missing(make_pod("b").pod_affinity("zone", {"app": "x"}).build()) == []


def test_the_sample_cluster_lacks_nothing() -> None:
    sample = read_manifests("examples/sample-cluster")
    assert missing_objects(InMemoryCluster(sample.objects())) == ()


def test_as_json() -> None:
    assert MissingObject("Node", "n", ("default/a",)).to_json() == {
        "kind": "Node",
        "name": "n",
        "pods": ["default/a"],
    }
