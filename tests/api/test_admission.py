"""Pods of manifests are changed and refused as an API server's admission plugins do it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.admission import AdmissionOutcome
from kschedfw.api.affinity import Toleration
from kschedfw.api.manifests import Manifests, parse_manifests, read_manifests, to_manifest
from kschedfw.api.pod import Pod
from kschedfw.api.quantity import Quantity

Json = dict[str, Any]


def pod(name: str = "x", *containers: Json, **spec: Any) -> Json:
    given = [{"name": f"c{number}", **each} for number, each in enumerate(containers or ({},))]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {"containers": given, **spec},
    }


def asking(limits: Json | None = None, **requests: Any) -> Json:
    return {"resources": {"requests": requests, **({} if limits is None else {"limits": limits})}}


def limit_range(type: str = "Container", **item: Any) -> Json:
    return {
        "kind": "LimitRange",
        "apiVersion": "v1",
        "metadata": {"name": "bounds"},
        "spec": {"limits": [{"type": type, **item}]},
    }


def quota(hard: Json, **spec: Any) -> Json:
    return {
        "kind": "ResourceQuota",
        "apiVersion": "v1",
        "metadata": {"name": "q"},
        "spec": {"hard": hard, **spec},
    }


def runtime_class(**fields: Any) -> Json:
    return {
        "kind": "RuntimeClass",
        "apiVersion": "node.k8s.io/v1",
        "metadata": {"name": "vm"},
        "handler": "vm",
        **fields,
    }


def load(*manifests: Json) -> Manifests:
    loaded = parse_manifests(json.dumps({"kind": "List", "apiVersion": "v1", "items": manifests}))
    assert not loaded.problems
    return loaded


def admitted(*manifests: Json) -> Pod:
    (found,) = load(*manifests).pods
    return found


def refusal(*manifests: Json) -> str:
    loaded = load(*manifests)
    (refused,) = loaded.admission.refused
    assert refused.pod not in [each.key for each in loaded.pods]
    return refused.message


class TestDefaultTolerationSeconds:
    def test_a_new_pod_tolerates_failing_nodes_for_five_minutes(self) -> None:
        tolerations = {each.key: each for each in admitted(pod()).spec.tolerations}
        assert set(tolerations) == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
        assert {(each.effect, each.toleration_seconds) for each in tolerations.values()} == {
            ("NoExecute", 300)
        }

    @pytest.mark.parametrize(
        ("own", "added"),
        [
            ({"operator": "Exists"}, 0),
            ({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}, 0),
            ({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, 1),
            ({"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"}, 2),
        ],
    )
    def test_a_toleration_of_its_own_is_kept(self, own: Json, added: int) -> None:
        tolerations = admitted(pod(tolerations=[own])).spec.tolerations
        assert len(tolerations) == 1 + added
        assert isinstance(tolerations[0], Toleration)


class TestRuntimeClass:
    OVERHEAD: ClassVar[Json] = {"podFixed": {"cpu": "250m", "memory": "120Mi"}}

    def test_its_overhead_is_requested(self) -> None:
        found = admitted(
            runtime_class(overhead=self.OVERHEAD), pod("x", asking(cpu=1), runtimeClassName="vm")
        )
        assert found.requests.amounts.milli_cpu == 1250

    def test_its_nodes_are_selected_and_tolerated(self) -> None:
        toleration = {"key": "vm", "operator": "Exists"}
        scheduling = {"nodeSelector": {"vm": "yes"}, "tolerations": [toleration]}
        given = pod(runtimeClassName="vm", nodeSelector={"a": "b"}, tolerations=[toleration])
        found = admitted(runtime_class(scheduling=scheduling), given)
        assert found.spec.node_selector == {"vm": "yes", "a": "b"}
        assert [each.key for each in found.spec.tolerations].count("vm") == 1

    def test_another_node_selector_is_refused(self) -> None:
        message = refusal(
            runtime_class(scheduling={"nodeSelector": {"vm": "yes"}}),
            pod(runtimeClassName="vm", nodeSelector={"vm": "no"}),
        )
        assert message == (
            'pods "x" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; '
            "pod.spec.nodeSelector[vm] = no"
        )

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"overhead": OVERHEAD}, "Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
            ({}, "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
        ],
    )
    def test_another_overhead_is_refused(self, fields: Json, why: str) -> None:
        message = refusal(runtime_class(**fields), pod(runtimeClassName="vm", overhead={"cpu": "1"}))
        assert message == f'pods "x" is forbidden: pod rejected: {why}'

    def test_a_class_that_is_missing_is_told(self) -> None:
        loaded = load(pod("a", runtimeClassName="vm"), pod("b", runtimeClassName="vm"))
        assert len(loaded.pods) == 2
        assert loaded.admission.unknown_runtime_classes == {"vm": 2}


class TestLimitRange:
    def test_containers_get_what_they_dont_set(self) -> None:
        found = admitted(
            limit_range(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"}),
            pod("x", {}, asking({"cpu": "500m"}), initContainers=[{"name": "init"}]),
        )
        (init,) = found.spec.init_containers
        first, second = found.spec.containers
        assert first.resources == init.resources
        assert first.resources.limits == {"cpu": Quantity.parse("2"), "memory": Quantity.parse("1Gi")}
        assert first.resources.requests == {"cpu": Quantity.parse("1"), "memory": Quantity.parse("1Gi")}
        # Requests that default to limits are there before admission.
        assert second.resources.requests["cpu"] == second.resources.limits["cpu"] == Quantity.parse("500m")

    @pytest.mark.parametrize(
        ("item", "requests", "limits"),
        [
            ({"max": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
            ({"min": {"cpu": "1"}}, {"cpu": "1"}, {}),
            ({"min": {"cpu": "1"}, "max": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
        ],
    )
    def test_bounds_are_defaults(self, item: Json, requests: Json, limits: Json) -> None:
        (container,) = admitted(limit_range(**item), pod()).spec.containers
        assert {name: str(each) for name, each in container.resources.requests.items()} == requests
        assert {name: str(each) for name, each in container.resources.limits.items()} == limits

    @pytest.mark.parametrize(
        ("item", "container", "why"),
        [
            (
                {"max": {"cpu": "1"}},
                asking({"cpu": "2"}),
                "maximum cpu usage per Container is 1, but limit is 2",
            ),
            (
                {"min": {"cpu": "1"}},
                asking(cpu="500m"),
                "minimum cpu usage per Container is 1, but request is 500m",
            ),
            (
                {"maxLimitRequestRatio": {"cpu": "2"}},
                asking({"cpu": "3"}, cpu=1),
                "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            ),
            (
                {"maxLimitRequestRatio": {"cpu": "2"}},
                asking(),
                "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            ),
            (
                {"type": "Pod", "max": {"memory": "1Gi"}},
                asking(),
                "maximum memory usage per Pod is 1Gi.  No limit is specified",
            ),
            (
                {"type": "Pod", "min": {"memory": "1Gi"}},
                asking(),
                "minimum memory usage per Pod is 1Gi.  No request is specified",
            ),
            (
                {"min": {"cpu": "2", "memory": "2"}},
                asking(cpu="1", memory="1"),
                (
                    "[minimum cpu usage per Container is 2, but request is 1, "
                    "minimum memory usage per Container is 2, but request is 1]"
                ),
            ),
        ],
    )
    def test_violations_are_told_in_the_servers_words(self, item: Json, container: Json, why: str) -> None:
        assert refusal(limit_range(**item), pod("x", container)) == f'pods "x" is forbidden: {why}'

    def test_a_pods_bounds_count_its_containers_together(self) -> None:
        bounds = limit_range("Pod", max={"cpu": "2"})
        message = refusal(bounds, pod("x", asking({"cpu": "1"}), asking({"cpu": "1500m"})))
        assert message == 'pods "x" is forbidden: maximum cpu usage per Pod is 2, but limit is 2500m'

    @pytest.mark.parametrize(
        ("resource", "own", "told"),
        [
            ("memory", "4Mi", "maximum memory usage per Pod is 3Mi, but limit is 4Mi"),
            ("hugepages-2Mi", "4Mi", ""),
        ],
    )
    def test_of_a_pods_own_resources_only_cpu_and_memory_count_for_its_bounds(
        self, resource: str, own: str, told: str
    ) -> None:
        amounts = {"cpu": "1", resource: "2Mi"}
        whole = {"limits": {"cpu": "1", resource: own}, "requests": {"cpu": "1", resource: own}}
        loaded = load(limit_range("Pod", max={resource: "3Mi"}), pod("x", asking(amounts), resources=whole))
        assert [each.reason for each in loaded.admission.refused] == ([told] if told else [])

    def test_a_default_limit_below_the_request_makes_a_pod_invalid(self) -> None:
        message = refusal(limit_range(default={"cpu": "1"}), pod("x", asking(cpu=2)))
        assert message.startswith('Pod "x" is invalid: spec.containers[0].resources.requests')

    HUGE: ClassVar = asking({"hugepages-2Mi": "4Mi"})

    def test_huge_pages_need_cpu_or_memory(self) -> None:
        message = refusal(pod("x", self.HUGE))
        assert message == (
            'Pod "x" is invalid: spec.containers[0].resources: Forbidden: HugePages require cpu or memory'
        )

    @pytest.mark.parametrize("resource", ["cpu", "memory"])
    def test_what_a_limit_range_gives_suffices_for_huge_pages(self, resource: str) -> None:
        given = limit_range(defaultRequest={resource: "1"})
        assert admitted(given, pod("x", self.HUGE)).name == "x"

    def test_huge_pages_of_the_pod_as_a_whole_need_them_too(self) -> None:
        huge = {"hugepages-2Mi": "4Mi"}
        whole = {"requests": huge, "limits": huge}
        assert "spec.resources: Forbidden: HugePages require" in refusal(pod("x", {}, resources=whole))
        assert admitted(pod("x", asking(cpu=1), resources=whole)).name == "x"

    def test_other_namespaces_are_left_alone(self) -> None:
        elsewhere = limit_range(max={"cpu": "1"})
        elsewhere["metadata"]["namespace"] = "elsewhere"
        assert admitted(elsewhere, pod("x", asking(cpu=2))).requests.amounts.milli_cpu == 2000


class TestResourceQuota:
    def test_a_pod_beyond_it_is_refused_in_the_servers_words(self) -> None:
        hard = {"requests.cpu": "2", "pods": "10"}
        message = refusal(quota(hard), pod("w", asking(cpu=1)), pod("x", asking(cpu="1500m")))
        assert message == (
            'pods "x" is forbidden: exceeded quota: q, requested: requests.cpu=1500m, used: requests.cpu=1, '
            "limited: requests.cpu=2"
        )

    def test_all_that_is_exceeded_is_told_in_order(self) -> None:
        message = refusal(quota({"pods": "0", "count/pods": "0"}), pod())
        assert message.endswith(
            "exceeded quota: q, requested: count/pods=1,pods=1, used: count/pods=0,pods=0, limited: count/pods=0,pods=0"
        )

    @pytest.mark.parametrize(
        ("name", "container"),
        [
            ("cpu", asking(cpu=2)),
            ("requests.memory", asking(memory=2)),
            ("limits.cpu", asking({"cpu": "2"})),
            ("requests.ephemeral-storage", asking(None, **{"ephemeral-storage": 2})),
            ("requests.nvidia.com/gpu", asking({"nvidia.com/gpu": 2})),
            ("hugepages-2Mi", asking({"hugepages-2Mi": "2Mi"}, memory=1)),
            ("requests.hugepages-2Mi", asking({"hugepages-2Mi": "2Mi"}, memory=1)),
        ],
    )
    def test_each_resource_is_counted(self, name: str, container: Json) -> None:
        assert f"exceeded quota: q, requested: {name}=2" in refusal(quota({name: "1"}), pod("x", container))

    def test_what_is_limited_must_be_named_by_each_container(self) -> None:
        given = pod("x", asking(cpu=1), {}, initContainers=[{"name": "init"}])
        message = refusal(
            quota({"limits.memory": "1", "requests.cpu": "9", "requests.nvidia.com/gpu": 1}), given
        )
        assert message == (
            'pods "x" is forbidden: failed quota: q: '
            "must specify limits.memory for: c0,c1,init; requests.cpu for: c1,init"
        )

    def test_a_pod_with_resources_of_its_own_needs_none_in_containers(self) -> None:
        given = pod("x", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "1"}})
        assert admitted(quota({"requests.cpu": "1"}), given).name == "x"

    def test_defaults_of_a_limit_range_count(self) -> None:
        bounds = limit_range(default={"cpu": "1"})
        loaded = load(quota({"limits.cpu": "2"}), bounds, *(pod(f"p{number}") for number in range(3)))
        assert [each.name for each in loaded.pods] == ["p0", "p1"]

    @pytest.mark.parametrize(
        ("spec", "inside", "outside"),
        [
            ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, {}),
            ({"scopes": ["NotTerminating"]}, {}, {"activeDeadlineSeconds": 5}),
            ({"scopes": ["PriorityClass"]}, {"priorityClassName": "system-node-critical"}, {}),
            (
                {"scopes": ["CrossNamespacePodAffinity"]},
                {
                    "affinity": {
                        "podAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [
                                {"topologyKey": "a", "labelSelector": {}, "namespaces": ["b"]}
                            ]
                        }
                    }
                },
                {},
            ),
            *(
                (
                    {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", **expression}]}},
                    {"priorityClassName": inside},
                    {"priorityClassName": outside},
                )
                for expression, inside, outside in (
                    ({"operator": "In", "values": ["high"]}, "high", "low"),
                    ({"operator": "NotIn", "values": ["high"]}, "", "high"),
                    ({"operator": "Exists"}, "low", ""),
                    ({"operator": "DoesNotExist"}, "", "low"),
                )
            ),
        ],
    )
    def test_only_pods_in_its_scopes_count(self, spec: Json, inside: Json, outside: Json) -> None:
        nothing = quota({"pods": "0"}, **spec)
        assert "exceeded quota" in refusal(nothing, pod(**inside))
        assert admitted(nothing, pod(**outside)).name == "x"

    @pytest.mark.parametrize(("scope", "container"), [("BestEffort", {}), ("NotBestEffort", asking(cpu=1))])
    def test_scopes_by_quality_of_service(self, scope: str, container: Json) -> None:
        nothing = quota({"pods": "0"}, scopes=[scope])
        loaded = load(nothing, pod("a", {}), pod("b", asking(cpu=1)))
        (refused,) = loaded.admission.refused
        assert refused.pod == ("default/a" if container == {} else "default/b")

    def test_the_class_by_default_counts_as_the_pods_own(self) -> None:
        default = {
            "kind": "PriorityClass",
            "apiVersion": "scheduling.k8s.io/v1",
            "metadata": {"name": "normal"},
            "value": 1,
            "globalDefault": True,
        }
        assert "exceeded quota" in refusal(default, quota({"pods": "0"}, scopes=["PriorityClass"]), pod())

    @pytest.mark.parametrize(("phase", "left"), [("Running", 0), ("Succeeded", 1)])
    def test_pods_that_exist_use_it_wherever_they_come_in_the_input(self, phase: str, left: int) -> None:
        there = pod("there", asking(cpu=1))
        there["metadata"]["uid"] = "1"
        there["status"] = {"phase": phase}
        loaded = load(quota({"requests.cpu": "1"}), pod("new", asking(cpu=1)), there)
        assert len(loaded.pods) == 1 + left

    def test_a_workload_gets_the_pods_that_fit(self) -> None:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
        deployment = {
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "metadata": {"name": "web"},
            "spec": {"replicas": 5, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        }
        loaded = load(deployment, quota({"pods": "3"}))
        assert (len(loaded.pods), len(loaded.admission.refused)) == (3, 2)
        assert len({id(each.spec) for each in loaded.pods}) == 1

    @given(st.lists(st.integers(1, 20), max_size=8), st.integers(0, 60))
    def test_what_is_created_fits_and_what_is_refused_would_not_have(
        self, cpus: list[int], hard: int
    ) -> None:
        pods = [pod(f"p{number}", asking(cpu=cpu)) for number, cpu in enumerate(cpus)]
        loaded = load(quota({"requests.cpu": hard}), *pods)
        used, created = 0, []
        for number, cpu in enumerate(cpus):
            if used + cpu <= hard:
                used += cpu
                created.append(f"p{number}")
        assert [each.name for each in loaded.pods] == created
        assert loaded.admission.admitted == len(created) == len(cpus) - len(loaded.admission.refused)


class TestOnTopOfACluster:
    """The manifests come on top of objects that an API server has stored."""

    @staticmethod
    def on_top(tmp_path: Path, existing: Sequence[Json], *manifests: Json) -> Manifests:
        file = tmp_path / "new.json"
        file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": manifests}))
        for number, each in enumerate(existing):
            each["metadata"]["uid"] = str(number)
        return read_manifests(file, existing=load(*existing).objects())

    def test_new_pods_are_admitted_under_the_policies_of_both(self, tmp_path: Path) -> None:
        bounds = limit_range(default={"cpu": "2"})
        new = self.on_top(
            tmp_path, [bounds], runtime_class(overhead={"podFixed": {"cpu": "1"}}), pod(runtimeClassName="vm")
        )
        (admitted,) = new.pods
        assert admitted.spec.containers[0].resources.limits["cpu"] == Quantity.parse("2")
        assert admitted.spec.overhead["cpu"] == Quantity.parse("1")

    def test_pods_of_the_cluster_count_for_quotas_of_both(self, tmp_path: Path) -> None:
        there = pod("there", asking(cpu=1))
        for existing, manifests in (([quota({"cpu": "1"}), there], []), ([there], [quota({"cpu": "1"})])):
            new = self.on_top(tmp_path, existing, *manifests, pod("new", asking(cpu=1)))
            assert new.pods == ()
            (refused,) = new.admission.refused
            assert "used: cpu=1, limited: cpu=1" in refused.message

    def test_what_is_there_is_neither_changed_nor_told_again(self, tmp_path: Path) -> None:
        new = self.on_top(tmp_path, [pod("there")], limit_range(default={"cpu": "2"}))
        assert new.pods == ()
        assert new.admission == AdmissionOutcome()


class TestWhatIsAdmitted:
    POLICIES = (
        limit_range(default={"cpu": "1"}),
        runtime_class(overhead={"podFixed": {"cpu": "1"}}),
        quota({"pods": "0"}),
    )

    @pytest.mark.parametrize("written", [{"status": {"phase": "Pending"}}, {}])
    def test_a_pod_that_an_api_server_has_written_stays_as_it_is(self, written: Json) -> None:
        stored = pod(runtimeClassName="vm") | written
        if not written:
            stored["metadata"]["uid"] = "1"
        assert admitted(*self.POLICIES, stored) == admitted(stored)
        assert not admitted(stored).spec.tolerations

    def test_admission_again_changes_nothing(self) -> None:
        once = admitted(*self.POLICIES[:2], pod(runtimeClassName="vm"))
        again = to_manifest(once)
        del again["metadata"]["uid"]
        assert admitted(*self.POLICIES[:2], again) == once
