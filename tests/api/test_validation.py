"""What the API server refuses: one example for each rule, and the words it has for it."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.manifests import ManifestError, object_from_manifest, pod_from_manifest
from kschedfw.api.names import (
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)


def errors_of(manifest: dict[str, Any], kind: str = "Pod") -> list[str]:
    with pytest.raises(ManifestError) as caught:
        object_from_manifest({"metadata": {"name": "x"}, **manifest}, kind)
    return [str(error) for error in caught.value.errors]


def errors_of_spec(**spec: Any) -> list[str]:
    return errors_of({"spec": {"containers": [{"name": "main"}], **spec}})


def errors_in(**spec: Any) -> list[str]:
    """The errors of a spec, which may be valid."""
    manifest = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "main"}], **spec}}
    try:
        object_from_manifest(manifest, "Pod")
    except ManifestError as error:
        return [str(each) for each in error.errors]
    return []


def errors_of_container(**fields: Any) -> list[str]:
    return errors_of_spec(containers=[{"name": "main", **fields}])


def in_node_affinity(term: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"


class TestMetadata:
    @pytest.mark.parametrize(
        ("metadata", "error"),
        [
            ({}, "metadata.name: Required value: name or generateName is required"),
            ({"name": "Web"}, 'metadata.name: Invalid value: "Web": a lowercase RFC 1123 subdomain must'),
            (
                {"name": "a" * 254},
                f'metadata.name: Invalid value: "{"a" * 198}…: must be no more than 253 bytes',
            ),
            (
                {"name": "a", "namespace": "a.b"},
                'metadata.namespace: Invalid value: "a.b": must not contain dots',
            ),
            (
                {"name": "a", "labels": {"-": ""}},
                'metadata.labels: Invalid value: "-": name part must consist of',
            ),
            (
                {"name": "a", "labels": {"b": "-"}},
                'metadata.labels: Invalid value: "-": a valid label must be',
            ),
            (
                {"name": "a", "annotations": {"/b": ""}},
                'metadata.annotations: Invalid value: "/b": prefix part must',
            ),
        ],
    )
    def test_names_and_labels(self, metadata: dict[str, Any], error: str) -> None:
        (found,) = errors_of({"metadata": metadata, "spec": {"containers": [{"name": "a"}]}})
        assert found.startswith(error)

    def test_names_of_stateful_sets_are_labels(self) -> None:
        assert label_problems("a.b")
        assert not subdomain_problems("a.b")

    def test_everything_is_told_at_once(self) -> None:
        manifest = {"metadata": {"name": "A", "labels": {"b": "-"}}, "spec": {"containers": []}}
        paths = [error.split(":")[0] for error in errors_of(manifest)]
        assert paths == ["metadata.name", "metadata.labels", "spec.containers"]


class TestContainers:
    def test_there_must_be_one(self) -> None:
        assert errors_of({"spec": {}}) == ["spec.containers: Required value"]

    def test_names_are_required_and_unique(self) -> None:
        assert errors_of_spec(containers=[{"name": "a"}, {}]) == ["spec.containers[1].name: Required value"]
        assert errors_of_spec(containers=[{"name": "a"}], initContainers=[{"name": "a"}]) == [
            'spec.initContainers[0].name: Duplicate value: "a"'
        ]
        (error,) = errors_of_spec(containers=[{"name": "A"}])
        assert error.startswith('spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label')

    @pytest.mark.parametrize(
        ("port", "error"),
        [
            ({}, "containerPort: Required value"),
            (
                {"containerPort": 70000},
                "containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            ),
            (
                {"containerPort": 80, "hostPort": -1},
                "hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
            ),
        ],
    )
    def test_ports(self, port: dict[str, Any], error: str) -> None:
        assert errors_of_container(ports=[port]) == [f"spec.containers[0].ports[0].{error}"]

    def test_ports_in_the_host_s_network_are_the_same_on_both_sides(self) -> None:
        ports = [{"containerPort": 80, "hostPort": 81}]
        assert errors_of_spec(hostNetwork=True, containers=[{"name": "a", "ports": ports}]) == [
            (
                "spec.containers[0].ports[0].hostPort: Invalid value: 81: "
                "must match `containerPort` when `hostNetwork` is true"
            )
        ]
        # The API server doesn't compare those of init containers.
        init = [{"name": "b", "ports": ports}]
        pod_from_manifest(
            {
                "metadata": {"name": "x"},
                "spec": {"hostNetwork": True, "containers": [{"name": "a"}], "initContainers": init},
            }
        )

    @pytest.mark.parametrize(
        ("resources", "error"),
        [
            (
                {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
                'requests.cpu: Invalid value: "2": must be less than or equal to cpu limit of 1',
            ),
            (
                {"requests": {"cpu": "-1"}},
                'requests.cpu: Invalid value: "-1": must be greater than or equal to 0',
            ),
            (
                {"limits": {"a.b/c": "1500m"}, "requests": {"a.b/c": "1500m"}},
                'limits[a.b/c]: Invalid value: "1500m": must be an integer',
            ),
            (
                {"requests": {"a.b/c": "1"}},
                "limits: Required value: Limit must be set for non overcommitable resources",
            ),
            (
                {"requests": {"a.b/c": "1"}, "limits": {"a.b/c": "2"}},
                'requests[a.b/c]: Invalid value: "1": must be equal to a.b/c limit of 2',
            ),
            (
                {"requests": {"gpu": "1"}},
                'requests.gpu: Invalid value: "gpu": must be a standard resource for containers',
            ),
            (
                {"requests": {"/gpu": "1"}},
                'requests[/gpu]: Invalid value: "/gpu": prefix part must be non-empty',
            ),
            (
                {"limits": {"requests.a.b/c": "1"}},
                (
                    'limits[requests.a.b/c]: Invalid value: "requests.a.b/c": '
                    "doesn't follow extended resource name standard"
                ),
            ),
        ],
    )
    def test_resources(self, resources: dict[str, Any], error: str) -> None:
        assert f"spec.containers[0].resources.{error}" in errors_of_container(resources=resources)

    @pytest.mark.parametrize(
        ("name", "amount", "is_whole"),
        [
            ("hugepages-2Mi", "4Mi", True),
            ("hugepages-2Mi", "0", True),
            ("hugepages-2Mi", "3Mi", False),
            ("hugepages-2Mi", "1", False),
            ("hugepages-1Gi", "2Gi", True),
            ("hugepages-1Gi", "1Mi", False),
            ("hugepages-many", "1Gi", False),
            ("hugepages-0", "1Gi", False),
            ("hugepages-500m", "1Gi", False),
        ],
    )
    def test_huge_pages_are_wanted_in_whole_pages(self, name: str, amount: str, is_whole: bool) -> None:
        amounts = {name: amount, "memory": "1Gi"}
        resources = {"requests": amounts, "limits": amounts}
        error = f'Invalid value: "{amount}": {amount} is not positive integer multiple of {name}'
        told = [] if is_whole else [f"spec.containers[0].resources: {error}"] * 2
        assert errors_in(containers=[{"name": "main", "resources": resources}]) == told
        assert errors_in(resources=resources) == ([] if is_whole else [f"spec.resources: {error}"] * 2)

    @given(st.integers(0, 2**40), st.sampled_from([2**21, 2**30]))
    def test_whatever_the_amount_of_huge_pages(self, amount: int, size: int) -> None:
        amounts = {f"hugepages-{size}": str(amount), "cpu": "1"}
        resources = {"requests": amounts, "limits": amounts}
        errors = errors_in(containers=[{"name": "main", "resources": resources}])
        assert bool(errors) is bool(amount % size)

    def test_restart_rules(self) -> None:
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
        assert errors_of_container(restartPolicyRules=[rule]) == [
            "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used"
        ]
        assert errors_of_container(restartPolicy="Never", restartPolicyRules=[rule] * 21) == [
            "spec.containers[0].restartPolicyRules: Too many: 21: must have at most 20 items"
        ]
        many = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": list(range(256))}}
        assert errors_of_container(restartPolicy="Never", restartPolicyRules=[rule, many]) == [
            "spec.containers[0].restartPolicyRules[1].exitCodes.values: Too many: 256: must have at most 255 items"
        ]
        place = "spec.containers[0].restartPolicyRules[0]"
        assert errors_of_container(restartPolicy="Never", restartPolicyRules=[{}]) == [
            f"{place}.action: Required value",
            f"{place}.exitCodes: Required value",
        ]
        assert errors_of_container(restartPolicy="Never", restartPolicyRules=[rule | {"action": "Stop"}]) == [
            f'{place}.action: Unsupported value: "Stop": supported values: "Restart", "RestartAllContainers"'
        ]

    def test_resources_of_the_pod_as_a_whole(self) -> None:
        containers = [{"name": "a", "resources": {"requests": {"cpu": "2"}}}]
        resources = {"requests": {"cpu": "1", "ephemeral-storage": "1"}}
        assert errors_of_spec(containers=containers, resources=resources) == [
            (
                'spec.resources.requests.ephemeral-storage: Unsupported value: "ephemeral-storage": '
                'supported values: "cpu", "memory", "hugepages-*"'
            ),
            (
                'spec.resources.requests.cpu: Invalid value: "1": '
                "must be greater than or equal to aggregate container requests of 2"
            ),
        ]

    def test_overhead(self) -> None:
        assert errors_of_spec(overhead={"cpu": "-1"}) == [
            'spec.overhead.cpu: Invalid value: "-1": must be greater than or equal to 0'
        ]


class TestPlacement:
    @pytest.mark.parametrize(
        ("term", "error"),
        [
            (
                {"operator": "In"},
                "values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            ),
            (
                {"operator": "Exists", "values": ["a"]},
                "values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            (
                {"operator": "Gt", "values": ["1", "2"]},
                "values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
            ),
            (
                {"operator": "Lt", "values": ["many"]},
                "values[0]: Invalid value: \"many\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ],
    )
    def test_expressions_of_nodes(self, term: dict[str, Any], error: str) -> None:
        affinity = in_node_affinity({"matchExpressions": [{"key": "a", **term}]})
        assert errors_of_spec(affinity=affinity) == [f"{TERM}.matchExpressions[0].{error}"]

    @pytest.mark.parametrize(
        ("field", "error"),
        [
            (
                {"key": "metadata.name", "operator": "In", "values": ["a", "b"]},
                (
                    "values: Required value: must be only one value when `operator` is 'In' or 'NotIn' "
                    "for node field selector"
                ),
            ),
            (
                {"key": "metadata.name", "operator": "Exists"},
                'operator: Invalid value: "Exists": not a valid selector operator',
            ),
            (
                {"key": "metadata.uid", "operator": "In", "values": ["a"]},
                'key: Invalid value: "metadata.uid": not a valid field selector key',
            ),
        ],
    )
    def test_fields_of_nodes(self, field: dict[str, Any], error: str) -> None:
        assert errors_of_spec(affinity=in_node_affinity({"matchFields": [field]})) == [
            f"{TERM}.matchFields[0].{error}"
        ]

    def test_names_in_fields_of_nodes(self) -> None:
        field = {"key": "metadata.name", "operator": "In", "values": ["A"]}
        (error,) = errors_of_spec(affinity=in_node_affinity({"matchFields": [field]}))
        assert error.startswith(
            f'{TERM}.matchFields[0].values[0]: Invalid value: "A": a lowercase RFC 1123 subdomain'
        )

    def test_a_node_selector_has_terms(self) -> None:
        assert errors_of_spec(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}) == [
            (
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: "
                "must have at least one node selector term"
            )
        ]

    def test_weights(self) -> None:
        node_affinity = {PREFERRED: [{"weight": 0, "preference": {}}]}
        term = {"topologyKey": "zone", "labelSelector": {}}
        pod_affinity = {PREFERRED: [{"weight": 101, "podAffinityTerm": term}]}
        assert errors_of_spec(affinity={"nodeAffinity": node_affinity, "podAntiAffinity": pod_affinity}) == [
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be in the range 1-100",
            f"spec.affinity.podAntiAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100",
        ]

    @pytest.mark.parametrize(
        ("term", "error"),
        [
            ({"topologyKey": ""}, "topologyKey: Required value: can not be empty"),
            ({"topologyKey": "-"}, 'topologyKey: Invalid value: "-": name part must consist of'),
            (
                {"matchLabelKeys": ["a"]},
                "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
            ),
            (
                {"labelSelector": {}, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["a"]},
                'matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys',
            ),
            ({"namespaces": ["A"]}, 'namespaces[0]: Invalid value: "A": a lowercase RFC 1123 label'),
            (
                {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}},
                (
                    'labelSelector.matchExpressions[0].operator: Invalid value: "Gt": not a valid selector '
                    'operator; label selectors support "In", "NotIn", "Exists", "DoesNotExist"'
                ),
            ),
            (
                {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
                "namespaceSelector.matchExpressions[0].values: Required value: must be specified",
            ),
            (
                {
                    "labelSelector": {
                        "matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]
                    }
                },
                "labelSelector.matchExpressions[0].values: Forbidden: may not be specified",
            ),
            (
                {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}},
                'labelSelector.matchExpressions[0].values[0]: Invalid value: "-": a valid label must',
            ),
        ],
    )
    def test_terms_of_pod_affinity(self, term: dict[str, Any], error: str) -> None:
        (found,) = errors_of_spec(affinity={"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}})
        assert found.startswith(f"spec.affinity.podAffinity.{REQUIRED}[0].{error}")

    @pytest.mark.parametrize(
        ("constraint", "error"),
        [
            ({"maxSkew": 0}, "maxSkew: Invalid value: 0: must be greater than zero"),
            ({"minDomains": 0}, "minDomains: Invalid value: 0: must be greater than zero"),
            (
                {"minDomains": 1, "whenUnsatisfiable": "ScheduleAnyway"},
                (
                    "minDomains: Invalid value: 1: "
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                ),
            ),
            ({"topologyKey": ""}, "topologyKey: Required value: can not be empty"),
            (
                {"matchLabelKeys": ["a"]},
                "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
            ),
        ],
    )
    def test_spread_constraints(self, constraint: dict[str, Any], error: str) -> None:
        given = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **constraint}
        assert errors_of_spec(topologySpreadConstraints=[given]) == [
            f"spec.topologySpreadConstraints[0].{error}"
        ]

    def test_a_topology_key_of_a_spread_constraint_may_be_no_label_key(self) -> None:
        constraint = {"maxSkew": 1, "topologyKey": "no key", "whenUnsatisfiable": "DoNotSchedule"}
        spec = {"containers": [{"name": "a"}], "topologySpreadConstraints": [constraint]}
        pod_from_manifest({"metadata": {"name": "x"}, "spec": spec})

    def test_spread_constraints_are_unique(self) -> None:
        given = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        assert errors_of_spec(topologySpreadConstraints=[given, given]) == [
            (
                "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: "
                'Duplicate value: "{zone, DoNotSchedule}"'
            )
        ]

    @pytest.mark.parametrize(
        ("toleration", "error"),
        [
            (
                {},
                'operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means',
            ),
            ({"key": "-"}, 'key: Invalid value: "-": name part must consist of'),
            (
                {"key": "a", "operator": "Exists", "value": "b"},
                "operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
            ),
            ({"key": "a", "value": "-"}, 'operator: Invalid value: "-": a valid label must be'),
            (
                {"key": "a", "tolerationSeconds": 5, "effect": "NoSchedule"},
                "effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
            ),
            (
                {"key": "a", "operator": "Gt", "value": "b"},
                'value: Invalid value: "b": must be a valid decimal integer in canonical form',
            ),
            (
                {"key": "a", "operator": "Gt", "value": "+100"},
                'value: Invalid value: "+100": must be a valid decimal integer in canonical form',
            ),
            (
                {"key": "a", "operator": "Lt", "value": "0100"},
                'value: Invalid value: "0100": must be a valid decimal integer in canonical form',
            ),
        ],
    )
    def test_tolerations(self, toleration: dict[str, Any], error: str) -> None:
        (found,) = errors_of_spec(tolerations=[toleration])
        assert found.startswith(f"spec.tolerations[0].{error}")

    def test_gates(self) -> None:
        assert errors_of_spec(schedulingGates=[{"name": "a"}, {"name": "a"}]) == [
            'spec.schedulingGates[1]: Duplicate value: "a"'
        ]
        assert errors_of_spec(schedulingGates=[{"name": "a"}], nodeName="n") == [
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"
        ]
        (error,) = errors_of_spec(schedulingGates=[{"name": "-"}])
        assert error.startswith('spec.schedulingGates[0]: Invalid value: "-": name part must')

    @pytest.mark.parametrize(
        ("spec", "path"),
        [
            ({"nodeName": "A"}, "spec.nodeName"),
            ({"nodeSelector": {"a": "-"}}, "spec.nodeSelector"),
            ({"priorityClassName": "A"}, "spec.priorityClassName"),
            ({"priority": 1 << 31}, "spec.priority"),
        ],
    )
    def test_names_and_numbers(self, spec: dict[str, Any], path: str) -> None:
        (error,) = errors_of_spec(**spec)
        assert error.startswith(f"{path}: Invalid value: ")


class TestNodes:
    def node(self, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> list[str]:
        return errors_of({"spec": spec or {}, "status": status or {}}, "Node")

    def test_taints(self) -> None:
        taint = {"key": "a", "effect": "NoSchedule"}
        assert self.node({"taints": [taint, {**taint, "value": "b"}]}) == [
            'spec.taints[1]: Duplicate value: "a=b:NoSchedule"'
        ]
        assert self.node({"taints": [{"effect": "NoSchedule"}]}) == ["spec.taints[0].key: Required value"]
        (error,) = self.node({"taints": [{**taint, "value": "-"}]})
        assert error.startswith('spec.taints[0].value: Invalid value: "-": a valid label')

    def test_amounts(self) -> None:
        status = {"capacity": {"cpu": "-1"}, "allocatable": {"pods": "1.5"}}
        assert self.node(status=status) == [
            'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
            'status.allocatable.pods: Invalid value: "1500m": must be an integer',
        ]

    def test_the_same_amount_is_told_once(self) -> None:
        assert len(self.node(status={"capacity": {"cpu": "-1"}})) == 1


class TestWorkloads:
    TEMPLATE: ClassVar = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a"}]}}
    SELECTOR: ClassVar = {"matchLabels": {"app": "web"}}

    @pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"])
    def test_selectors_match_templates(self, kind: str) -> None:
        assert errors_of({"spec": {"template": self.TEMPLATE}}, kind) == [
            "spec.selector: Required value",
            'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
        ]
        assert errors_of({"spec": {"selector": self.SELECTOR}}, kind) == ["spec.template: Required value"]
        assert errors_of({"spec": {"selector": {}, "template": self.TEMPLATE}}, kind) == [
            f"spec.selector: Invalid value: {{}}: empty selector is invalid for {kind.lower()}"
        ]

    @pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
    def test_a_template_may_leave_ports_of_the_host_open_and_may_not_name_others(self, kind: str) -> None:
        container: dict[str, Any] = {"name": "a", "ports": [{"containerPort": 80}]}
        spec: dict[str, Any] = {"hostNetwork": True, "containers": [container]}
        template = {**self.TEMPLATE, "spec": spec}
        manifest: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"template": template}}
        if kind != "Job":
            manifest["spec"]["selector"] = self.SELECTOR
        object_from_manifest(manifest, kind)
        container["ports"][0]["hostPort"] = 81
        assert errors_of(manifest, kind) == [
            (
                "spec.template.spec.containers[0].ports[0].hostPort: Invalid value: 81: "
                "must match `containerPort` when `hostNetwork` is true"
            )
        ]

    def test_numbers_and_policies(self) -> None:
        template = {**self.TEMPLATE, "spec": {"containers": [{"name": "a"}], "restartPolicy": "Never"}}
        assert errors_of(
            {"spec": {"selector": self.SELECTOR, "template": template, "replicas": -1}}, "ReplicaSet"
        ) == [
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ]

    def test_replication_controllers(self) -> None:
        assert errors_of({"spec": {}}, "ReplicationController") == [
            "spec.selector: Required value",
            "spec.template: Required value",
        ]

    def test_jobs(self) -> None:
        assert errors_of({"spec": {"parallelism": -1, "completions": -1}}, "Job") == [
            "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
            "spec.completions: Invalid value: -1: must be greater than or equal to 0",
            "spec.template: Required value",
        ]
        assert errors_of({"spec": {"template": {"spec": {}}}}, "Job") == [
            "spec.template.spec.containers: Required value"
        ]


class TestOthers:
    def test_disruption_budgets(self) -> None:
        assert errors_of({"spec": {"minAvailable": 1, "maxUnavailable": "1%"}}, "PodDisruptionBudget") == [
            (
                'spec: Invalid value: {"minAvailable":1,"maxUnavailable":"1%"}: '
                "minAvailable and maxUnavailable cannot be both set"
            )
        ]

    def test_priority_classes(self) -> None:
        assert errors_of({"value": 1_000_000_001}, "PriorityClass") == [
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"
        ]
        built_in = {"metadata": {"name": "system-x"}, "value": 2_000_000_000}
        assert object_from_manifest(built_in, "PriorityClass").name == "system-x"

    def test_services(self) -> None:
        (error,) = errors_of({"spec": {"selector": {"a": "-"}}}, "Service")
        assert error.startswith('spec.selector: Invalid value: "-"')

    def test_volumes(self) -> None:
        manifest: dict[str, Any] = {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}}}
        assert errors_of(manifest, "PersistentVolume") == [
            "spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term"
        ]
        assert object_from_manifest({"metadata": {"name": "v"}}, "PersistentVolume").name == "v"

    def test_storage_capacity(self) -> None:
        selector = {"matchExpressions": [{"key": "zone", "operator": "In"}]}
        missing, empty = errors_of({"nodeTopology": selector}, "CSIStorageCapacity")
        assert missing == "storageClassName: Required value"
        assert empty.startswith("nodeTopology.matchExpressions[0].values: Required value: ")

    def test_what_scheduling_does_not_read_is_not_looked_at(self) -> None:
        spec = {"containers": [{"name": "a", "securityContext": 5, "image": ""}], "volumes": [{"name": "A"}]}
        assert pod_from_manifest({"metadata": {"name": "x"}, "spec": spec}).name == "x"


@pytest.mark.parametrize("name", ["a", "a.b/c", "A_1.b", "example.com/" + "x" * 63])
def test_qualified_names(name: str) -> None:
    assert not qualified_name_problems(name)


@pytest.mark.parametrize("name", ["", "/", "a/", "/a", "a/b/c", "A/b", "a b", "-a", "x" * 64])
def test_not_qualified_names(name: str) -> None:
    assert qualified_name_problems(name)


def test_values_of_labels() -> None:
    assert not label_value_problems("")
    assert label_value_problems("x" * 64) == ("must be no more than 63 bytes",)
