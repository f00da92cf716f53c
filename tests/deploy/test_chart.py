"""The Helm chart: its values and rights, what helm makes of it, and `run` with these rights on a real API server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from kschedfw_apiserver.control_plane import ControlPlane, control_plane, needs_control_plane
from kschedfw_kubernetes import SCHEDULER_KINDS, KubernetesCluster, connect
from serve.replicas import Replica, token_of

from kschedfw import Pod, __version__, load_configuration, make_node, make_pod, make_pod_group
from kschedfw.api import PodGroup
from kschedfw.testing.waiting import PATIENCE

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "deploy" / "charts" / "kschedfw"
RIGHTS: dict[str, list[dict[str, Any]]] = yaml.safe_load((CHART / "rights.yaml").read_text())
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
NAMESPACE = "kube-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:kschedfw"
HELM, KUBECTL = shutil.which("helm"), shutil.which("kubectl")
needs_helm = pytest.mark.skipif(
    HELM is None, reason="NOT TESTED: there is no helm, so the chart's templates aren't rendered"
)

Manifest = dict[str, Any]
Right = tuple[str, str, str, str]


def expanded(rules: Sequence[Mapping[str, Any]]) -> set[Right]:
    """Group, resource, name and verb of everything that the rules allow; an empty name stands for all."""
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def rules_of(*features: str) -> list[dict[str, Any]]:
    """The rules for the scheduler with these features."""
    return [rule for feature in ("always", *features) for rule in RIGHTS[feature]]


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    return subprocess.run(
        [HELM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )


def rendered(**values: object) -> list[Manifest]:
    """The chart's manifests with these values beside the defaults; `features__groups=True` sets features.groups."""
    set_values = [f"--set-json={name.replace('__', '.')}={json.dumps(each)}" for name, each in values.items()]
    done = helm(
        "template", "kschedfw", str(CHART), f"--namespace={NAMESPACE}", "--kube-version=1.36.0", *set_values
    )
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def one(manifests: Sequence[Manifest], kind: str) -> Manifest:
    (found,) = (each for each in manifests if each["kind"] == kind and each["metadata"]["name"] == "kschedfw")
    return found


class TestRights:
    """They are those of the example, of which a test shows that all are needed and none is missing."""

    def test_with_the_features_of_the_example_they_are_the_example_s(self) -> None:
        example = REPOSITORY / "examples" / "10-second-scheduler" / "rbac.yaml"
        (role,) = (each for each in yaml.safe_load_all(example.read_text()) if each["kind"] == "ClusterRole")
        rules = rules_of("preemption", "volumes", "devices", "callers")
        assert expanded(rules) == expanded(role["rules"])

    def test_groups_take_what_their_page_says(self) -> None:
        page = " ".join((REPOSITORY / "docs" / "groups.md").read_text().split())
        assert (
            "the rights to list and watch `podgroups` of `scheduling.k8s.io`, and to patch `podgroups/status`"
            in page
        )
        assert expanded(RIGHTS["groups"]) == {
            ("scheduling.k8s.io", "podgroups", "", "list"),
            ("scheduling.k8s.io", "podgroups", "", "watch"),
            ("scheduling.k8s.io", "podgroups/status", "", "patch"),
        }

    def test_each_feature_of_the_values_has_rights_or_is_a_matter_of_the_namespace(self) -> None:
        assert {"always", *VALUES["features"]} == {*RIGHTS, "sharedState"}


class TestValues:
    def test_the_schema_describes_each_value_and_nothing_else(self) -> None:
        assert SCHEMA["properties"].keys() - {"global"} == VALUES.keys()
        for name, section in SCHEMA["properties"].items():
            if section.get("additionalProperties") is False:
                assert section["properties"].keys() == VALUES[name].keys(), name

    def test_the_chart_is_for_this_version(self) -> None:
        assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == __version__


@needs_helm
@pytest.mark.slow
class TestRendered:
    def test_helm_finds_no_fault(self) -> None:
        done = helm("lint", "--strict", str(CHART))
        assert done.returncode == 0, done.stdout + done.stderr

    @pytest.mark.parametrize(
        ("values", "named"),
        [
            ({"replcas": 3}, "replcas"),
            ({"features__gropus": True}, "gropus"),
            ({"replicas": 0}, "replicas"),
            ({"configuration": {"leaderElection": {}}}, "configuration"),
        ],
    )
    def test_a_wrong_value_is_refused_by_its_name(self, values: dict[str, object], named: str) -> None:
        set_values = [
            f"--set-json={key.replace('__', '.')}={json.dumps(each)}" for key, each in values.items()
        ]
        done = helm("template", "kschedfw", str(CHART), "--kube-version=1.36.0", *set_values)
        assert done.returncode != 0
        assert named in done.stderr

    @pytest.mark.parametrize("feature", sorted(RIGHTS.keys() - {"always"}))
    def test_the_role_has_the_rules_of_the_chosen_features(self, feature: str) -> None:
        chosen = {name: name == feature for name in RIGHTS if name != "always"}
        role = one(rendered(**{f"features__{name}": on for name, on in chosen.items()}), "ClusterRole")
        assert expanded(role["rules"]) == expanded(rules_of(feature))

    def test_the_lease_of_the_configuration_is_the_one_that_the_role_names(self, tmp_path: Path) -> None:
        manifests = rendered()
        file = tmp_path / "scheduler.yaml"
        file.write_text(one(manifests, "ConfigMap")["data"]["scheduler.yaml"])
        loaded = load_configuration(file)
        assert loaded.warnings == ()
        election = loaded.leader_election
        assert (election.resource_name, election.resource_namespace) == ("kschedfw", NAMESPACE)
        rights = expanded(one(manifests, "Role")["rules"])
        assert ("coordination.k8s.io", "leases", election.resource_name, "update") in rights

    def test_with_shared_state_the_role_is_that_of_the_documentation(self) -> None:
        page = (REPOSITORY / "docs" / "run.md").read_text()
        (documented,) = (
            yaml.safe_load(block)
            for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
            if "kind: Role" in block
        )
        role = one(rendered(features__sharedState=True), "Role")
        assert expanded(role["rules"]) == expanded(documented["rules"])

    def test_the_container_may_change_nothing_and_is_not_root(self) -> None:
        pod = one(rendered(), "Deployment")["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert [each["mountPath"] for each in container["volumeMounts"]] == ["/etc/kschedfw", "/tmp"]

    def test_selectors_name_the_pods(self) -> None:
        manifests = rendered(serviceMonitor__enabled=True)
        labels = one(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]
        assert one(manifests, "Deployment")["spec"]["selector"]["matchLabels"] == labels
        assert one(manifests, "Service")["spec"]["selector"] == labels
        assert one(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
        assert one(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
        spreading = one(manifests, "Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert [each["topologyKey"] for each in spreading] == [
            "topology.kubernetes.io/zone",
            "kubernetes.io/hostname",
        ]
        assert all(each["labelSelector"]["matchLabels"] == labels for each in spreading)
        selected = one(manifests, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
        assert selected.items() <= one(manifests, "Service")["metadata"]["labels"].items()

    def test_a_digest_counts_before_the_tag(self) -> None:
        digest = f"sha256:{'0a' * 32}"
        for values, suffix in (
            ({}, f":{__version__}"),
            ({"image__tag": "1.2.3"}, ":1.2.3"),
            ({"image__tag": "1.2.3", "image__digest": digest}, f"@{digest}"),
        ):
            (container,) = one(rendered(**values), "Deployment")["spec"]["template"]["spec"]["containers"]
            assert container["image"] == f"{VALUES['image']['repository']}{suffix}"

    def test_volumes_and_variables_of_the_values_come_after_the_chart_s_own(self) -> None:
        values = {
            "extraVolumes": [{"name": "tls", "secret": {"secretName": "certificate"}}],
            "extraVolumeMounts": [{"name": "tls", "mountPath": "/etc/tls", "readOnly": True}],
            "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example"}],
        }
        pod = one(rendered(**values), "Deployment")["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["volumes"][-1:] == values["extraVolumes"]
        assert container["volumeMounts"][-1:] == values["extraVolumeMounts"]
        assert container["env"] == values["extraEnv"]
        assert {each["name"] for each in container["volumeMounts"]} == {
            each["name"] for each in pod["volumes"]
        }

    def test_the_values_of_the_page_are_taken(self, tmp_path: Path) -> None:
        page = (REPOSITORY / "docs" / "deploying.md").read_text()
        (block,) = (
            each for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "extraVolumes" in each
        )
        values = tmp_path / "values.yaml"
        values.write_text(block)
        done = helm("template", "kschedfw", str(CHART), f"--values={values}", "--kube-version=1.36.0")
        assert done.returncode == 0, done.stderr
        manifests = [each for each in yaml.safe_load_all(done.stdout) if each]
        asked = yaml.safe_load(block)["serviceMonitor"]["tlsConfig"]
        assert {
            json.dumps(each["tlsConfig"]) for each in one(manifests, "ServiceMonitor")["spec"]["endpoints"]
        } == {json.dumps(asked, sort_keys=True)}

    def test_prometheus_may_read_each_path_that_it_is_told_of(self) -> None:
        manifests = rendered(serviceMonitor__enabled=True)
        endpoints = one(manifests, "ServiceMonitor")["spec"]["endpoints"]
        (role,) = (
            each
            for each in manifests
            if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "kschedfw-metrics"
        )
        (rule,) = role["rules"]
        assert [each["path"] for each in endpoints] == rule["nonResourceURLs"]
        assert {json.dumps(each["tlsConfig"]) for each in endpoints} == {'{"insecureSkipVerify": true}'}

    def test_alerts_ask_about_the_release_and_lead_to_the_runbooks_of_the_values(self) -> None:
        done = helm(
            "template",
            "blue",
            str(CHART),
            "--kube-version=1.36.0",
            "--set=prometheusRule.enabled=true,prometheusRule.runbooks=https://docs.example/runbooks/",
        )
        assert done.returncode == 0, done.stderr
        (rule,) = (
            each for each in yaml.safe_load_all(done.stdout) if each and each["kind"] == "PrometheusRule"
        )
        rules = [each for group in rule["spec"]["groups"] for each in group["rules"]]
        assert len(rules) > 20
        jobs = {job for each in rules for job in re.findall('job="(.*?)"', each["expr"])}
        assert jobs == {"blue"}
        addresses = {each["annotations"]["runbook_url"] for each in rules if "alert" in each}
        assert all(re.fullmatch(r"https://docs\.example/runbooks/\w+\.html", each) for each in addresses)

    def test_the_dashboard_is_a_file_of_a_config_map_that_grafana_finds(self) -> None:
        (found,) = (
            each
            for each in rendered(dashboard__enabled=True)
            if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "kschedfw-dashboard"
        )
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert json.loads(found["data"]["kschedfw.json"]) == json.loads(
            (CHART / "dashboard.json").read_text()
        )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A kube-apiserver that serves groups, and where only the chart's role gives the scheduler rights."""
    flags = (
        "--runtime-config=scheduling.k8s.io/v1alpha2=true",
        "--feature-gates=GenericWorkload=true,GangScheduling=true",
    )
    users = {token_of("scheduler"): ACCOUNT}
    with control_plane(tmp_path_factory.mktemp("chart"), users=users, flags=flags) as real:
        yield real


def kubectl(server: ControlPlane, folder: Path, *arguments: str, given: Sequence[Manifest]) -> None:
    assert KUBECTL is not None
    command = [KUBECTL, f"--kubeconfig={server.kubeconfig(folder / 'administrator')}", *arguments]
    done = subprocess.run(
        command,
        input=yaml.safe_dump_all(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr


@needs_helm
@needs_control_plane[0]
@needs_control_plane[1]
@pytest.mark.skipif(KUBECTL is None, reason="NOT TESTED: there is no kubectl (Debian: kubernetes-client)")
@pytest.mark.slow
class TestRealServer:
    @pytest.mark.parametrize(
        "features",
        [
            {},
            {"groups": True},
            {"sharedState": True},
            {"preemption": False, "volumes": False, "devices": False, "callers": False},
        ],
        ids=["default", "groups", "shared state", "none"],
    )
    def test_run_binds_a_pod_with_the_chart_s_configuration_arguments_and_rights(
        self, server: ControlPlane, tmp_path: Path, features: dict[str, bool]
    ) -> None:
        manifests = rendered(**{f"features__{name}": on for name, on in features.items()})
        kubectl(server, tmp_path, "apply", "--filename=-", given=manifests)
        server.clear()  # the Deployment's pods can't be made: nothing here is a controller
        content = yaml.safe_load(one(manifests, "ConfigMap")["data"]["scheduler.yaml"])
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig", token=token_of("scheduler"))
        file = tmp_path / "scheduler.yaml"
        file.write_text(yaml.safe_dump({**content, "clientConnection": {"kubeconfig": str(kubeconfig)}}))
        (container,) = one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
        command, *arguments = (each for each in container["args"] if not each.startswith("--config"))
        assert command == "run"
        pod = make_pod("web").scheduler_name("kschedfw")
        with (
            connect(server.kubeconfig(tmp_path / "admin"), qps=-1) as client,
            KubernetesCluster(client, (*SCHEDULER_KINDS, PodGroup)) as cluster,
            Replica(server, tmp_path, "scheduler", f"--config={file}", *arguments) as replica,
        ):
            assert cluster.wait_for_sync(PATIENCE)
            cluster.add(make_node("n0").capacity(cpu="8", memory="16Gi", pods="110").build())
            if features.get("groups"):
                cluster.add(make_pod_group("team").gang(min_count=1).build())
                pod = pod.group("team")
            cluster.add(pod.build())
            replica.wait_for(
                lambda: (seen := cluster.get(Pod, "default/web")) is not None and seen.node_name == "n0"
            )
            assert replica.ends() == 0
            assert "forbidden" not in replica.log.lower()
