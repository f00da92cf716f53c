"""Several replicas: one schedules, another takes over, and there are never two that write."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from kschedfw_apiserver import ApiServer, AuditEvent
from serve.replicas import (
    SHORT_LEASES,
    Replica,
    add_nodes,
    add_pod,
    configuration,
    is_bound,
)

from kschedfw import CustomKind, make_pod, make_pod_group

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as served:
        add_nodes(served)
        yield served


@pytest.fixture
def replicas(server: ApiServer, tmp_path: Path) -> Iterator[tuple[Replica, Replica]]:
    """The leader, and one that stands by."""
    with Replica(server, tmp_path, "one", *SHORT_LEASES) as leader:
        leader.wait_until_leading()
        with Replica(server, tmp_path, "two", *SHORT_LEASES) as standby:
            standby.wait_until_ready()
            add_pod(server, "first")
            leader.wait_for(lambda: is_bound(server, "first"))
            yield leader, standby


def writers(server: ApiServer) -> list[str]:
    """Who wrote, in the order of the writes, each named once for as long as nobody else wrote between."""
    names = [each.user for each in server.audit.events if each.is_write and _is_by_replica(each)]
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]


def _is_by_replica(event: AuditEvent) -> bool:
    """Writes that were refused count, too: they left. An attempt to take the lease is everybody's right."""
    return event.user in ("one", "two") and (event.resource != "leases" or event.code < 300)


def test_another_takes_over_from_one_that_was_killed(
    server: ApiServer, replicas: tuple[Replica, Replica]
) -> None:
    leader, standby = replicas
    leader.process.kill()
    add_pod(server, "second")
    standby.wait_for(lambda: is_bound(server, "second"))
    assert writers(server) == ["one", "two"]


def test_one_that_was_stopped_beyond_its_lease_writes_nothing_more(
    server: ApiServer, replicas: tuple[Replica, Replica]
) -> None:
    leader, standby = replicas
    server.faults.only = lambda method, path: path.endswith("/binding")
    server.faults.slow, server.faults.seconds = 1.0, 0.05  # so that it is stopped in the middle of bindings
    for index in range(30):
        add_pod(server, f"early{index}")
    leader.wait_for(lambda: is_bound(server, "early3"))
    leader.process.send_signal(signal.SIGSTOP)
    standby.wait_until_leading()
    for index in range(30):
        standby.wait_for(lambda: is_bound(server, f"early{index}"))  # noqa: B023  # called at once
    leader.process.send_signal(signal.SIGCONT)
    add_pod(server, "late")
    # The kernel ends it: no check of its own could come after the last moment before a write.
    assert leader.process.wait() == -signal.SIGALRM
    standby.wait_for(lambda: is_bound(server, "late"))
    assert writers(server) == ["one", "two"]


def test_one_that_cant_renew_ends(server: ApiServer, tmp_path: Path) -> None:
    with Replica(server, tmp_path, "one", *SHORT_LEASES) as leader:
        leader.wait_until_leading()
        server.faults.failed_before, server.faults.only = 1.0, lambda _method, path: "/leases" in path
        assert leader.process.wait() == 1
        assert "Leaderelection lost" in leader.log


def test_a_standby_may_wait_with_its_caches(server: ApiServer, tmp_path: Path) -> None:
    config = configuration(server, tmp_path, "two", delayCacheUntilActive=True)
    with Replica(server, tmp_path, "one", *SHORT_LEASES) as leader:
        leader.wait_until_leading()
        with Replica(server, tmp_path, "two", f"--config={config}", *SHORT_LEASES) as standby:
            standby.wait_until_ready()
            asked = {each.resource for each in server.audit.events if each.user == "two"}
            assert asked - {"configmaps"} == {"leases"}  # and who signs the certificates of its callers
            assert leader.ends() == 0
            add_pod(server, "first")
            standby.wait_for(lambda: is_bound(server, "first"))


def test_one_that_ends_hands_over_long_before_its_lease_runs_out(server: ApiServer, tmp_path: Path) -> None:
    # Longer than a test may take.
    leases = ("--leader-elect-lease-duration=600s", "--leader-elect-renew-deadline=300s")
    with Replica(server, tmp_path, "one", *SHORT_LEASES, *leases) as leader:
        leader.wait_until_leading()
        with Replica(server, tmp_path, "two", *SHORT_LEASES, *leases) as standby:
            standby.wait_until_ready()
            assert leader.ends() == 0
            add_pod(server, "first")
            standby.wait_for(lambda: is_bound(server, "first"))
    assert writers(server) == ["one", "two"]


def test_a_gang_that_waits_for_a_member_is_bound_whole_by_the_next_leader(tmp_path: Path) -> None:
    gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
    members = [make_pod(name).requests(cpu="10m").group("team").build() for name in "abc"]
    with ApiServer(custom=[CustomKind("scheduling.k8s.io/v1alpha2", "PodGroup")]) as server:
        add_nodes(server)
        server.cluster.add(make_pod_group("team").gang(min_count=3).build())
        with Replica(server, tmp_path, "one", *SHORT_LEASES, gates) as leader:
            leader.wait_until_leading()
            for member in members[:2]:
                server.cluster.add(member)
            add_pod(server, "single")  # so that the gang has had its turn
            leader.wait_for(lambda: is_bound(server, "single"))
            with Replica(server, tmp_path, "two", *SHORT_LEASES, gates) as standby:
                standby.wait_until_ready()
                assert leader.ends() == 0
                standby.wait_until_leading()
                assert not is_bound(server, "a")
                assert not is_bound(server, "b")
                server.cluster.add(members[2])
                standby.wait_for(lambda: all(is_bound(server, name) for name in "abc"))
        bound_by = [each.user for each in server.audit.writes("pods/binding")]
        assert bound_by == ["one", "two", "two", "two"]
