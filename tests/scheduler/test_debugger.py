"""What the debugger says of a scheduler that is right, of one that isn't, and when a signal asks for it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator

import pytest
from kschedfw_apiserver.processes import running

from kschedfw import Cache, make_pod
from kschedfw.scheduler.debugger import CacheDebugger, Discrepancies
from kschedfw.testing.waiting import PATIENCE
from tests.scheduler.stage import LaterExecutor, Stage, node, pod

needs_sigusr2 = pytest.mark.skipif(not hasattr(signal, "SIGUSR2"), reason="a system without SIGUSR2")


class TestCompare:
    def test_cache_and_cluster_agree_while_pods_are_bound_pending_assumed_and_finished(self) -> None:
        later = LaterExecutor()
        stage = Stage(nodes=[node()], executor=later)
        stage.add(pod("bound", on="n"), pod("assumed"))
        stage.scheduler.schedule_one()
        stage.add(pod("pending"), make_pod("foreign").scheduler_name("somebody").build())
        found = stage.scheduler.debugger.compare()
        assert not found
        assert str(found) == "cache and cluster agree"
        assert found == Discrepancies()

    def test_what_either_side_lacks_is_named(self) -> None:
        stage = Stage(nodes=[node("both"), node("a"), node("b")], pods=[pod("seen", on="both")])
        stage.scheduler.events.close()
        for name in ("a", "b"):
            stage.cluster.delete(node(name))
        stage.cluster.delete(stage.pod("seen"))
        stage.add(node("new"), make_pod("fresh").uid("uid-fresh").node("new").build())
        stage.add(make_pod("waits").uid("uid-waits").build())
        found = stage.scheduler.debugger.compare()
        assert found
        (seen,) = found.redundant_pods
        assert found == Discrepancies(
            missed_nodes=("new",),
            redundant_nodes=("a", "b"),
            missed_pods=("uid-fresh",),
            redundant_pods=(seen,),
        )
        assert str(found) == (
            f"missed nodes: new; redundant nodes: a, b; missed pods: uid-fresh; redundant pods: {seen}"
        )

    def test_it_looks_anew_each_time(self) -> None:
        stage = Stage(nodes=[node()])
        debugger = CacheDebugger(stage.cluster, Cache(), stage.scheduler.queue)
        assert debugger.compare().missed_nodes == ("n",)
        stage.cluster.delete(node())
        assert not debugger.compare()


def test_the_dump_shows_every_node_with_its_pods_and_every_pod_that_waits() -> None:
    later = LaterExecutor()
    stage = Stage(nodes=[node(cpu=3)], executor=later)
    stage.add(make_pod("bound").uid("u1").requests(cpu="1").node("n").build())
    stage.add(make_pod("assumed").uid("u2").requests(cpu="1").build())
    stage.scheduler.schedule_one()
    stage.add(make_pod("big").uid("u3").requests(cpu="2").build())
    stage.scheduler.schedule_one()
    stage.add(make_pod("gated").uid("u4").scheduling_gate("wait").build())
    stage.add(make_pod("active").uid("u5").build())
    requested = "milli_cpu=2000, memory=0, ephemeral_storage=0, allowed_pod_number=0, scalar_resources={}"
    allocatable = (
        "milli_cpu=3000, memory=68719476736, ephemeral_storage=0, allowed_pod_number=110, scalar_resources={}"
    )
    assert stage.scheduler.debugger.dump().splitlines() == [
        "Dump of cached NodeInfo",
        f"Node name: n; requested: Resource({requested}); allocatable: Resource({allocatable}); pods: 2",
        "  default/bound uid=u1",
        "  default/assumed uid=u2 (assumed)",
        "Dump of scheduling queue (activeQ:1; backoffQ:0; unschedulableEntities:2)",
        "  default/active uid=u5",
        "  default/big uid=u3",
        "  default/gated uid=u4",
    ]


class Texts:
    """Takes what is written, on whatever thread."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.threads: set[threading.Thread] = set()
        self._changed = threading.Condition()

    def __call__(self, text: str) -> None:
        with self._changed:
            self.texts.append(text)
            self.threads.add(threading.current_thread())
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.texts) >= count, PATIENCE)
            return self.texts


@needs_sigusr2
class TestSignal:
    @pytest.fixture(autouse=True)
    def _restore(self) -> Iterator[None]:
        before = signal.getsignal(signal.SIGUSR2)
        yield
        signal.signal(signal.SIGUSR2, before)

    def test_it_has_both_texts_written_on_another_thread(self) -> None:
        stage, written = Stage(nodes=[node()]), Texts()
        uninstall = stage.scheduler.debugger.install_signal_handler(write=written)
        signal.raise_signal(signal.SIGUSR2)
        assert written.wait_for(2) == ["cache and cluster agree", stage.scheduler.debugger.dump()]
        assert threading.current_thread() not in written.threads
        uninstall()

    def test_whoever_takes_it_out_finds_the_handler_of_before(self) -> None:
        def mine(*_: object) -> None: ...

        signal.signal(signal.SIGUSR2, mine)
        uninstall = Stage().scheduler.debugger.install_signal_handler(write=Texts())
        assert signal.getsignal(signal.SIGUSR2) is not mine
        uninstall()
        assert signal.getsignal(signal.SIGUSR2) is mine

    def test_another_signal_will_do(self) -> None:
        written = Texts()
        before = signal.getsignal(signal.SIGTERM)
        uninstall = Stage().scheduler.debugger.install_signal_handler(signal.SIGTERM, written)
        signal.raise_signal(signal.SIGTERM)
        written.wait_for(2)
        uninstall()
        assert signal.getsignal(signal.SIGTERM) == before

    def test_without_a_writer_it_is_standard_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        uninstall = Stage().scheduler.debugger.install_signal_handler()
        signal.raise_signal(signal.SIGUSR2)
        uninstall()  # after what was asked for is written
        assert capsys.readouterr().err.startswith("cache and cluster agree\nDump of cached NodeInfo\n")

    def test_what_the_writer_raises_is_logged_and_the_next_signal_served(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        written = Texts()

        def moody(text: str) -> None:
            if not caplog.records:
                raise OSError("closed")
            written(text)

        uninstall = Stage().scheduler.debugger.install_signal_handler(write=moody)
        signal.raise_signal(signal.SIGUSR2)
        for _ in range(1000):
            if caplog.records:
                break
            threading.Event().wait(0.01)
        signal.raise_signal(signal.SIGUSR2)
        written.wait_for(2)
        uninstall()
        assert caplog.messages == ["the debugger failed"]

    def test_only_the_main_thread_can_install_it(self) -> None:
        errors: list[BaseException] = []

        def install() -> None:
            try:
                Stage().scheduler.debugger.install_signal_handler()
            except ValueError as error:
                errors.append(error)

        thread = threading.Thread(target=install)
        thread.start()
        thread.join(PATIENCE)
        assert len(errors) == 1

    def test_a_system_without_sigusr2_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patched:
            patched.delattr(signal, "SIGUSR2")
            with pytest.raises(ValueError, match="this system has no SIGUSR2; name another signal"):
                Stage().scheduler.debugger.install_signal_handler()

    @pytest.mark.slow
    def test_a_running_scheduler_answers_and_goes_on(self) -> None:
        with running([sys.executable, "-c", PROGRAM]) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "bound\n"
            process.send_signal(signal.SIGUSR2)
            written = [process.stderr.readline().rstrip("\n") for _ in range(5)]
            process.send_signal(signal.SIGTERM)
            rest, errors = process.communicate()
        assert written[:2] == ["cache and cluster agree", "Dump of cached NodeInfo"]
        assert written[2].startswith("Node name: n; requested: Resource(milli_cpu=1000,")
        assert written[3] == "  default/pod uid=u"
        assert written[4] == "Dump of scheduling queue (activeQ:0; backoffQ:0; unschedulableEntities:0)"
        assert (rest, errors) == ("stopped\n", "")
        assert process.returncode == 0


PROGRAM = """
import signal

from kschedfw import InMemoryCluster, Pod
from kschedfw.scheduler.scheduler import Scheduler
from kschedfw import make_node, make_pod


def tell(event):
    if isinstance(event.object, Pod) and event.object.node_name:
        print("bound", flush=True)


cluster = InMemoryCluster([make_node("n").capacity(cpu=4).build()])
scheduler = Scheduler(cluster)
scheduler.debugger.install_signal_handler()
signal.signal(signal.SIGTERM, lambda *_: scheduler.stop())
cluster.watch(tell)
cluster.add(make_pod("pod").uid("u").requests(cpu="1").build())
scheduler.run()
print("stopped", flush=True)
"""
