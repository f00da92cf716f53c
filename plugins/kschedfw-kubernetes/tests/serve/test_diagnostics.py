"""What a running process tells about itself: metrics, statusz, flagz, profiles; and its flags for that."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import trustme
from kschedfw_apiserver import ApiServer
from serve.replicas import Replica, add_nodes, add_pod, is_bound

from kschedfw.config import FeatureGates

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as served:
        add_nodes(served)
        yield served


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def replica(
    server: ApiServer, authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Replica]:
    """A leader that has bound a pod, and was asked for its health."""
    folder = tmp_path_factory.mktemp("leader")
    bundle = folder / "ca.crt"
    authority.cert_pem.write_to_path(bundle)
    flags = (
        "--profiling",
        "--disabled-metrics=scheduler_cache_size,rest_client_requests_total",
        "--tls-min-version=VersionTLS13",
        f"--client-ca-file={bundle}",
        "--vmodule=process=4,reflector=4",
    )
    add_pod(server, "a")
    with Replica(server, folder, "leader", *flags, anew=True) as started:  # its command line is asked for
        started.wait_for(lambda: is_bound(server, "a"))
        started.wait_until_ready()
        yield started


def shown(authority: trustme.CA, folder: Path) -> ssl.SSLContext:
    """That of a client with a certificate of this authority, for a user who may do everything."""
    pair = authority.issue_cert("eve@example.com", common_name="eve", organization_name="system:masters")
    file = folder / "pair.pem"
    pair.private_key_and_cert_chain_pem.write_to_path(file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(file)
    return context


def samples(text: str, name: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(rf"{name}[{{ ]", line)]


def test_requests_to_the_api_server_are_counted(server: ApiServer, replica: Replica) -> None:
    host = server.url.removeprefix("http://")
    metrics = replica.get("/metrics", replica.token).text
    counts = samples(metrics, "rest_client_request_duration_seconds_count")
    verbs = {verb for line in counts for verb in re.findall(r'verb="(\w+)"', line)}
    assert {"GET", "POST"} <= verbs
    assert all(f'host="{host}"' in line for line in counts)
    assert samples(metrics, "rest_client_exec_plugin_ttl_seconds") == [
        "rest_client_exec_plugin_ttl_seconds +Inf"
    ]


def test_reviews_of_callers_count_as_requests_too(replica: Replica) -> None:
    def posts() -> float:
        metrics = replica.get("/metrics", replica.token).text
        (line,) = [
            each
            for each in samples(metrics, "rest_client_request_duration_seconds_count")
            if 'verb="POST"' in each
        ]
        return float(line.split()[-1])

    before = posts()
    assert replica.get("/metrics", "unknown to everybody").status == 401
    assert posts() > before


def test_version_and_features_are_told(replica: Replica) -> None:
    metrics = replica.get("/metrics", replica.token).text
    (build,) = samples(metrics, "kubernetes_build_info")
    assert re.search(r'git_version="v1\.36\.0\+kschedfw\.\d', build)
    assert 'major="1",minor="36"' in build
    assert 'go_version=""' in build
    enabled = samples(metrics, "kubernetes_feature_enabled")
    assert len(enabled) == len(list(FeatureGates().features))
    assert 'kubernetes_feature_enabled{name="SchedulerQueueingHints",stage=""} 1.0' in enabled
    assert 'kubernetes_feature_enabled{name="SchedulerAsyncPreemption",stage="BETA"} 0.0' in enabled


def test_disabled_metrics_are_left_out_and_counted(replica: Replica) -> None:
    metrics = replica.get("/metrics", replica.token).text
    assert "scheduler_cache_size" not in metrics
    assert "rest_client_requests" not in metrics
    assert "\nscheduler_schedule_attempts_total{" in metrics
    assert samples(metrics, "disabled_metrics_total") == ["disabled_metrics_total 2.0"]


def test_health_checks_are_counted_by_outcome(replica: Replica) -> None:
    def slis() -> str:
        return replica.get("/metrics/slis", replica.token).text

    passed = r'kubernetes_healthchecks_total\{name="scheduling-loop",status="success",type="livez"\} (\S+)'
    replica.get("/livez")
    (before,) = re.findall(passed, slis())
    assert replica.get("/livez?exclude=scheduling-loop").text == "ok"
    assert replica.get("/livez").text == "ok"
    (after,) = re.findall(passed, slis())
    assert float(after) == float(before) + 1  # what is excluded isn't looked at
    assert 'kubernetes_healthcheck{name="leaderElection",type="readyz"} 1.0' in slis()


def test_status_and_flags_are_told(replica: Replica) -> None:
    status = replica.get("/statusz", replica.token).text
    assert status.startswith(
        "\nkschedfw statusz\nWarning: This endpoint is not meant to be machine parseable"
    )
    assert "\nLeader election: this process leads\n" in status
    assert "\nPaths: /configz /debug /flagz /healthz /livez /metrics /readyz\n" in status
    flags = replica.get("/flagz", replica.token).text.splitlines()
    assert "profiling=true" in flags
    assert "tls-min-version=VersionTLS13" in flags
    assert "leader-elect=" in flags


def test_profiles_show_what_the_threads_do(replica: Replica) -> None:
    stacks = replica.get("/debug/pprof/profile?seconds=0.2", replica.token).text.splitlines()
    waiting = re.compile(r"MainThread;.*kschedfw_kubernetes\.serve\.process\.\S*_wait_for_ending\S* \d+")
    assert any(map(waiting.fullmatch, stacks))
    threads = replica.get("/debug/pprof/goroutine", replica.token).text
    assert re.search(r"^thread kschedfw-scheduler \(\d+\):$", threads, re.MULTILINE)
    assert "profile" in replica.get("/debug/pprof/", replica.token).text
    assert "--profiling\0" in replica.get("/debug/pprof/cmdline", replica.token).text


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "301", "nan"])
def test_a_profile_takes_some_time_and_not_for_ever(replica: Replica, seconds: str) -> None:
    reply = replica.get(f"/debug/pprof/profile?seconds={seconds}", replica.token)
    assert (reply.status, reply.text) == (
        400,
        f"seconds={seconds}: must be a number above 0, and at most 300\n",
    )


@pytest.mark.parametrize(
    "path", ["/statusz", "/flagz", "/metrics/slis", "/debug/pprof/", "/debug/pprof/goroutine"]
)
def test_they_need_permission(replica: Replica, path: str) -> None:
    assert [replica.get(path, token).status for token in ("", "unknown")] == [403, 401]


def test_a_user_is_known_by_a_certificate_of_the_flags_authority(
    replica: Replica, authority: trustme.CA, tmp_path: Path
) -> None:
    assert replica.get("/statusz", context=shown(authority, tmp_path)).status == 200
    assert replica.get("/statusz").status == 403


def test_a_user_is_known_by_a_certificate_of_the_clusters_authority(tmp_path: Path) -> None:
    authority = trustme.CA()
    config_map = {
        "metadata": {"name": "extension-apiserver-authentication"},
        "data": {"client-ca-file": authority.cert_pem.bytes().decode()},
    }
    with ApiServer() as server, Replica(server, tmp_path, "one") as one:
        headers = {"authorization": f"Bearer {one.token}"}
        path = "/api/v1/namespaces/kube-system/configmaps"
        with httpx2.Client(base_url=server.url, headers=headers) as admin:
            assert admin.post(path, json=config_map).status_code == 201
        context = shown(authority, tmp_path)
        one.wait_for(lambda: one.get("/statusz", context=context).status == 200)


def test_older_versions_of_tls_than_the_flags_are_refused(replica: Replica) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", replica.port)) as raw, pytest.raises(ssl.SSLError):
        context.wrap_socket(raw)


def test_without_the_flag_there_are_no_profiles(server: ApiServer, tmp_path: Path) -> None:
    with Replica(server, tmp_path, "one", "--leader-elect=false", "--authentication-skip-lookup") as one:
        one.wait_until_ready()
        assert one.get("/debug/pprof/", one.token).status == 404
        assert "\nLeader election: nobody is elected\n" in one.get("/statusz", one.token).text
        assert "client certificates" not in one.log
        assert one.ends() == 0


def test_a_standby_says_who_holds_the_lease_and_what_to_do(
    server: ApiServer, replica: Replica, tmp_path: Path
) -> None:
    (lease,) = [each for each in replica.log.splitlines() if "became the leader" in each]
    holder = lease.split("became the leader: ")[1].split()[0]
    expected = re.escape(f"standing by: lease kube-system/kube-scheduler is held by {holder} since ") + (
        r"\d{4}-\d\d-\d\dT\S+Z; if that isn't a replica of this scheduler, give this one a lease of its own by "
        "--leader-elect-resource-name"
    )
    with Replica(server, tmp_path, "two") as standby:
        standby.wait_until_ready()
        assert re.search(rf"^I.*\] {expected}$", standby.log, re.MULTILINE)
        assert re.fullmatch(rf"ok\n{expected}\n", standby.get("/readyz/leaderElection", standby.token).text)
        assert re.search(
            rf"^Leader election: {expected}$", standby.get("/statusz", standby.token).text, re.MULTILINE
        )
        assert standby.get("/readyz").text == "ok"  # who holds it is for authorised users
        assert standby.ends() == 0
