"""Claims before bindings, over HTTP: what is written, what is shown, and who gives way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import attrs
import pytest
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes import ClaimBook, ClaimConflictError, ClaimingCluster, NodeRecords
from kschedfw_kubernetes.claims.claim_book import Reason
from kschedfw_kubernetes.claims.node_record import (
    CLAIMS,
    LEASES,
    NodeRecord,
    PodClaim,
    RecordError,
    lease_name,
    read_record,
    write_record,
)
from kschedfw_kubernetes.cluster import Client, KubernetesCluster

from kschedfw import Pod, make_node, make_pod
from kschedfw.cluster import WatchEvent
from kschedfw.scheduler.still_fits import StillFits
from kschedfw.testing.waiting import PATIENCE, eventually

NAMESPACE = "kube-system"


@attrs.define(eq=False)
class Sharer:
    """One of the schedulers, as far as its cluster goes: what it was told, and pods that it binds by hand."""

    cluster: ClaimingCluster
    records: NodeRecords
    told: list[WatchEvent] = attrs.field(factory=list)

    def pod(self, name: str) -> Pod | None:
        return self.cluster.get(Pod, f"default/{name}")

    def decide(self, name: str) -> Pod:
        pod = self.pod(name)
        assert pod is not None
        return pod

    def bind(self, name: str, node_name: str) -> None:
        self.cluster.bind(self.decide(name), node_name)

    def sees(self, name: str, node_name: str) -> bool:
        pod = self.pod(name)
        return pod is not None and pod.node_name == node_name


Join = Callable[..., Sharer]


@pytest.fixture
def join(connected: Callable[..., Client]) -> Iterator[Join]:
    """Makes sharers; each follows the server."""
    with ExitStack() as stack:

        def make(name: str, is_mine: Callable[[Pod], bool] = lambda _: True) -> Sharer:
            client = connected()
            cluster = stack.enter_context(KubernetesCluster(client))
            records = NodeRecords(client, NAMESPACE, name)
            claiming = ClaimingCluster(cluster, records, ClaimBook(name), StillFits, is_mine)
            sharer = Sharer(claiming, records)
            stack.callback(sharer.cluster.close)
            sharer.cluster.watch(sharer.told.append)
            assert cluster.wait_for_sync(PATIENCE)
            sharer.cluster.start()
            assert sharer.cluster.wait_for_sync(PATIENCE)
            return sharer

        yield make


@pytest.fixture
def filled(server: ApiServer) -> ApiServer:
    server.cluster.add(make_node("a").build())
    for number in range(3):
        server.cluster.add(make_pod(f"p{number}").build())
    return server


pytestmark = pytest.mark.slow


class TestCommit:
    def test_a_claim_is_written_before_the_pod_is_bound(self, filled: ApiServer, join: Join) -> None:
        one = join("one")
        one.bind("p0", "a")
        bound = filled.cluster.get(Pod, "default/p0")
        assert bound is not None
        assert bound.node_name == "a"
        seen = one.records.read("a")
        assert seen is not None
        assert [(claim.key, claim.holder) for claim in seen[1].claims] == [("default/p0", "one")]
        assert (seen[1].sequence, one.cluster.figures.claims) == (1, 1)

    def test_claims_of_bound_pods_are_taken_out_by_the_next_commit(
        self, filled: ApiServer, join: Join
    ) -> None:
        one = join("one")
        one.bind("p0", "a")
        eventually(lambda: one.sees("p0", "a"))
        one.bind("p1", "a")
        seen = one.records.read("a")
        assert seen is not None
        assert [claim.key for claim in seen[1].claims] == ["default/p1"]
        assert seen[1].watermark > 0

    def test_two_decisions_on_a_node_with_room_for_both(self, filled: ApiServer, join: Join) -> None:
        """The second was decided without the first, but fits all the same."""
        one, two = join("one"), join("two")
        late = two.decide("p1")
        one.bind("p0", "a")
        two.cluster.bind(late, "a")
        assert two.cluster.figures.claims == 1
        assert not sum(two.cluster.figures.conflicts.values())

    def test_two_decisions_on_a_node_with_room_for_one(self, filled: ApiServer, join: Join) -> None:
        filled.cluster.add(make_node("small").capacity(pods=1).build())
        one, two = join("one"), join("two")
        late = two.decide("p1")
        one.bind("p0", "small")
        # A bound pod looks like a foreign scheduler's until its claim is seen, and each has a watch of its own.
        eventually(lambda: bool(two.cluster._book.version("small")))
        with pytest.raises(
            ClaimConflictError, match=r"Pod default/p1 on node small: conflict .*room.*Too many pods"
        ):
            two.cluster.bind(late, "small")
        present = filled.cluster.get(Pod, "default/p1")
        assert present is not None
        assert present.node_name == ""
        assert two.cluster.figures.conflicts[Reason.ROOM] == 1
        two.bind("p1", "a")

    def test_records_that_others_write_are_tried_again(self, filled: ApiServer, join: Join) -> None:
        """Its watch of the records is cut off: so the update is refused, and the record is read."""
        one, two = join("one"), join("two")
        two.records.close()
        one.bind("p0", "a")
        two.bind("p1", "a")
        assert two.cluster.figures.retries[Reason.VERSION] == 1
        seen = two.records.read("a")
        assert seen is not None
        assert seen[1].sequence == 2

    def test_a_record_that_was_deleted_is_made_again(self, filled: ApiServer, join: Join) -> None:
        one = join("one")
        one.bind("p0", "a")
        one.records.client.write("DELETE", LEASES.path(NAMESPACE, lease_name("a")))
        eventually(lambda: not one.cluster._book.version("a"))
        one.bind("p1", "a")
        assert one.cluster.figures.claims == 2

    @pytest.mark.parametrize(
        ("record", "reason"),
        [
            (NodeRecord(1, 0, (PodClaim("u", "default/ghost", 1 << 40, "two"),)), Reason.UNSEEN),
            (NodeRecord(1, 1 << 40), Reason.BEHIND),
        ],
    )
    def test_what_is_not_known_yet_is_waited_for(
        self,
        filled: ApiServer,
        join: Join,
        monkeypatch: pytest.MonkeyPatch,
        record: NodeRecord,
        reason: Reason,
    ) -> None:
        """The record has the claim of a pod that isn't seen here, or says that bindings aren't seen here."""
        one = join("one")
        one.records.write("a", record, "")
        eventually(lambda: bool(one.cluster._book.version("a")))
        with monkeypatch.context() as patched:
            patched.setattr("kschedfw_kubernetes.claims.claim_commits.PATIENCE", 0.05)
            with pytest.raises(ClaimConflictError, match=reason):
                one.bind("p0", "a")
        assert one.cluster.figures.conflicts[reason] == 1
        with ThreadPoolExecutor(1) as thread:
            bound = thread.submit(one.bind, "p0", "a")
            eventually(lambda: one.cluster.figures.retries[reason] == 2)
            one.records.write("a", NodeRecord(2), one.cluster._book.version("a"))
            assert bound.result(PATIENCE) is None

    def test_claims_on_one_node_are_written_together(self, filled: ApiServer, join: Join) -> None:
        """Those that come while the record is being written go into the next write."""
        for number in range(3, 20):
            filled.cluster.add(make_pod(f"p{number}").build())
        one = join("one")
        eventually(lambda: one.pod("p19") is not None)
        with ThreadPoolExecutor(20) as threads, one.cluster._commits.alone("a"):
            bound = [threads.submit(one.bind, f"p{number}", "a") for number in range(20)]
            eventually(lambda: len(one.cluster._commits._wishes["a"]) == 20)
        assert all(each.exception() is None for each in bound)
        assert (one.cluster.figures.claims, one.cluster.figures.writes) == (20, 1)

    def test_one_scheduler_does_not_conflict_with_itself(self, filled: ApiServer, join: Join) -> None:
        one = join("one")
        decided = [one.decide(f"p{number}") for number in range(3)]
        for pod in decided:
            one.cluster.bind(pod, "a")
        assert one.cluster.figures.claims == 3

    def test_what_foreign_schedulers_bind_is_a_conflict(self, filled: ApiServer, join: Join) -> None:
        filled.cluster.add(make_node("small").capacity(pods=1).build())
        one = join("one")
        late = one.decide("p1")
        foreign = filled.cluster.get(Pod, "default/p0")
        assert foreign is not None
        filled.cluster.bind(foreign, "small")
        eventually(lambda: one.sees("p0", "small"))
        with pytest.raises(ClaimConflictError, match="foreign"):
            one.cluster.bind(late, "small")
        assert (one.cluster.foreign, one.cluster.figures.conflicts[Reason.FOREIGN]) == (1, 1)

    def test_a_pod_that_somebody_else_has_claimed(self, filled: ApiServer, join: Join) -> None:
        one, two = join("one"), join("two")
        late = two.decide("p0")
        one.bind("p0", "a")
        eventually(lambda: two.sees("p0", "a"))
        with pytest.raises(ClaimConflictError, match="taken"):
            two.cluster.bind(late, "a")


class TestClaimsOfOthers:
    def claim(self, sharer: Sharer, name: str, holder: str = "dead") -> None:
        """A claim that no binding follows."""
        pod = sharer.pod(name)
        assert pod is not None
        claim = PodClaim(pod.uid, pod.key, int(pod.metadata.resource_version), holder)
        sharer.records.write("a", NodeRecord(1, 0, (claim,)), "")

    def test_are_shown_as_bound_pods(self, filled: ApiServer, join: Join) -> None:
        one = join("one")
        self.claim(one, "p0")
        eventually(lambda: one.sees("p0", "a"))
        last = [event.object for event in one.told if event.object.name == "p0"][-1]
        assert isinstance(last, Pod)
        assert last.node_name == "a"
        present = filled.cluster.get(Pod, "default/p0")
        assert present is not None
        assert present.node_name == ""

    def test_are_shown_where_ones_own_claim_was_refused(self, filled: ApiServer, join: Join) -> None:
        """Another scheduler has the pod on another node, and the record here was updated by a third one."""
        filled.cluster.add(make_node("b").build())
        one = join("one")
        late = one.decide("p0")
        one.records.close()  # its watch lags
        one.records.write("a", NodeRecord(1), "")
        claim = PodClaim(late.uid, late.key, 1, "two")
        one.cluster._book.claim(late.uid, "a", lambda: "")
        one.cluster._record_seen(one.records.write("b", NodeRecord(1, 0, (claim,)), ""))
        one.cluster._commits.give_up((late,))
        last = [event.object for event in one.told if event.object.name == "p0"][-1]
        assert isinstance(last, Pod)
        assert last.node_name == "b"

    def test_expire(self, filled: ApiServer, join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
        one = join("one")
        self.claim(one, "p0")
        eventually(lambda: one.sees("p0", "a"))
        one.cluster.sweep()
        assert one.sees("p0", "a")  # it hasn't stood for long
        monkeypatch.setattr("kschedfw_kubernetes.claims.claim_book.EXPIRY", 0.0)
        one.cluster.sweep()
        assert one.sees("p0", "")
        kinds = [event.type.value for event in one.told if event.object.name == "p0"]
        assert kinds[-2:] == ["DELETED", "ADDED"]
        one.bind("p0", "a")

    def test_of_pods_that_are_gone_keep_nothing(self, filled: ApiServer, join: Join) -> None:
        one = join("one")
        self.claim(one, "p0")
        eventually(lambda: one.sees("p0", "a"))
        gone = filled.cluster.get(Pod, "default/p0")
        assert gone is not None
        filled.cluster.delete(gone)
        eventually(lambda: one.pod("p0") is None)
        one.bind("p1", "a")
        seen = one.records.read("a")
        assert seen is not None
        assert [claim.key for claim in seen[1].claims] == ["default/p1"]


def test_pending_pods_of_others_are_not_told(filled: ApiServer, join: Join) -> None:
    one = join("one", lambda pod: pod.name == "p1")
    assert {event.object.name for event in one.told if isinstance(event.object, Pod)} == {"p1"}
    other = filled.cluster.get(Pod, "default/p0")
    assert other is not None
    filled.cluster.bind(other, "a")
    eventually(lambda: "p0" in {event.object.name for event in one.told})


def test_a_spoilt_record_keeps_its_node_from_being_claimed(filled: ApiServer, join: Join) -> None:
    filled.cluster.add(make_node("b").build())
    one = join("one")
    lease = write_record(NodeRecord(1), "a", NAMESPACE, "", holder="x", now=0.0)
    lease["metadata"]["annotations"][CLAIMS] = "[]"
    one.records.client.write("POST", LEASES.collection(NAMESPACE), lease)
    with pytest.raises(RecordError, match="can't be read"):
        one.bind("p0", "a")
    one.bind("p0", "b")
    eventually(lambda: one.sees("p0", "b"))


class TestForeign:
    """Pods are foreign if they were bound without a claim, whatever this scheduler was about to do with them."""

    def book(self) -> ClaimBook:
        book = ClaimBook("one")
        book.pod_seen("p", "default/p", "", 1)
        book.claim("p", "b", lambda: "")
        return book

    def test_bound_by_another_that_claims(self) -> None:
        for claim_comes_first in (True, False):
            book, record = self.book(), NodeRecord(1, 0, (PodClaim("p", "default/p", 1, "two"),))
            if claim_comes_first:
                book.record_seen("a", record, "2", 0.0)
            book.pod_seen("p", "default/p", "a", 3)
            book.record_seen("a", record, "2", 0.0)
            assert book.foreign == 0

    def test_bound_by_another_that_does_not(self) -> None:
        book = self.book()
        book.pod_seen("p", "default/p", "a", 3)
        assert book.foreign == 1
        book.pod_gone("p", 4)
        assert book.foreign == 1

    def test_bound_by_this_one(self) -> None:
        book = self.book()
        book.pod_seen("p", "default/p", "b", 3)
        assert book.foreign == 0


class TestRecords:
    def test_are_read_as_they_were_written(self) -> None:
        record = NodeRecord(7, 12, (PodClaim("u", "default/p", 3, "me"),))
        lease = write_record(record, "a", NAMESPACE, "5", holder="me", now=0.0)
        assert read_record(lease) == record
        assert lease["metadata"]["resourceVersion"] == "5"
        assert lease["spec"]["leaseTransitions"] == 7

    def test_that_somebody_has_spoilt(self) -> None:
        lease = {"metadata": {"name": "kschedfw.a", "annotations": {CLAIMS: "[]"}}, "spec": {}}
        with pytest.raises(
            RecordError, match=r"Lease kschedfw\.a: its annotation kschedfw\.dev/claims can't be read"
        ):
            read_record(lease)

    def test_of_a_node_with_too_long_a_name(self) -> None:
        with pytest.raises(RecordError, match="more than 253 characters"):
            lease_name("n" * 250)

    def test_an_older_version_is_not_replaced(self, filled: ApiServer, join: Join) -> None:
        one = join("one")
        node, record, version = one.records.write("a", NodeRecord(1), "")
        one.records.write(node, NodeRecord(2), version)
        for stale in (version, ""):
            with pytest.raises(Exception, match=r"409|has been modified|already exists"):
                one.records.write(node, NodeRecord(3), stale)
        assert LEASES.path(NAMESPACE, lease_name("a")).endswith("/leases/kschedfw.a")
        assert record == NodeRecord(1)
