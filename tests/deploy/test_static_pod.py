"""deploy/static-pod: kschedfw in kube-scheduler's place, by its lease and its kubeconfig, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kschedfw_apiserver import ApiServer
from serve.replicas import Replica, add_nodes, add_pod, is_bound, token_of

from kschedfw import load_configuration
from tests.deploy.test_chart import expanded, rules_of

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "deploy" / "static-pod"
POD: dict[str, Any] = yaml.safe_load((FOLDER / "kschedfw.yaml").read_text())
CONFIGURATION: dict[str, Any] = yaml.safe_load((FOLDER / "scheduler.yaml").read_text())
PAGE = (REPOSITORY / "docs" / "only-scheduler.md").read_text()
(CONTAINER,) = POD["spec"]["containers"]


def test_the_configuration_has_kube_schedulers_lease_and_name() -> None:
    loaded = load_configuration(FOLDER / "scheduler.yaml")
    assert loaded.warnings == ()
    assert [profile.scheduler_name for profile in loaded.profiles] == ["default-scheduler"]
    election = loaded.leader_election
    assert (election.resource_namespace, election.resource_name) == ("kube-system", "kube-scheduler")


def test_what_the_arguments_and_the_configuration_name_is_mounted_from_the_node() -> None:
    mounts = {each["name"]: each["mountPath"] for each in CONTAINER["volumeMounts"]}
    on_the_node = {
        each["name"]: each["hostPath"]["path"] for each in POD["spec"]["volumes"] if "hostPath" in each
    }
    assert on_the_node == {name: mounts[name] for name in on_the_node}, "the same path inside and outside"
    assert CONFIGURATION["clientConnection"]["kubeconfig"] == mounts["kubeconfig"]
    assert f"--config={mounts['config']}/scheduler.yaml" in CONTAINER["args"]


def test_probes_ask_where_it_listens() -> None:
    (address,) = (each.partition("=")[2] for each in CONTAINER["args"] if each.startswith("--bind-address"))
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = CONTAINER[probe]["httpGet"]
        assert (asked["host"], asked["port"]) == (address, 10259)
    assert POD["spec"]["hostNetwork"] is True


def test_the_rights_are_the_charts_for_the_user_of_the_kubeconfig() -> None:
    role, binding = yaml.safe_load_all((FOLDER / "rights.yaml").read_text())
    assert expanded(role["rules"]) == expanded(rules_of("preemption", "volumes", "devices", "callers"))
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [each["name"] for each in binding["subjects"]] == ["system:kube-scheduler"]


def test_the_page_names_the_files_that_there_are() -> None:
    named = {file for file in FOLDER.iterdir() if f"deploy/static-pod/{file.name}" in PAGE}
    assert named == set(FOLDER.iterdir())


@pytest.mark.slow
def test_it_takes_over_from_another_scheduler_and_gives_back_without_both_at_a_time(tmp_path: Path) -> None:
    command, *arguments = CONTAINER["args"]
    assert command == "run"
    with ApiServer() as server:
        add_nodes(server)
        kubeconfig = server.kubeconfig(tmp_path / "scheduler.conf", token=token_of("kschedfw"))
        file = tmp_path / "scheduler.yaml"
        file.write_text(yaml.safe_dump(CONFIGURATION | {"clientConnection": {"kubeconfig": str(kubeconfig)}}))
        own = [f"--config={file}" if each.startswith("--config=") else each for each in arguments]
        # By default a process has kube-scheduler's lease, as a stock kube-scheduler has.
        with Replica(server, tmp_path, "stock") as stock:
            stock.wait_until_leading()
            with Replica(server, tmp_path, "kschedfw", *own) as placed:
                placed.wait_until_ready()
                add_pod(server, "before")
                stock.wait_for(lambda: is_bound(server, "before"))
                assert {each.user for each in server.audit.writes()} == {"stock"}
                assert stock.ends() == 0
                add_pod(server, "meanwhile")
                placed.wait_for(lambda: is_bound(server, "meanwhile"))
                with Replica(server, tmp_path, "again") as again:
                    again.wait_until_ready()
                    assert placed.ends() == 0
                    add_pod(server, "after")
                    again.wait_for(lambda: is_bound(server, "after"))
        bindings = [each.user for each in server.audit.writes("pods/binding")]
        assert bindings == ["stock", "kschedfw", "again"]
