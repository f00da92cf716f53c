"""What `kschedfw explain` prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kschedfw import Plugin, Scheduler, Status, hookimpl
from kschedfw.framework.runtime import registry
from kschedfw.testing import Command

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: big}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: small}
status: {allocatable: {cpu: "1", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: 500m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: huge, namespace: shop}
spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "3800m"}}}]}
"""

PROFILE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Gang}]}}}]
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER, encoding="utf-8")
    return path


class TestExplain:
    def test_a_placed_pod_exits_with_0_and_shows_the_best_nodes(
        self, kschedfw_command: Command, cluster: Path
    ) -> None:
        result = kschedfw_command("explain", cluster, "web")
        assert result.code == 0
        assert result.out.startswith("shop/web: placed on big (attempt 1, profile default-scheduler)")
        assert "big (chosen)" in result.out

    def test_a_pod_without_a_place_exits_with_1_and_says_why(
        self, kschedfw_command: Command, cluster: Path
    ) -> None:
        result = kschedfw_command("explain", cluster, "shop/huge")
        assert result.code == 1
        assert "Insufficient cpu" in result.out

    def test_a_toleration_of_the_pod_that_its_feature_gate_leaves_without_effect_is_noted(
        self, kschedfw_command: Command, tmp_path: Path
    ) -> None:
        path = tmp_path / "compares.yaml"
        pod = "tolerations: [{key: level, operator: Gt, value: '3'}], containers: [{name: c, image: i}]"
        meta = "apiVersion: v1\nkind: Pod\nmetadata: {name: compares}\n"
        path.write_text(f"{CLUSTER}---\n{meta}spec: {{{pod}}}\n", encoding="utf-8")
        assert (
            "TaintTolerationComparisonOperators is off" in kschedfw_command("explain", path, "compares").err
        )
        assert "is off" not in kschedfw_command("explain", path, "web").err

    def test_other_attempts_are_listed_with_their_reasons(
        self, kschedfw_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "400")
        pod = (
            "---\nkind: Pod\napiVersion: v1\nmetadata: {name: %s}\n"
            "spec: {priority: %d, %s containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}\n"
        )
        path = tmp_path / "preempting.yaml"
        first = CLUSTER.partition("---")[0]
        path.write_text(first + pod % ("low", 0, "nodeName: big,") + pod % ("vip", 9, ""), encoding="utf-8")
        lines = kschedfw_command("explain", path, "vip").out.splitlines()
        assert lines[0] == "default/vip: placed on big (attempt 2, profile default-scheduler)"
        assert (
            "(attempt 1, profile default-scheduler): 0/1 nodes are available: 1 Insufficient cpu." in lines[1]
        )

    def test_now_the_pod_is_taken_first(self, kschedfw_command: Command, cluster: Path) -> None:
        assert kschedfw_command("explain", cluster, "huge", "--now").code == 0

    def test_time_is_as_in_a_simulation(self, kschedfw_command: Command, cluster: Path) -> None:
        options = ("--start-time", "2026-03-02T09:00:00Z", "--attempt-time", "3ms")
        assert kschedfw_command("explain", cluster, "web", *options).code == 0
        assert kschedfw_command("explain", cluster, "web", "--now", *options).code == 0
        wrong = kschedfw_command("explain", cluster, "web", "--start-time", "nine")
        assert wrong.code == 2
        assert "'nine' is no time such as" in wrong.err

    def test_json_has_every_node(self, kschedfw_command: Command, cluster: Path) -> None:
        nodes = kschedfw_command("explain", cluster, "web", "--json").json["nodes"]
        assert [node["verdict"] for node in nodes] == ["chosen", "feasible"]

    def test_one_node_and_one_plugin_can_be_asked_for(self, kschedfw_command: Command, cluster: Path) -> None:
        of_node = kschedfw_command("explain", cluster, "huge", "--node", "small").out
        assert "node small: refused\nNodeResourcesFit: Insufficient cpu" in of_node
        of_plugin = kschedfw_command("explain", cluster, "web", "--plugin", "NodeResourcesFit").out
        assert "NodeResourcesFit: scored 2 nodes" in of_plugin

    def test_the_numbers_behind_a_refusal_are_in_the_text_of_a_node_and_in_json(
        self, kschedfw_command: Command, cluster: Path
    ) -> None:
        told = "cpu: 3800m requested; 1 free of 1 allocatable, 2800m short"
        out = kschedfw_command("explain", cluster, "shop/huge").out
        assert f"small  {told}" in out
        assert "Why no node would do" in out
        assert "Why not the others" not in out
        of_node = kschedfw_command("explain", cluster, "shop/huge", "--node", "small").out
        assert f"NodeResourcesFit: Insufficient cpu\n  {told}\n" in of_node
        of_plugin = kschedfw_command("explain", cluster, "shop/huge", "--plugin", "NodeResourcesFit").out
        assert "big (3500m free of 4 allocatable, 300m short), small (1 free of 1" in " ".join(
            of_plugin.split()
        )
        document = kschedfw_command("explain", cluster, "shop/huge", "--json").json
        assert document["closest"] == ["big", "small"]
        (small,) = (node for node in document["nodes"] if node["node"] == "small")
        assert small["evidence"] == [
            {
                "plugin": "NodeResourcesFit",
                "code": "insufficient-resource",
                "text": told,
                "gap": 2800 / 3800,
                "values": {
                    "resource": "cpu",
                    "requested": 3800,
                    "free": 1000,
                    "allocatable": 1000,
                    "short": 2800,
                },
            }
        ]
        assert document["message"].startswith("0/2 nodes are available: 2 Insufficient cpu. ")

    def test_it_is_readable_in_40_columns(
        self, kschedfw_command: Command, cluster: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "40")
        for pod in ("web", "huge"):
            out = kschedfw_command("explain", cluster, pod).out
            assert max(map(len, out.splitlines())) <= 40
            assert "…" not in out

    def test_what_simulate_wrote_is_explained_in_the_same_words(
        self, kschedfw_command: Command, cluster: Path, tmp_path: Path
    ) -> None:
        file = tmp_path / "explained.jsonl"
        assert kschedfw_command("simulate", cluster, "--explain", file).code == 0
        assert all(json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
        recorded = kschedfw_command("explain", "--from", file, "web")
        assert (recorded.code, recorded.out) == (0, kschedfw_command("explain", cluster, "web").out)

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (["wbe"], "pod 'wbe': there is none of this name; did you mean web?"),
            (["web", "--node", "smal"], "node 'smal': there is none of this name; did you mean small?"),
            (
                ["web", "--plugin", "NodeResourceFit"],
                "plugin 'NodeResourceFit': there is none of this name; did you mean NodeResourcesFit?",
            ),
            (["web", "--attempt", "2"], "--attempt 2: expected 1, the attempts of the pod"),
            ([], "a cluster and a pod are needed"),
        ],
    )
    def test_what_is_not_there_is_named_with_what_is_similar(
        self, arguments: list[str], problem: str, kschedfw_command: Command, cluster: Path
    ) -> None:
        result = kschedfw_command("explain", cluster, *arguments)
        assert (result.code, result.out) == (2, "")
        assert problem in result.err

    def test_a_pod_before_its_cluster_is_told_to_come_last(
        self, kschedfw_command: Command, cluster: Path
    ) -> None:
        result = kschedfw_command("explain", "shop/web", cluster)
        assert result.code == 2
        assert f"if it is the pod, it comes last: explain {cluster} shop/web" in result.err

    def test_in_a_cluster_without_pods_nothing_is_similar(
        self, kschedfw_command: Command, tmp_path: Path
    ) -> None:
        empty = tmp_path / "empty.yaml"
        empty.touch()
        result = kschedfw_command("explain", empty, "web")
        assert (result.code, result.err) == (
            2,
            "kschedfw: pod 'web': there is none of this name, and no other pod either\n",
        )

    def test_interrupted_while_simulating(
        self, kschedfw_command: Command, cluster: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def begin_attempt(self: Scheduler) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(Scheduler, "begin_attempt", begin_attempt)
        result = kschedfw_command("explain", cluster, "web")
        assert (result.code, result.out, result.err) == (130, "", "")

    @pytest.mark.parametrize(
        ("minimum", "code", "end"),
        [(2, 0, "placed"), (3, 1, "unschedulable: 0/1 nodes are available: 1 rejected due to timeout")],
    )
    def test_of_a_pod_that_was_left_waiting_the_end_is_told(
        self,
        kschedfw_command: Command,
        cluster: Path,
        monkeypatch: pytest.MonkeyPatch,
        minimum: int,
        code: int,
        end: str,
    ) -> None:
        class Gang(Plugin):
            """Holds pods back until there are enough."""

            name = "Gang"

            @hookimpl
            def permit(self) -> Status | None:
                waiting = list(self.handle.waiting_pods)
                if len(waiting) + 1 < minimum:
                    return Status.wait(60)
                for other in waiting:
                    other.allow(self.name)
                return None

        class GangsEntryPoint:
            value, dist, group = "gang:Gang", None, "kschedfw"

            def load(self) -> type[Gang]:
                return Gang

        installed = {**registry._installed(), "Gang": [GangsEntryPoint()]}
        monkeypatch.setattr(registry, "_installed", lambda: installed)
        cluster.write_text(CLUSTER.replace("3800m", "100m"), encoding="utf-8")
        profile = cluster.with_name("profile.yaml")
        profile.write_text(PROFILE, encoding="utf-8")

        waited = kschedfw_command("explain", cluster, "web", "--config", profile)
        assert waited.code == code
        headline, after = waited.out.splitlines()[:2]
        assert headline.startswith("shop/web: waiting for permission to go to ")
        assert after.startswith(f"after that: {end}")


GROUPS = """\
apiVersion: v1
kind: Node
metadata: {name: a1, labels: {rack: a}}
status: {allocatable: {cpu: "2", memory: 8Gi, pods: "10"}}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: train, namespace: ml}
spec: {schedulingPolicy: {gang: {minCount: 3}}, schedulingConstraints: {topology: [{key: rack}]}}
"""
MEMBER = """\
---
apiVersion: v1
kind: Pod
metadata: {name: train-%d, namespace: ml}
spec:
  schedulingGroup: {podGroupName: train}
  containers: [{name: main, image: app, resources: {requests: {cpu: 1}}}]
"""
GATES = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    path = tmp_path / "groups.yaml"
    path.write_text(GROUPS + "".join(MEMBER % number for number in range(3)), encoding="utf-8")
    return path


class TestExplainGroup:
    def test_a_group_without_a_place_exits_with_1_and_says_what_is_in_the_way(
        self, kschedfw_command: Command, groups: Path
    ) -> None:
        result = kschedfw_command("explain", groups, "podgroup/train", "--feature-gates", GATES)
        assert result.code == 1
        assert result.out.startswith("podgroup ml/train: unschedulable (attempt ")
        assert "ended at members: on no placement do enough members fit" in result.out
        assert "2 of 3" in result.out
        assert "cpu: 1 requested; 0 free of 2 allocatable" in result.out

    def test_json_has_every_member_on_every_placement(self, kschedfw_command: Command, groups: Path) -> None:
        result = kschedfw_command("explain", groups, "podgroup/ml/train", "--feature-gates", GATES, "--json")
        told = json.loads(result.out)
        assert (told["group"], told["endedBy"], told["nearest"]) == ("ml/train", "members", "a")
        (placement,) = told["placements"]
        assert [member["node"] for member in placement["members"]] == ["a1", "a1", None]
        assert placement["members"][2]["refused"]["a1"]["reasons"] == ["Insufficient cpu"]

    def test_a_group_that_is_placed_exits_with_0(self, kschedfw_command: Command, groups: Path) -> None:
        groups.write_text(groups.read_text().replace("minCount: 3", "minCount: 2"))
        result = kschedfw_command("explain", groups, "podgroup/train", "--feature-gates", GATES)
        assert result.code == 0
        assert result.out.startswith("podgroup ml/train: placed on a (attempt 1,")

    def test_a_member_is_explained_by_its_part_in_the_groups_cycle(
        self, kschedfw_command: Command, groups: Path
    ) -> None:
        result = kschedfw_command("explain", groups, "train-1", "--feature-gates", GATES)
        assert result.code == 1
        assert "member of podgroup ml/train: unschedulable" in result.out

    def test_gates_also_hold_for_a_member_that_is_taken_first(
        self, kschedfw_command: Command, groups: Path
    ) -> None:
        groups.write_text(groups.read_text().replace('cpu: "2"', 'cpu: "0"'))
        why = "not eligible due to placement-based pod group scheduling limitation"
        assert (
            why
            in kschedfw_command("explain", groups, "train-1", "--feature-gates", GATES, "--now", "--json").out
        )
        assert why not in kschedfw_command("explain", groups, "train-1", "--now", "--json").out

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["podgroup/train"], "without the feature gate GenericWorkload"),
            (["podgroup/trian", "--feature-gates", GATES], "did you mean train?"),
            (["podgroup/trian"], "did you mean train?"),
            (["podgroup/train", "--feature-gates", GATES, "--now"], "--now: is for a pod"),
            (
                ["podgroup/train", "--feature-gates", GATES, "--attempt", "99"],
                "--attempt 99: expected 1",
            ),
        ],
        ids=["no-gate", "misspelt", "misspelt-without-gate", "now", "attempt"],
    )
    def test_what_can_not_be_explained_is_refused_with_a_reason(
        self, kschedfw_command: Command, groups: Path, arguments: list[str], said: str
    ) -> None:
        result = kschedfw_command("explain", groups, *arguments)
        assert result.code == 2
        assert said in result.err.replace("\n", " ")

    def test_a_group_without_pending_members_is_refused(
        self, kschedfw_command: Command, tmp_path: Path
    ) -> None:
        path = tmp_path / "empty.yaml"
        path.write_text(GROUPS)
        result = kschedfw_command("explain", path, "podgroup/train", "--feature-gates", GATES)
        assert result.code == 2
        assert "no pod is a member of it" in result.err


CLAIMED = """\
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: csi.example
volumeBindingMode: Immediate
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop}
spec:
  containers: [{name: main, image: app}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""


def test_a_claim_that_the_cluster_has_left_pending_is_not_provisioned(
    kschedfw_command: Command, cluster: Path
) -> None:
    cluster.write_text(f"{CLUSTER}---\n{CLAIMED}", encoding="utf-8")
    result = kschedfw_command("explain", cluster, "db")
    assert result.code == 1
    assert "pod has unbound immediate PersistentVolumeClaims" in result.out
    assert "\nclaim shop/data is pending: provisioner csi.example of StorageClass fast has to" in result.out


def test_what_a_misspelt_claim_means_is_told_and_it_is_not_missing(
    kschedfw_command: Command, cluster: Path
) -> None:
    cluster.write_text(
        f"{CLUSTER}---\n{CLAIMED.replace('claimName: data', 'claimName: dtaa')}", encoding="utf-8"
    )
    result = kschedfw_command("explain", cluster, "db")
    assert "\nclaim shop/dtaa doesn't exist (did you mean data?)\n" in result.out
    assert "Missing from the input" not in result.out
    document = kschedfw_command("explain", cluster, "db", "--json").json
    assert document["claims"] == ["claim shop/dtaa doesn't exist (did you mean data?)"]
    assert document["missing"] == []


@pytest.mark.parametrize("cpu", ["1", "100"], ids=["placed", "without a place"])
def test_a_new_claim_gets_its_volume_and_has_no_problem(
    kschedfw_command: Command, cluster: Path, cpu: str
) -> None:
    new = CLAIMED.replace(', creationTimestamp: "2026-01-01T00:00:00Z"', "")
    new = new.replace("image: app", f"image: app, resources: {{requests: {{cpu: {cpu}}}}}")
    cluster.write_text(f"{CLUSTER}---\n{new}", encoding="utf-8")
    result = kschedfw_command("explain", cluster, "db", "--json")
    assert result.code == (cpu == "100")
    assert result.json["claims"] == []
