"""Work on several threads that comes out as if it had been done in order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import KschedfwError, Parallelizer
from kschedfw.framework.parallelizer import DEFAULT_PARALLELISM, ParallelismError, chunk_size
from kschedfw.testing.waiting import PATIENCE

PARALLELISMS = (1, 2, 16)


@pytest.fixture(scope="module")
def parallelizers() -> Iterator[dict[int, Parallelizer]]:
    by_parallelism = {parallelism: Parallelizer(parallelism) for parallelism in PARALLELISMS}
    yield by_parallelism
    for parallelizer in by_parallelism.values():
        parallelizer.close()


def never(result: object) -> bool:
    return False


class TestChunkSize:
    @pytest.mark.parametrize(
        ("pieces", "parallelism", "size"),
        [
            (1, 16, 1),
            (16, 16, 1),
            (17, 16, 1),
            (64, 16, 4),
            (1_000, 16, 31),
            (5_000, 16, 70),
            (5_000, 1, 70),
            (100, 2, 10),
            (0, 16, 1),
        ],
    )
    def test_it_is_the_smaller_of_the_root_and_the_workers_share(
        self, pieces: int, parallelism: int, size: int
    ) -> None:
        assert chunk_size(pieces, parallelism) == size

    @given(st.integers(0, 100_000), st.integers(1, 64))
    def test_every_worker_gets_a_chunk_where_there_are_enough_pieces(
        self, pieces: int, parallelism: int
    ) -> None:
        size = chunk_size(pieces, parallelism)
        assert size >= 1
        assert -(-pieces // size) >= min(pieces, parallelism)

    @given(st.integers(1, 100_000), st.integers(1, 64))
    def test_it_never_exceeds_kube_schedulers(self, pieces: int, parallelism: int) -> None:
        root = int(pieces**0.5)
        assert chunk_size(pieces, parallelism) <= max(1, min(root, pieces // parallelism + 1))


class Failure(Exception):
    pass


def serially(pieces: int, work: Callable[[int], int], enough: Callable[[int], bool]) -> list[int]:
    results = []
    for piece in range(pieces):
        results.append(work(piece))
        if enough(results[-1]):
            break
    return results


@given(
    answers=st.lists(st.sampled_from(["pass", "refuse", "fail"]), max_size=60),
    wanted=st.integers(0, 20),
)
def test_the_outcome_is_that_of_a_serial_loop(
    parallelizers: dict[int, Parallelizer], answers: list[str], wanted: int
) -> None:
    def work(piece: int) -> int:
        if answers[piece] == "fail":
            raise Failure(piece)
        return piece

    def outcome(run: Callable[[int, Callable[[int], int], Callable[[int], bool]], list[int]]) -> object:
        passed = 0
        seen = []

        def enough(piece: int) -> bool:
            nonlocal passed
            seen.append(piece)
            passed += answers[piece] == "pass"
            return passed > wanted

        try:
            return run(len(answers), work, enough), seen
        except Failure as error:
            return error.args, seen

    expected = outcome(serially)
    for parallelizer in parallelizers.values():
        assert outcome(parallelizer.map_until) == expected


@pytest.mark.parametrize("parallelism", PARALLELISMS)
class TestMap:
    def test_it_gives_all_results_in_order(
        self, parallelizers: dict[int, Parallelizer], parallelism: int
    ) -> None:
        assert parallelizers[parallelism].map(1000, lambda piece: piece * piece) == [
            n * n for n in range(1000)
        ]

    def test_nothing_to_do_is_no_work(self, parallelizers: dict[int, Parallelizer], parallelism: int) -> None:
        assert parallelizers[parallelism].map(0, lambda piece: 1 // piece) == []

    def test_the_first_failing_pieces_exception_is_raised_as_it_is(
        self, parallelizers: dict[int, Parallelizer], parallelism: int
    ) -> None:
        errors = {piece: Failure(piece) for piece in (7, 8, 50, 99)}

        def work(piece: int) -> int:
            if piece == 7:
                time.sleep(0.05)  # the others fail first
            if piece in errors:
                raise errors[piece]
            return piece

        with pytest.raises(Failure) as caught:
            parallelizers[parallelism].map(100, work)
        assert caught.value is errors[7]

    def test_it_can_be_used_again_after_a_failure(
        self, parallelizers: dict[int, Parallelizer], parallelism: int
    ) -> None:
        def fail(piece: int) -> int:
            raise Failure

        with pytest.raises(Failure):
            parallelizers[parallelism].map(10, fail)
        assert parallelizers[parallelism].map(3, lambda piece: piece) == [0, 1, 2]

    def test_an_exception_of_the_condition_is_raised_too(
        self, parallelizers: dict[int, Parallelizer], parallelism: int
    ) -> None:
        def enough(piece: int) -> bool:
            raise Failure(piece)

        with pytest.raises(Failure):
            parallelizers[parallelism].map_until(40, lambda piece: piece, enough)

    def test_work_may_itself_use_the_parallelizer(
        self, parallelizers: dict[int, Parallelizer], parallelism: int
    ) -> None:
        parallelizer = parallelizers[parallelism]
        done: list[list[int]] = []

        def run() -> None:
            done.extend(parallelizer.map(40, lambda outer: parallelizer.map(40, lambda inner: outer * inner)))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert done == [[outer * inner for inner in range(40)] for outer in range(40)]


class TestConcurrency:
    @pytest.mark.parametrize("pieces", [16, 17, 64, 1000])
    def test_sixteen_pieces_really_run_at_the_same_time(
        self, parallelizers: dict[int, Parallelizer], pieces: int
    ) -> None:
        barrier = threading.Barrier(16, timeout=PATIENCE)
        met = threading.local()

        def work(piece: int) -> int:
            if not hasattr(met, "once") and piece < pieces - pieces % 16:
                met.once = True
                barrier.wait()
            return threading.get_ident()

        assert len(set(Parallelizer(16).map(pieces, work))) >= 16

    def test_parallelism_one_works_on_the_callers_thread(self) -> None:
        assert set(Parallelizer(1).map(50, lambda piece: threading.get_ident())) == {threading.get_ident()}

    def test_no_more_threads_than_the_parallelism_are_used(self) -> None:
        parallelizer = Parallelizer(2)
        assert len(set(parallelizer.map(500, lambda piece: threading.get_ident()))) <= 2
        parallelizer.close()

    def test_once_it_is_enough_no_further_chunk_is_begun(self) -> None:
        begun: list[int] = []

        def work(piece: int) -> int:
            begun.append(piece)
            if piece:
                time.sleep(0.001)
            return piece

        parallelizer = Parallelizer(4)
        assert parallelizer.map_until(10_000, work, lambda piece: piece == 0) == [0]
        assert len(begun) < 1_000
        parallelizer.close()

    def test_after_a_failure_no_further_chunk_is_begun(self) -> None:
        begun: list[int] = []

        def work(piece: int) -> int:
            begun.append(piece)
            time.sleep(0.001)
            if piece == 3:
                raise Failure
            return piece

        parallelizer = Parallelizer(4)
        with pytest.raises(Failure):
            parallelizer.map(10_000, work)
        assert len(begun) < 1_000
        parallelizer.close()


class TestPool:
    def test_kube_schedulers_sixteen_are_the_default(self) -> None:
        assert Parallelizer().parallelism == DEFAULT_PARALLELISM == 16

    @pytest.mark.parametrize("parallelism", [0, -1])
    def test_there_must_be_at_least_one(self, parallelism: int) -> None:
        with pytest.raises(
            ParallelismError, match=f"parallelism: expected at least 1, found {parallelism}"
        ) as caught:
            Parallelizer(parallelism)
        assert isinstance(caught.value, KschedfwError)
        assert isinstance(caught.value, ValueError)

    def test_threads_end_with_close_and_are_made_again_when_needed(self) -> None:
        def own_threads() -> int:
            return sum(thread.name.startswith("kschedfw") for thread in threading.enumerate())

        before = own_threads()
        parallelizer = Parallelizer(3)
        assert own_threads() == before
        parallelizer.map(100, lambda piece: piece)
        assert own_threads() > before
        parallelizer.close()
        parallelizer.close()
        assert own_threads() == before
        assert parallelizer.map(5, lambda piece: piece) == [0, 1, 2, 3, 4]
        parallelizer.close()
