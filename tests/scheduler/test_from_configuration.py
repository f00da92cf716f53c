"""A scheduler does what its configuration says."""

from __future__ import annotations

from kschedfw import InMemoryCluster, make_node, scheduler_from_configuration
from kschedfw.api.manifests import object_from_manifest
from kschedfw.api.pod import Pod
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
