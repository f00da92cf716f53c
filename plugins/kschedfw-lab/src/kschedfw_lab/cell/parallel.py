"""Schedulers that run in parallel on one shared state, as threads or as processes."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final, cast

from kschedfw import Pod
from kschedfw.api import Named, PodCondition
from kschedfw.cluster import ClusterError, Handler, T, WatchEvent
from kschedfw_lab.cell.optimistic import OptimisticScheduler
from kschedfw_lab.cell.shared_state import ClaimTransaction, CommitOutcome, Following, SharedState

_IDLE_SECONDS: Final = 0.002
_END: Final = None
"""The message that ends an outbox."""


def schedule_until(scheduler: OptimisticScheduler, is_done: Callable[[], bool]) -> None:
    """Schedule active pods on this thread until `is_done` returns true."""
    pause = threading.Event()
    while not is_done():
        if not scheduler.schedule_next():
            pause.wait(_IDLE_SECONDS)


def run_in_threads(schedulers: Sequence[OptimisticScheduler], is_done: Callable[[], bool]) -> None:
    """Run each scheduler on a thread of its own until `is_done` returns true.

    An exception in one thread ends all of them, and is raised here.
    """
    failures: list[BaseException] = []

    def run(scheduler: OptimisticScheduler) -> None:
        try:
            schedule_until(scheduler, lambda: bool(failures) or is_done())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(each,), name=each.name) for each in schedulers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class StateServer:
    """Serves a shared state to other processes of this program, each over a pipe of its own."""

    def __init__(self, state: SharedState) -> None:
        self._state = state

    def connect(self) -> Connection:
        """Return one end of a new pipe, for `RemoteState` in a child process. It is served until that end is closed."""
        ours, theirs = Pipe()
        threading.Thread(target=self._serve, args=(ours,), name="shared-state", daemon=True).start()
        return theirs

    def _serve(self, connection: Connection) -> None:
        # Changes and answers share one queue: when a client reads an answer, it has read all earlier changes.
        outbox: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        threading.Thread(target=_send_all, args=(connection, outbox), daemon=True).start()
        followings: list[Following] = []
        try:
            while True:
                number, method, arguments, options = connection.recv()
                if method == "follow":
                    found = self._state.follow(lambda event: outbox.put(("event", event)))
                    followings.append(found)
                    outbox.put(("answer", number, (found.objects, found.sequences), None))
                else:
                    outbox.put(("answer", number, *self._answer(method, arguments, options)))
        except (EOFError, OSError):
            pass  # The client's process has ended.
        finally:
            for each in followings:
                each.close()
            outbox.put(_END)

    def _answer(
        self, method: str, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[object, ClusterError | None]:
        """Call the method. Return its result, or the ClusterError that it raised."""
        called = self._state.commit if method == "commit" else getattr(self._state.truth, method)
        try:
            return called(*arguments, **options), None
        except ClusterError as error:
            return None, error


def _send_all(connection: Connection, outbox: SimpleQueue[tuple[Any, ...] | None]) -> None:
    try:
        while (message := outbox.get()) is not _END:
            connection.send(message)
    except OSError:
        pass  # The client's process has ended.
    finally:
        connection.close()


class RemoteState:
    """A shared state in another process, behind a connection of its `StateServer`. Thread-safe.

    Writes and commits raise the same ClusterErrors as there, and a ClusterError if the other process is gone.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._note: Handler = _ignore
        self._sending = threading.Lock()
        self._numbers = itertools.count()
        self._answers: dict[int, SimpleQueue[tuple[Any, ClusterError | None]]] = {}
        self.truth = RemoteTruth(self._call)
        self.is_closed = False
        threading.Thread(target=self._receive, name="remote-state", daemon=True).start()

    def follow(self, note: Handler) -> Following:
        """Follow the changes, as `SharedState.follow`. Only one caller may follow at a time."""
        # Before the call, since events may arrive before its answer.
        self._note = note
        objects, sequences = self._call("follow")
        return Following(self._forget, objects, sequences)

    def commit(self, transaction: ClaimTransaction) -> CommitOutcome:
        """Commit a transaction, as `SharedState.commit`."""
        return cast("CommitOutcome", self._call("commit", transaction))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _forget(self) -> None:
        self._note = _ignore

    def _call(self, method: str, *arguments: object, **options: object) -> Any:
        number = next(self._numbers)
        answer = self._answers[number] = SimpleQueue()
        try:
            with self._sending:
                self._connection.send((number, method, arguments, options))
        except OSError as error:
            raise ClusterError(f"the process of the shared state is gone: {error}") from error
        # The receiver may have ended before this answer was registered. Then nobody else would put one.
        if self.is_closed:
            answer.put((None, _gone()))
        value, refusal = answer.get()
        if refusal is not None:
            raise refusal
        return value

    def _receive(self) -> None:
        try:
            while True:
                kind, *content = self._connection.recv()
                if kind == "event":
                    self._note(content[0])
                else:
                    number, value, refusal = content
                    self._answers.pop(number).put((value, refusal))
        except (EOFError, OSError):
            self.is_closed = True
            for answer in tuple(self._answers.values()):
                answer.put((None, _gone()))


class RemoteTruth:
    """The truth of a `RemoteState`; see `Truth`."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def add(self, obj: T) -> T:
        return cast("T", self._call("add", obj))

    def update(self, obj: T) -> T:
        return cast("T", self._call("update", obj))

    def delete(self, obj: Named) -> None:
        self._call("delete", obj)

    def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
    ) -> None:
        self._call("patch_pod_status", pod, condition=condition, nominated_node_name=nominated_node_name)

    def record_event(
        self, regarding: Named, type: str, reason: str, message: str, related: Named | None = None
    ) -> None:
        self._call("record_event", regarding, type, reason, message, related)


def _gone() -> ClusterError:
    return ClusterError("the process of the shared state is gone")


def _ignore(_event: WatchEvent) -> None:
    """Discard an event while nobody follows."""
