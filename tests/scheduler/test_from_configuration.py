"""A scheduler does what its configuration says."""

from __future__ import annotations

import pytest

from kschedfw import InMemoryCluster, make_node, make_pod, make_pod_group, scheduler_from_configuration
from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.pod import Pod
from kschedfw.framework.gate_table import (
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
)
from kschedfw.plugins.node_resources_fit import NodeResourcesFit
from tests.config.documents import document, loaded

EXTENDER = {
    "urlPrefix": "http://extender.invalid:80",
    "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
}


def test_profiles_backoffs_sampling_and_extenders_are_the_configurations() -> None:
    configuration = loaded(
        document(
            percentageOfNodesToScore=40,
            podInitialBackoffSeconds=3,
            podMaxBackoffSeconds=30,
            parallelism=2,
            extenders=[EXTENDER],
            profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 7}],
        )
    )
    scheduler = scheduler_from_configuration(configuration, InMemoryCluster())
    assert list(scheduler.frameworks) == ["a", "b"]
    assert scheduler.frameworks["b"].profile.percentage_of_nodes_to_score == 7
    for framework in scheduler.frameworks.values():
        fit = framework.plugins["NodeResourcesFit"]
        assert isinstance(fit, NodeResourcesFit)
        assert fit.args.ignored_resources == ("example.com/gpu",)
        (extender,) = framework.handle.extenders
        assert extender.name == "http://extender.invalid:80"
        assert framework.handle.parallelizer.parallelism == 2
    scheduler.close()


def test_it_schedules_the_pods_of_its_profiles() -> None:
    pods = [
        object_from_manifest(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name},
                "spec": {"schedulerName": scheduler_name, "containers": [{"name": "c", "image": "i"}]},
            }
        )
        for name, scheduler_name in (("ours", "packing"), ("theirs", "other"))
    ]
    cluster = InMemoryCluster([make_node("n1").build(), *pods])
    packing = loaded(document(profiles=[{"schedulerName": "packing"}]))
    scheduler = scheduler_from_configuration(packing, cluster)
    scheduler.run_until_idle()
    scheduler.close()
    assert {pod.name for pod in cluster.list(Pod) if pod.node_name} == {"ours"}


@pytest.mark.parametrize(
    ("fit", "count", "rack"),
    [
        (1, 10, {"b"}),  # where more members fit
        (10, 1, {"a"}),  # what is full afterwards
    ],
)
def test_placements_are_rated_with_the_weights_at_placement_score(
    fit: int, count: int, rack: set[str]
) -> None:
    rating = [
        {"name": "NodeResourcesFit", "weight": fit},
        {"name": "PodGroupPodsCount", "weight": count},
    ]
    configuration = loaded(
        document(
            featureGates=dict.fromkeys(
                (GENERIC_WORKLOAD, GANG_SCHEDULING, TOPOLOGY_AWARE_WORKLOAD_SCHEDULING), True
            ),
            profiles=[{"plugins": {"placementScore": {"enabled": rating}}}],
        )
    )
    nodes = [
        make_node(name).labels(rack=name).capacity(cpu=cpu, memory="8Gi").build()
        for name, cpu in (("a", 2), ("b", 90))
    ]
    group = make_pod_group("g").gang(min_count=1).topology("rack").build()
    members = [make_pod(name).requests(cpu=2).group("g").build() for name in ("one", "two")]
    cluster = InMemoryCluster([*nodes, group, *members])
    scheduler = scheduler_from_configuration(configuration, cluster)
    scheduler.schedule_one()
    scheduler.close()
    assert {pod.node_name for pod in cluster.list(Pod) if pod.node_name} == rack
