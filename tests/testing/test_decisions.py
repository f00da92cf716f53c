"""assert_decision says where a pod goes and why, and shows the decision where that is otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from http_extender.servers import scripted

from kschedfw import make_node, make_pod
from kschedfw.api.manifest_error import ManifestError
from kschedfw.api.pod import Pod
from kschedfw.cluster import InMemoryCluster
from kschedfw.config import FeatureGates, default_profile, parse_configuration
from kschedfw.explain import Explanation, Result
from kschedfw.explain.recording import NoProfileError
from kschedfw.framework.nodes.node_info import NodeInfo
from kschedfw.framework.plugin import Plugin, hookimpl
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.framework.status import Status
from kschedfw.testing import assert_decision, assert_golden, decide, record_decisions
from kschedfw.testing.golden import GoldenFileError
from kschedfw.testing.manifest_reader import ManifestReader


class Rack(Plugin[None]):
    name: ClassVar[str] = "Rack"

    @hookimpl
    def filter(self, pod: Pod, node_info: NodeInfo) -> Status | None:
        return Status.unschedulable("wrong rack") if node_info.name.startswith("r2") else None

    @hookimpl
    def score(self, pod: Pod, node_info: NodeInfo) -> int:
        return int(node_info.name[-1]) * 10


NODES = [make_node(name).build() for name in ("r1-1", "r1-4", "r2-1")]


class Broken(Plugin[None]):
    name: ClassVar[str] = "Broken"

    @hookimpl
    def filter(self) -> Status | None:
        raise ZeroDivisionError("by zero")


@pytest.fixture
def decision() -> Explanation:
    return decide(make_pod("pod").build(), Rack, nodes=NODES)


def test_what_is_so_passes(decision: Explanation) -> None:
    assert_decision(
        decision,
        node="r1-4",
        result=Result.PLACED,
        message="",
        feasible=["r1-4", "r1-1"],
        refused={"r2-1": ("Rack", "wrong rack")},
        scores={"Rack": {"r1-1": 10, "r1-4": 40}},
        totals={"r1-4": 40},
        tied=["r1-4"],
        victims=[],
    )


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"node": "r1-1"}, "it should go to r1-1, not r1-4"),
        ({"result": Result.UNSCHEDULABLE}, "it should be unschedulable, not placed"),
        ({"message": "no"}, "the message should be 'no', not ''"),
        ({"feasible": []}, "feasible should be none, not r1-1, r1-4"),
        ({"refused": {"r1-1": "Rack"}}, "r1-1 should be refused by Rack, but is feasible"),
        ({"refused": {"r2-1": "Other"}}, "r2-1 should be refused by Other, not by Rack (wrong rack)"),
        ({"refused": {"r2-1": ("Rack", "full")}}, "Rack should refuse r2-1 with 'full', not 'wrong rack'"),
        ({"scores": {"Rack": {"r1-1": 11}}}, "Rack should give r1-1 11, not 10"),
        ({"scores": {"Rack": {"r2-1": 10}}}, "Rack should give r2-1 10, but doesn't score it"),
        ({"totals": {"r1-1": 0}}, "the total of r1-1 should be 0, not 10"),
        ({"tied": ["r1-1"]}, "tied should be r1-1, not r1-4"),
        ({"victims": ["default/a"]}, "victims should be default/a, not none"),
        ({"node": "r1-5"}, "it should go to r1-5, not r1-4; did you mean r1-4?"),
        ({"refused": {"r2-2": "Rack"}}, "there is no node r2-2; did you mean r2-1?"),
        (
            {"refused": {"r2-1": "Rakc"}},
            "r2-1 should be refused by Rakc, not by Rack (wrong rack); did you mean Rack?",
        ),
        (
            {"scores": {"Rakc": {"r1-1": 10}}},
            "Rakc should give r1-1 10, but doesn't score it; did you mean Rack?",
        ),
        ({"scores": {"Rack": {"x": 10}}}, "there is no node x\n"),
        ({"totals": {"r1-2": 10}}, "there is no node r1-2; did you mean r1-4?"),
    ],
)
def test_what_is_not_so_is_said_above_the_explanation(
    expected: dict[str, object], said: str, decision: Explanation
) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_decision(decision, **expected)  # type: ignore[arg-type]
    assert f"* {said}" in str(failure.value)
    assert "r1-4 (chosen)" in str(failure.value)


class TestGolden:
    @staticmethod
    def cluster(cpu: str = "2") -> InMemoryCluster:
        nodes = [make_node(name).capacity(cpu=cpu, memory="8Gi", pods=10).build() for name in ("a", "b")]
        pods = [make_pod(f"pod-{index}").requests(cpu="1").build() for index in range(3)]
        return InMemoryCluster([*nodes, *pods])

    def test_the_same_decisions_pass(self, tmp_path: Path) -> None:
        path = tmp_path / "golden.jsonl"
        assert_golden(path, self.cluster(), update=True)
        assert_golden(path, self.cluster())

    def test_without_a_file_it_is_said_how_to_get_one(self, tmp_path: Path) -> None:
        with pytest.raises(AssertionError, match="no such file; KSCHEDFW_UPDATE_GOLDEN=1 writes it"):
            assert_golden(tmp_path / "golden.jsonl", self.cluster())

    def test_what_has_changed_is_said_and_nothing_else(self, tmp_path: Path) -> None:
        path = tmp_path / "golden.jsonl"
        assert_golden(path, self.cluster(), update=True)
        with pytest.raises(AssertionError) as failure:
            assert_golden(path, self.cluster(cpu="1"))
        assert "* default/pod-2: result: placed → unschedulable" in str(failure.value)
        assert "* default/pod-0: node a: NodeResourcesFit: " in str(failure.value)
        headline, *differences = str(failure.value).splitlines()
        assert headline.endswith(
            "decisions have changed; if they should, KSCHEDFW_UPDATE_GOLDEN=1 writes it anew"
        )
        assert all(line.startswith("* ") for line in differences)

    def test_the_environment_has_the_file_written_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "golden.jsonl"
        assert_golden(path, self.cluster(), update=True)
        monkeypatch.setenv("KSCHEDFW_UPDATE_GOLDEN", "1")
        assert_golden(path, self.cluster(cpu="1"))
        monkeypatch.delenv("KSCHEDFW_UPDATE_GOLDEN")
        assert_golden(path, self.cluster(cpu="1"))

    @pytest.mark.parametrize("update", [False, True])
    def test_no_pod_at_all_is_no_decision(self, update: bool, tmp_path: Path) -> None:
        path = tmp_path / "golden.jsonl"
        strangers = [make_pod(name).scheduler_name("typo").build() for name in ("a", "b")]
        said = r"no pod was tried: 2 for another scheduler \(spec.schedulerName: typo\).*default-scheduler"
        with pytest.raises(AssertionError, match=said):
            assert_golden(path, InMemoryCluster([*NODES, *strangers]), update=update)
        with pytest.raises(AssertionError, match="no pod was tried: the cluster has no pending pods"):
            record_decisions(InMemoryCluster(NODES))
        assert not path.exists()

    @pytest.mark.parametrize("update", [False, True])
    @pytest.mark.parametrize("placements_only", [False, True])
    def test_a_plugin_that_fails_is_never_accepted(
        self, update: bool, placements_only: bool, tmp_path: Path
    ) -> None:
        path = tmp_path / "golden.jsonl"
        registry = Registry()
        registry.register(Broken)
        profile = Profile([*default_profile().multi_point, EnabledPlugin("Broken")])
        with pytest.raises(AssertionError) as failure:
            assert_golden(
                path,
                self.cluster(),
                profiles=[profile],
                registry=registry,
                update=update,
                placements_only=placements_only,
            )
        assert "\n* default/pod-0: " in str(failure.value)
        assert 'running "Broken" filter plugin: ZeroDivisionError: by zero' in str(failure.value)
        assert not path.exists()

    def test_directories_are_made_and_paths_may_be_texts(self, tmp_path: Path) -> None:
        path = str(tmp_path / "golden" / "of" / "decisions.jsonl")
        assert_golden(path, self.cluster(), update=True)
        assert_golden(path, self.cluster())

    def test_the_cluster_may_be_manifests(self, tmp_path: Path) -> None:
        path = tmp_path / "placements.json"
        workload = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": MANIFEST["spec"]},
            },
        }
        assert_golden(path, [*NODE_MANIFESTS, workload], placements_only=True, update=True)
        assert list(json.loads(path.read_text(encoding="utf-8")).values()).count("big") == 2

    @pytest.mark.parametrize("cluster", ["cluster/", Path("cluster"), {"kind": "Node"}, None])
    def test_what_is_no_cluster_is_told_how_to_make_one(self, cluster: object, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match=r"InMemoryCluster\(read_manifests\(path\)\.objects\(\)\)"):
            assert_golden(tmp_path / "golden.jsonl", cluster)  # type: ignore[arg-type]  # that it isn't one


MANIFEST: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "web"},
    "spec": {
        "containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": "2"}}}],
        "priorityClassName": "urgent",
    },
}
NODE_MANIFESTS: list[dict[str, Any]] = [
    {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "pods": "10"}},
    }
    for name, cpu in (("small", "1"), ("big", "4"))
]


class TestManifests:
    def test_are_read_as_from_a_file(self) -> None:
        bound = {**MANIFEST, "metadata": {"name": "bound"}, "spec": {**MANIFEST["spec"], "nodeName": "big"}}
        decision = decide(MANIFEST, nodes=NODE_MANIFESTS, pods=[bound])
        assert_decision(decision, node="big", refused={"small": "NodeResourcesFit"})
        assert (
            decide(MANIFEST, nodes=NODE_MANIFESTS, pods=[bound, {**bound, "metadata": {"name": "b"}}]).node
            is None
        )

    def test_objects_say_their_kind(self) -> None:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}},
        }
        assert decide(MANIFEST, nodes=NODE_MANIFESTS, objects=[service]).node == "big"
        with pytest.raises(ManifestError, match="every object has to say its kind"):
            decide(MANIFEST, nodes=NODE_MANIFESTS, objects=[{"metadata": {"name": "web"}}])

    def test_priority_classes_count(self) -> None:
        urgent = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "urgent"},
            "value": 7,
        }
        _, _, _, pod = ManifestReader(lenient=False).objects([*NODE_MANIFESTS, urgent, MANIFEST])
        assert isinstance(pod, Pod)
        assert pod.priority == 7

    def test_what_is_wrong_in_one_is_told(self) -> None:
        with pytest.raises(ManifestError, match=r"spec\.containers"):
            decide({"metadata": {"name": "web"}, "spec": {}}, nodes=NODE_MANIFESTS)

    @pytest.mark.parametrize(
        ("pod", "said"),
        [
            (
                make_pod("web"),
                r"expected a Pod or its manifest.* found PodBuilder; PodBuilder.build\(\) makes it",
            ),
            ("web", "expected a Pod or its manifest, a mapping; found str"),
        ],
    )
    def test_something_else_is_told_what_is_expected(self, pod: Any, said: str) -> None:
        with pytest.raises(TypeError, match=said):
            decide(pod, nodes=NODE_MANIFESTS)


PACKING = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: racks
  plugins: {multiPoint: {enabled: [{name: Rack, weight: 100}]}}
"""


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.yaml"
    path.write_text(PACKING, encoding="utf-8")
    return path


class TestPlacements:
    def test_have_the_node_of_each_pod_and_nothing_else(self, tmp_path: Path) -> None:
        path = tmp_path / "placements.json"
        cluster = TestGolden.cluster(cpu="1")
        assert_golden(path, cluster, placements_only=True, update=True)
        written = json.loads(path.read_text(encoding="utf-8"))
        assert list(written) == ["default/pod-0", "default/pod-1", "default/pod-2"]
        assert sorted(map(str, written.values())) == ["None", "a", "b"]
        assert_golden(path, TestGolden.cluster(cpu="1"), placements_only=True)

    def test_scores_may_change_as_long_as_nothing_moves(self, tmp_path: Path) -> None:
        path = tmp_path / "placements.json"
        assert_golden(path, TestGolden.cluster(), placements_only=True, update=True)
        assert_golden(path, TestGolden.cluster(cpu="2500m"), placements_only=True)

    def test_what_moved_is_said_and_nothing_else(self, tmp_path: Path) -> None:
        path = tmp_path / "placements.json"
        path.write_text(
            json.dumps({"default/pod-0": "c", "default/pod-1": None, "default/x": "a"}), encoding="utf-8"
        )
        with pytest.raises(AssertionError) as failure:
            assert_golden(path, TestGolden.cluster(), placements_only=True)
        assert str(failure.value).splitlines()[1:] == [
            "* default/pod-0: c → a",
            "* default/pod-1: no node → b",
            "* default/x: is no longer scheduled",
            "* default/pod-2: is new",
        ]

    @pytest.mark.parametrize("text", ["{", "[]", '{"default/a": 1}', '{"nodes": ["a"]}\n{"pod": "x"}'])
    def test_a_file_of_something_else_is_one_clear_error(self, text: str, tmp_path: Path) -> None:
        path = tmp_path / "placements.json"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(GoldenFileError, match=r"placements\.json: no placements"):
            assert_golden(path, TestGolden.cluster(), placements_only=True)


class TestEquallyGoodNodes:
    @staticmethod
    def nodes_of(pods: int, seed: int | None = None) -> list[str | None]:
        nodes = [make_node(f"n{index}").capacity(cpu=1000, pods=1000).build() for index in range(5)]
        requested = [make_pod(f"pod-{index}").requests(cpu="500").build() for index in range(pods)]
        return [each.node for each in record_decisions([*nodes, *requested], seed=seed)]

    def test_the_first_by_name_is_taken_and_with_a_seed_a_random_one(self) -> None:
        nodes = [make_node(name).build() for name in ("c", "a", "b")]
        pod = make_pod("pod").build()
        assert decide(pod, nodes=nodes).node == "a"
        assert {decide(pod, nodes=nodes, seed=seed).node for seed in range(20)} == {"a", "b", "c"}

    def test_one_more_pod_moves_no_other(self) -> None:
        assert self.nodes_of(4) == ["n0", "n1", "n2", "n3"]
        assert self.nodes_of(5)[:4] == self.nodes_of(4)
        assert self.nodes_of(4, seed=1) != self.nodes_of(4)

    def test_a_configurations_feature_gates_hold_in_goldens(self, tmp_path: Path) -> None:
        gates = FeatureGates.parse("GenericWorkload=true,GangScheduling=true")
        document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        configuration = parse_configuration(document, gates=gates)
        group = {
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "kind": "PodGroup",
            "metadata": {"name": "gang"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
        }
        members = [
            {
                **MANIFEST,
                "metadata": {"name": f"member-{index}"},
                "spec": {
                    "containers": MANIFEST["spec"]["containers"],
                    "schedulingGroup": {"podGroupName": "gang"},
                },
            }
            for index in range(3)
        ]
        # Of three members two fit: a gang of three is on no node.
        path = tmp_path / "placements.json"
        objects = [*NODE_MANIFESTS, group, *members]
        assert_golden(path, objects, configuration=configuration, placements_only=True, update=True)
        assert set(json.loads(path.read_text(encoding="utf-8")).values()) == {None}


class TestConfigurations:
    def test_the_pods_profile_of_a_file_decides(self, configuration: Path) -> None:
        def place(scheduler_name: str) -> str | None:
            pod = make_pod("pod").scheduler_name(scheduler_name).build()
            return decide(pod, Rack, nodes=NODES, configuration=configuration).node

        assert place("racks") == "r1-4"
        explanation = decide(make_pod("pod").build(), Rack, nodes=NODES, configuration=configuration)
        assert "Rack" not in explanation.plugins

    def test_its_feature_gates_hold_for_plugins(self) -> None:
        class NeedsGroups(Plugin[None]):
            name: ClassVar[str] = "NeedsGroups"

            @hookimpl
            def filter(self) -> Status | None:
                knows = self.handle.feature_gates.enabled("GenericWorkload")
                return None if knows else Status.unschedulable("groups are off")

        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "NeedsGroups"}]}}}],
        }
        registry = Registry()
        registry.register(NeedsGroups)
        for gates, node in (("GenericWorkload=true", "r1-1"), ("", None)):
            configuration = parse_configuration(document, gates=FeatureGates.parse(gates), registry=registry)
            pod = make_pod("pod").build()
            assert decide(pod, NeedsGroups, nodes=NODES, configuration=configuration).node == node

    def test_a_pod_for_another_scheduler_is_told_which_there_are(self, configuration: Path) -> None:
        pod = make_pod("pod").scheduler_name("other").build()
        with pytest.raises(NoProfileError, match="there is default-scheduler, racks"):
            decide(pod, Rack, nodes=NODES, configuration=configuration)

    def test_all_profiles_schedule_in_a_golden_file(self, configuration: Path, tmp_path: Path) -> None:
        registry = Registry()
        registry.register(Rack)
        pods = [make_pod(name).scheduler_name(name).build() for name in ("racks", "default-scheduler", "no")]
        path = tmp_path / "placements.json"
        assert_golden(
            path,
            InMemoryCluster([*NODES, *pods]),
            configuration=str(configuration),
            registry=registry,
            placements_only=True,
            update=True,
        )
        written = json.loads(path.read_text(encoding="utf-8"))
        assert written.keys() == {"default/racks", "default/default-scheduler"}
        assert written["default/racks"] == "r1-4"

    def test_its_extenders_are_asked(self) -> None:
        with scripted({"/filter": '{"nodenames": ["r1-1"]}'}) as server:
            configuration = parse_configuration(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "extenders": [
                        {"urlPrefix": server.url, "filterVerb": "filter", "nodeCacheCapable": True}
                    ],
                }
            )
            explanation = decide(make_pod("pod").build(), nodes=NODES, configuration=configuration)
        assert explanation.feasible == ("r1-1",)

    def test_profiles_and_a_configuration_are_too_much(self, configuration: Path) -> None:
        with pytest.raises(ValueError, match="give a configuration or profiles, not both"):
            record_decisions(
                InMemoryCluster(NODES), configuration=configuration, profiles=[default_profile()]
            )

    def test_a_file_that_is_not_there_is_told_with_where_it_was_sought(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(FileNotFoundError) as error:
            decide(make_pod("pod").build(), nodes=NODES, configuration="none.yaml")
        assert str(error.value).endswith(
            f"No such configuration in the working directory, {tmp_path}: 'none.yaml'"
        )

    def test_a_mapping_is_told_how_to_become_one(self) -> None:
        with pytest.raises(
            TypeError, match=r"configuration: .* found dict; kschedfw\.config\.parse_configuration"
        ):
            record_decisions(InMemoryCluster(NODES), configuration={"kind": "x"})  # type: ignore[arg-type]  # that it isn't one
