"""How the process lives and ends. Leader election among several: see test_replicas.py."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from kschedfw_apiserver import ApiServer
from serve.replicas import (
    SHORT_LEASES,
    Replica,
    add_nodes,
    add_pod,
    configuration,
    free_port,
    is_bound,
)

from kschedfw.api.pod import Pod
from kschedfw.testing.waiting import PATIENCE

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as served:
        add_nodes(served)
        yield served
        served.faults.paused = False


def test_it_schedules_until_sigterm(server: ApiServer, tmp_path: Path) -> None:
    add_pod(server, "small")
    add_pod(server, "large", cpu="100")
    with Replica(server, tmp_path, "one", "--v=2", anew=True) as replica:
        replica.wait_until_ready()
        replica.wait_for(lambda: is_bound(server, "small"))
        replica.wait_for(lambda: "Unable to schedule" in replica.log)
        assert replica.get("/readyz?verbose").text == (
            "[+]leaderElection ok\n[+]shutdown ok\n[+]informer-sync ok\n[+]sched-handler-sync ok\n"
            "[+]scheduling-loop ok\nreadyz check passed\n"
        )
        replica.process.send_signal(signal.SIGUSR2)
        replica.wait_for(lambda: "Dump of scheduling queue" in replica.log)
        assert replica.ends() == 0
    assert re.search(
        r'^I.*"Successfully bound pod to node" pod="default/small" node="n\d" evaluatedNodes=2 feasibleNodes=2$',
        replica.log,
        re.MULTILINE,
    )
    assert '"Unable to schedule pod; no fit; waiting" pod="default/large" err="0/2 nodes are' in replica.log
    assert "cache and cluster agree" in replica.log
    assert "Traceback" not in replica.log
    *_, last = server.audit.writes("leases")
    assert (last.verb, last.name) == (
        "update",
        "kube-scheduler",
    )  # given up, after the last of the other writes
    assert server.audit.writes()[-1] == last
    assert server.audit.writes("events")


RECORDER = """
from kschedfw.metrics import NoMetrics, OfferedRecorder


class Told(NoMetrics):
    def scheduling_attempt(self, result, profile, seconds):
        print("told of an attempt:", result, flush=True)


TOLD = OfferedRecorder(Told)
"""


def test_a_recorder_of_an_installed_distribution_is_told_of_attempts(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site"
    metadata = installed / "told-1.0.dist-info"
    metadata.mkdir(parents=True)
    (installed / "told.py").write_text(RECORDER)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: told\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[kschedfw.recorders]\ntold = told:TOLD\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")]))
    add_pod(server, "small")
    with Replica(server, tmp_path, "one", "--recorder", "told", anew=True) as replica:
        replica.wait_for(lambda: is_bound(server, "small"))
        replica.wait_for(lambda: "told of an attempt: scheduled" in replica.log)
    with Replica(server, tmp_path, "two", "--recorder", "untold", anew=True) as replica:
        assert replica.process.wait(PATIENCE) == 2
        assert "recorder of metrics 'untold'" in replica.log


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_ends_it_at_once(
    server: ApiServer, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with Replica(server, tmp_path, "one") as replica:
        replica.wait_until_ready()
        server.faults.paused = True  # the binding never ends
        add_pod(server, "a")
        replica.process.send_signal(number)
        replica.wait_for(lambda: "no new scheduling cycles" in replica.log)
        assert replica.get("/readyz").text.startswith("[+]leaderElection ok\n[-]shutdown failed")
        assert replica.ends(number) == code


def test_the_endpoints_have_contents(server: ApiServer, tmp_path: Path) -> None:
    add_pod(server, "a")
    with Replica(server, tmp_path, "one") as replica:
        replica.wait_for(lambda: is_bound(server, "a"))
        assert replica.get("/configz", replica.token).json["componentconfig"]["parallelism"] == 16
        assert replica.get("/debug/cache", replica.token).text.startswith("cache and cluster agree\nDump of")
        resources = replica.get("/metrics/resources", replica.token).text
        assert 'kube_pod_resource_request{namespace="default",node="n' in resources
        metrics = replica.get("/metrics", replica.token).text
        for name in ("scheduler_schedule_attempts_total", "process_cpu_seconds_total"):
            assert f"\n{name}" in metrics
        assert '\nkschedfw_unreadable_objects{kind="pods"} 0.0\n' in metrics
        for path in ("/configz", "/debug/cache", "/metrics/resources", "/metrics", "/readyz/shutdown"):
            assert [replica.get(path, token).status for token in ("", "unknown")] == [403, 401]
        assert replica.ends() == 0


def test_a_standby_ends_as_well(server: ApiServer, tmp_path: Path) -> None:
    with Replica(server, tmp_path, "one") as leader:
        leader.wait_until_leading()
        with Replica(server, tmp_path, "two") as standby:
            standby.wait_until_ready()
            assert standby.get("/metrics/resources", standby.token).text == ""
            assert 'leader_election_master_status{name="kube-scheduler"} 0.0' in (
                standby.get("/metrics", standby.token).text
            )
            assert standby.ends(signal.SIGINT) == 0
        assert 'leader_election_master_status{name="kube-scheduler"} 1.0' in (
            leader.get("/metrics", leader.token).text
        )
    assert {each.user for each in server.audit.writes("leases")} == {"one"}


def test_it_ends_while_the_api_server_is_away(tmp_path: Path) -> None:
    server = ApiServer(port=free_port())
    with Replica(server, tmp_path, "one") as replica:
        replica.wait_for(lambda: replica.get("/livez").status == 200)
        reply = replica.get("/readyz?verbose")
        assert reply.status == 500
        assert "[-]informer-sync failed: reason withheld\n[-]sched-handler-sync failed" in reply.text
        assert replica.ends() == 0


def test_json_logs_and_no_token_in_them(server: ApiServer, tmp_path: Path) -> None:
    add_pod(server, "a")
    with Replica(server, tmp_path, "one", "--v=9", "--logging-format=json") as replica:
        replica.wait_for(lambda: is_bound(server, "a"))
        replica.get("/metrics", "a-callers-token")
        replica.process.send_signal(signal.SIGUSR2)
        replica.wait_for(lambda: "Dump of scheduling queue" in replica.log)
        assert replica.ends() == 0
    lines = [json.loads(line) for line in replica.log.splitlines()]
    assert all(line["ts"] and line["caller"] and line["msg"] for line in lines)
    (bound,) = [line for line in lines if line["msg"] == "Successfully bound pod to node"]
    assert (bound["v"], bound["pod"], bound["feasibleNodes"]) == (2, "default/a", 2)
    assert "a-callers-token" not in replica.log
    assert replica.token not in replica.log


def test_a_dry_run_decides_and_writes_nothing(server: ApiServer, tmp_path: Path) -> None:
    for index in range(3):
        add_pod(server, f"a{index}", cpu="5")
    with Replica(server, tmp_path, "one", "--dry-run", "--v=2") as replica:
        replica.wait_for(lambda: "Unable to schedule" in replica.log)
        assert replica.ends() == 0
    bound = re.findall(r'"Successfully bound pod to node" pod="default/a(\d)" node="n(\d)"', replica.log)
    assert {pod for pod, _ in bound} == {"0", "1"}  # one on each node; the third finds no room beside them
    assert {node for _, node in bound} == {"0", "1"}
    assert replica.log.index("dry run: nothing is written") < replica.log.index("Successfully bound")
    assert server.audit.writes() == []
    assert not any(pod.node_name or pod.status.conditions for pod in server.cluster.list(Pod))


def test_only_one_can_have_the_port(server: ApiServer, tmp_path: Path) -> None:
    with Replica(server, tmp_path, "one") as first:
        first.wait_until_ready()
        with Replica(server, tmp_path, "two", "--secure-port", first.port) as second:
            assert second.process.wait() == 2
        where = f"127.0.0.1, port {first.port}"
        assert second.log == f"kschedfw: can't listen on {where}: Address already in use\n"


def test_a_loop_that_hangs_is_told(server: ApiServer, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # an extender that takes calls, and never answers
        extender = {
            "urlPrefix": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "filterVerb": "filter",
            "httpTimeout": "60s",
        }
        config = configuration(server, tmp_path, "one", extenders=[extender])
        with Replica(server, tmp_path, "one", f"--config={config}", "--loop-timeout=1500ms") as replica:
            replica.wait_until_ready()
            assert replica.get("/livez").status == 200
            add_pod(server, "a")
            replica.wait_for(lambda: replica.get("/readyz").status == 500)
            assert "[-]scheduling-loop failed" in replica.get("/readyz").text
            assert "[-]scheduling-loop failed" in replica.get("/livez").text
            reason = replica.get("/readyz/scheduling-loop", replica.token).text
            assert re.match(r"internal server error: the scheduling loop hasn't come round for \d", reason)


def test_a_lease_that_cannot_be_renewed_ends_it(server: ApiServer, tmp_path: Path) -> None:
    with Replica(server, tmp_path, "one", *SHORT_LEASES) as replica:
        replica.wait_until_leading()
        server.faults.paused = True
        assert replica.process.wait() == 1
    assert "Leaderelection lost" in replica.log
