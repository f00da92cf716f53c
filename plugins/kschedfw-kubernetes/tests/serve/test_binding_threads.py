"""There are as many threads for binding cycles as help, and always one for a cycle that can go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from kschedfw_kubernetes.serve.binding_threads import FEWEST, MOST, WINDOW, BindingThreads

from kschedfw.testing.clock import FakeClock
from kschedfw.testing.waiting import PATIENCE, eventually


class Windows(FakeClock):
    """A clock that tells how many windows have begun."""

    begun = 0

    def wait_until(self, condition: threading.Condition, deadline: float) -> None:
        self.begun += 1
        super().wait_until(condition, deadline)


class Cycles:
    """Binding cycles that go on when the test lets them."""

    def __init__(self, count: int) -> None:
        self.clock = Windows()
        self.unanswered = 0
        self.pool = BindingThreads(self.clock, lambda: self.unanswered)
        self.permits = threading.Semaphore(0)
        self.begun = self.ended = 0
        self._lock = threading.Lock()
        self.futures = [self.pool.submit(self._cycle) for _ in range(count)]
        eventually(lambda: self.begun == min(FEWEST, count))

    def _cycle(self) -> None:
        with self._lock:
            self.begun += 1
        self.permits.acquire()

    def window(self, ending: int) -> int:
        """Let so many cycles end in a window. Return the number of threads after it."""
        before = self.clock.begun
        if ending:
            self.permits.release(ending)
        self.ended += ending
        eventually(lambda: self.begun == self.ended + self.pool.threads)
        self.clock.advance(WINDOW)
        eventually(lambda: self.clock.begun > before)
        eventually(lambda: self.begun == self.ended + self.pool.threads)
        return self.pool.threads

    def grow(self) -> None:
        """Let a window pass after which there are more threads, and the next one begin."""
        before, windows = self.pool.threads, self.clock.begun
        self.clock.advance(WINDOW)
        eventually(lambda: self.pool.threads > before)
        eventually(lambda: self.pool.threads == MOST or self.clock.begun > windows)

    def end(self) -> None:
        self.permits.release(len(self.futures))
        for future in self.futures:
            future.result(PATIENCE)
        self.pool.shutdown()


@pytest.fixture
def cycles() -> Iterator[Callable[[int], Cycles]]:
    made: list[Cycles] = []

    def make(count: int) -> Cycles:
        made.append(Cycles(count))
        eventually(lambda: made[-1].clock.begun == 1)
        return made[-1]

    yield make
    for each in made:
        each.end()


def test_cycles_that_end_soon_share_a_few_threads() -> None:
    pool = BindingThreads(Windows())
    names: set[int] = set()
    for _ in range(50):
        for future in [pool.submit(lambda: names.add(threading.get_ident())) for _ in range(FEWEST)]:
            future.result(PATIENCE)
    assert pool.threads <= FEWEST
    assert len(names) <= FEWEST
    pool.shutdown()


def test_where_no_cycle_ends_each_gets_a_thread_in_the_end(cycles: Callable[[int], Cycles]) -> None:
    made = cycles(60)
    threads = [made.window(0) for _ in range(9)]
    assert threads == [5, 7, 9, 11, 13, 16, 20, 25, 31]
    made.window(0)
    assert made.pool.threads == 38


def test_where_no_cycle_ends_since_the_server_does_not_answer_no_more_threads_ask_it(
    cycles: Callable[[int], Cycles],
) -> None:
    made = cycles(60)
    assert [made.window(0) for _ in range(2)] == [5, 7]
    made.unanswered = made.pool.threads + 1
    assert [made.window(0) for _ in range(30)] == [7] * 30
    assert [made.window(number) for number in (1, 1, 2, 2)] == [9, 9, 11, 11]


def test_threads_that_do_not_help_are_the_last_ones_for_a_while(cycles: Callable[[int], Cycles]) -> None:
    made = cycles(300)
    assert [made.window(3) for _ in range(19)] == [5] * 19
    assert [made.window(3) for _ in range(3)] == [5, 7, 7]


def test_threads_that_help_are_followed_by_others(cycles: Callable[[int], Cycles]) -> None:
    made = cycles(300)
    assert [made.window(made.pool.threads) for _ in range(6)] == [5, 7, 9, 11, 13, 16]


def test_there_are_never_more_than_the_most(cycles: Callable[[int], Cycles]) -> None:
    made = cycles(MOST + 20)
    while made.pool.threads < MOST:
        made.grow()
    eventually(lambda: made.begun == MOST)
    made.permits.release(20)
    eventually(lambda: made.begun == MOST + 20)
    assert made.pool.threads == MOST


def test_threads_without_work_end_but_for_the_fewest(cycles: Callable[[int], Cycles]) -> None:
    made = cycles(40)
    for _ in range(8):
        made.window(0)
    made.permits.release(40)
    for future in made.futures:
        future.result(PATIENCE)
    eventually(lambda: made.pool.threads == FEWEST)


@pytest.mark.slow
def test_every_idle_thread_takes_a_cycle_whoever_else_is_waking() -> None:
    pool = BindingThreads(Windows())
    for _ in range(300):
        barrier = threading.Barrier(FEWEST)
        # None of them ends before all have begun, so each needs a thread of its own at once.
        for future in [pool.submit(lambda barrier=barrier: barrier.wait(PATIENCE)) for _ in range(FEWEST)]:  # type: ignore[misc]
            future.result(PATIENCE)
    assert pool.threads == FEWEST
    pool.shutdown()


@pytest.mark.slow
def test_cycles_that_come_from_several_threads_while_others_end_all_run() -> None:
    pool = BindingThreads(Windows())
    done: list[int] = []

    def submit() -> None:
        for _ in range(500):
            pool.submit(lambda: done.append(1)).result(PATIENCE)

    threads = [threading.Thread(target=submit) for _ in range(FEWEST)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(done) == 500 * FEWEST
    pool.shutdown()


def test_whatever_a_cycle_raises_its_thread_goes_on() -> None:
    class Odd(BaseException):
        pass

    def fail() -> None:
        raise Odd

    pool = BindingThreads(Windows())
    failed = [pool.submit(fail) for _ in range(3 * FEWEST)]
    assert {type(each.exception(PATIENCE)) for each in failed} == {Odd}
    pool.submit(lambda: None).result(PATIENCE)
    pool.shutdown()


def test_at_the_end_what_has_no_thread_yet_is_cancelled() -> None:
    made = Cycles(FEWEST + 2)
    made.pool.shutdown()
    assert [each.cancelled() for each in made.futures] == [False] * FEWEST + [True] * 2
    made.permits.release(FEWEST)
    for future in made.futures[:FEWEST]:
        future.result(PATIENCE)
    eventually(lambda: made.pool.threads == 0)
    with pytest.raises(RuntimeError):
        made.pool.submit(lambda: None)


def test_a_future_that_was_cancelled_is_not_run() -> None:
    made = Cycles(FEWEST + 1)
    assert made.futures[-1].cancel()
    made.permits.release(FEWEST)
    eventually(lambda: made.pool.threads == FEWEST and all(each.done() for each in made.futures))
    assert made.begun == FEWEST
    made.pool.shutdown()
