"""From a pod and a snapshot to a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedfw import (
    Code,
    CycleState,
    EnabledPlugin,
    FitError,
    NodeInfo,
    NodeSelection,
    NoNodesAvailableError,
    Pod,
    PodInfo,
    PreFilterResult,
    Profile,
    ScheduleResult,
    Status,
    make_node,
    make_pod,
)
from kschedfw.framework.diagnosis import Diagnosis
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.outcome import FilterOutcome, Totals
from kschedfw.scheduler import SchedulingError, num_feasible_nodes_to_find
from kschedfw.scheduler.batching import Hint
from kschedfw.scheduler.errors import SnapshotMismatchError
from kschedfw.testing.properties import examples
from tests.framework.support import PluginClass, answering, make_framework, nodes, plugin, pod
from tests.scheduler.support import POOL, Bench

POD = pod()
SCORES_NOTHING = plugin("Even", score=answering(0))


def refusing(name: str, *refused: str, reason: str = "node(s) were refused") -> PluginClass:
    """A filter that refuses the nodes of these names."""
    return plugin(
        name, filter=lambda node_info: Status.unschedulable(reason) if node_info.name in refused else None
    )


def rating(name: str, **scores: int) -> PluginClass:
    return plugin(name, score=lambda node_info: scores.get(node_info.name, 0))


def names(infos: Sequence[NodeInfo]) -> list[str]:
    return [info.name for info in infos]


def attempt(bench: Bench) -> ScheduleResult | FitError | SchedulingError:
    try:
        return bench.schedule(POD)
    except (FitError, SchedulingError) as error:
        return error


def fit_error(bench: Bench, incoming: Pod = POD) -> FitError:
    with pytest.raises(FitError) as caught:
        bench.schedule(incoming)
    assert caught.value.pod is incoming
    return caught.value


class TestSchedule:
    def test_the_node_with_the_highest_total_is_taken(self) -> None:
        bench = Bench(
            rating("A", a=10, b=20, c=0),
            rating("B", a=30, b=0, c=0),
            refusing("C", "c"),
            nodes=nodes("a", "b", "c"),
            profile=Profile([EnabledPlugin("A", 2), "B", "C"]),
        )
        assert bench.schedule(POD) == ScheduleResult("a", evaluated_nodes=3, feasible_nodes=2)

    def test_without_nodes_nothing_is_asked(self) -> None:
        bench = Bench(plugin("A", pre_filter=answering(AssertionError("was asked"))))
        with pytest.raises(NoNodesAvailableError, match=r"^no nodes available to schedule pods$"):
            bench.schedule(POD)

    def test_each_attempt_sees_the_cache_as_it_is_then(self) -> None:
        bench = Bench(rating("A", b=1), nodes=nodes("a"))
        assert bench.schedule(POD).suggested_host == "a"
        bench.cache.add_node(make_node("b").build())
        assert bench.schedule(POD).suggested_host == "b"

    def test_a_pod_that_fits_nowhere_is_told_why(self) -> None:
        bench = Bench(
            refusing("A", "a", reason="Insufficient cpu"),
            plugin("B", filter=lambda: Status.unresolvable("node(s) were in the wrong rack")),
            nodes=nodes("a", "b", "c"),
        )
        error = fit_error(bench)
        assert str(error) == (
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were in the wrong rack."
        )
        assert error.number_of_nodes == 3
        assert error.diagnosis.unschedulable_plugins == {"A", "B"}
        assert error.diagnosis.node_to_status.get("a").code is Code.UNSCHEDULABLE
        assert error.diagnosis.node_to_status.get("b").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    def test_a_framework_with_another_snapshot_is_refused(self) -> None:
        bench = Bench(plugin("A", filter=answering(None)), nodes=nodes("a"))
        other = make_framework(plugin("A", filter=answering(None)))
        with pytest.raises(
            SnapshotMismatchError, match="'default-scheduler': its framework has another snapshot"
        ):
            bench.scheduler.schedule(other, CycleState(), POD)

    def test_plugins_that_wait_for_the_outside_are_noted_twice(self) -> None:
        bench = Bench(plugin("A", filter=answering(Status.pending("soon"))), nodes=nodes("a"))
        diagnosis = fit_error(bench).diagnosis
        assert (diagnosis.pending_plugins, diagnosis.unschedulable_plugins) == ({"A"}, {"A"})

    def test_a_single_feasible_node_is_taken_without_scoring(self) -> None:
        bench = Bench(
            refusing("A", "a", "c"),
            plugin(
                "B",
                pre_score=answering(AssertionError("was asked")),
                score=answering(AssertionError("was asked")),
            ),
            nodes=nodes("a", "b", "c"),
        )
        assert bench.schedule(POD) == ScheduleResult("b", evaluated_nodes=3, feasible_nodes=1)

    @pytest.mark.parametrize(
        ("hooks", "text"),
        [
            ({"filter": answering(ValueError("no disk"))}, 'running "A" filter plugin: ValueError: no disk'),
            (
                {"pre_filter": answering(ValueError("no disk"))},
                'running PreFilter plugin "A": ValueError: no disk',
            ),
            (
                {"pre_score": answering(ValueError("no disk")), "score": answering(1)},
                'running PreScore plugin "A": ValueError: no disk',
            ),
            (
                {"score": answering(ValueError("no disk"))},
                'running Score plugins: plugin "A" failed with: ValueError: no disk',
            ),
        ],
    )
    def test_a_plugin_that_fails_ends_the_attempt_with_its_name_and_its_exception(
        self, hooks: dict[str, object], text: str
    ) -> None:
        bench = Bench(plugin("A", **hooks), nodes=nodes("a", "b"))
        with pytest.raises(SchedulingError) as caught:
            bench.schedule(POD)
        assert str(caught.value) == text
        assert caught.value.status.plugin == "A"
        assert caught.value.status.code is Code.ERROR
        assert caught.value.__cause__ is caught.value.status.error

    def test_an_error_wins_over_refusals(self) -> None:
        failing = plugin("B", filter=lambda node_info: 1 / 0 if node_info.name == "c" else None)
        bench = Bench(refusing("A", "a"), failing, nodes=nodes("a", "b", "c"))
        with pytest.raises(SchedulingError, match="division by zero"):
            bench.schedule(POD)


class TestPreFilter:
    def test_a_rejection_is_every_nodes_and_no_filter_is_asked(self) -> None:
        bench = Bench(
            plugin(
                "A",
                pre_filter=answering(Status.unresolvable("no claim", "no class")),
                filter=answering(AssertionError("was asked")),
            ),
            nodes=nodes("a", "b"),
        )
        error = fit_error(bench)
        assert str(error) == "0/2 nodes are available: no claim, no class."
        assert error.diagnosis.pre_filter_message == "no claim, no class"
        assert error.diagnosis.unschedulable_plugins == {"A"}
        for node in ("a", "b"):
            assert error.diagnosis.node_to_status.get(node) == (
                Status.unresolvable("no claim", "no class").with_plugin("A")
            )

    def test_only_the_nodes_that_are_left_are_asked_in_snapshot_order(self) -> None:
        asked: list[str] = []
        bench = Bench(
            plugin("A", pre_filter=answering(PreFilterResult.of(["d", "b", "unknown"]))),
            plugin("B", filter=lambda node_info: asked.append(node_info.name)),
            SCORES_NOTHING,
            nodes=nodes("a", "b", "c", "d"),
        )
        result = bench.schedule(POD)
        assert asked == ["b", "d"]
        assert (result.evaluated_nodes, result.feasible_nodes) == (2, 2)

    def test_the_others_count_as_unresolvable_on_behalf_of_those_that_narrowed(self) -> None:
        bench = Bench(
            plugin("B", pre_filter=answering(PreFilterResult.of(["a", "b"]))),
            plugin("A", pre_filter=answering(PreFilterResult.of(["a", "c"]))),
            refusing("C", "a", reason="Insufficient cpu"),
            nodes=nodes("a", "b", "c"),
        )
        error = fit_error(bench)
        assert str(error) == (
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [A B]."
        )
        assert error.diagnosis.unschedulable_plugins == {"A", "B", "C"}
        assert error.diagnosis.node_to_status.get("b").code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    def test_only_unknown_nodes_are_no_nodes(self) -> None:
        bench = Bench(
            plugin("A", pre_filter=answering(PreFilterResult.of(["gone"])), filter=answering(None)),
            nodes=nodes("a"),
        )
        assert str(fit_error(bench)) == ("0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [A].")

    def test_plugins_that_leave_no_node_together_are_named(self) -> None:
        bench = Bench(
            plugin("A", pre_filter=answering(PreFilterResult.of(["a"]))),
            plugin("B", pre_filter=answering(PreFilterResult.of(["b"]))),
            nodes=nodes("a", "b"),
        )
        error = fit_error(bench)
        assert str(error) == "0/2 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."
        assert error.diagnosis.unschedulable_plugins == {"A", "B"}


class TestNominatedNode:
    INCOMING = make_pod("incoming").nominated_node("b").build()

    def test_it_is_tried_first_and_taken_if_it_does(self) -> None:
        asked: list[str] = []
        bench = Bench(
            plugin("A", filter=lambda node_info: asked.append(node_info.name)),
            rating("B", a=100),
            nodes=nodes("a", "b", "c"),
        )
        assert bench.schedule(self.INCOMING) == ScheduleResult("b", evaluated_nodes=1, feasible_nodes=1)
        assert asked == ["b"]

    def test_otherwise_all_are_tried(self) -> None:
        bench = Bench(refusing("A", "b"), rating("B", a=100), nodes=nodes("a", "b", "c"))
        assert bench.schedule(self.INCOMING) == ScheduleResult("a", evaluated_nodes=3, feasible_nodes=2)

    def test_also_if_it_is_gone(self) -> None:
        bench = Bench(plugin("A", filter=answering(None)), rating("B", a=1), nodes=nodes("a", "c"))
        assert bench.schedule(self.INCOMING).suggested_host == "a"

    def test_an_error_there_is_passed_over(self) -> None:
        times: Counter[str] = Counter()

        def fail_once(node_info: NodeInfo) -> None:
            times[node_info.name] += 1
            if node_info.name == "b" and times["b"] == 1:
                raise ValueError("not ready")

        bench = Bench(plugin("A", filter=fail_once), rating("B", b=1), nodes=nodes("a", "b"))
        assert bench.schedule(self.INCOMING).suggested_host == "b"
        assert times == {"a": 1, "b": 2}

    def test_it_does_not_move_the_start_of_the_next_search(self) -> None:
        bench = Bench(plugin("A", filter=answering(None)), nodes=nodes("a", "b", "c"))
        bench.schedule(self.INCOMING)
        assert bench.schedule(POD).suggested_host == "a"

    def test_a_room_that_another_pod_is_nominated_to_is_not_given_away(self) -> None:
        nominator = Nominator()
        nominator.add(PodInfo.of(pod("preemptor", priority=10)), "a")
        one_pod = plugin(
            "A", filter=lambda node_info: Status.unschedulable("Too many pods") if node_info.pods else None
        )
        bench = Bench(one_pod, nodes=nodes("a", "b"), nominator=nominator)
        assert bench.schedule(pod("low", priority=1)).suggested_host == "b"
        assert bench.schedule(pod("high", priority=11)).suggested_host == "a"


class TestScoring:
    def totals(self, bench: Bench) -> list[int]:
        bench.cache.update_snapshot(bench.framework.handle.snapshot)
        infos = bench.framework.handle.snapshot.node_infos
        totals = bench.scheduler.prioritize_nodes(bench.framework, CycleState(), POD, infos).values
        assert totals.dtype == "int64"
        return list(totals)

    def test_where_nothing_scores_all_nodes_have_one(self) -> None:
        assert self.totals(Bench(plugin("A", filter=answering(None)), nodes=nodes("a", "b"))) == [1, 1]

    def test_where_all_score_plugins_skip_all_have_zero(self) -> None:
        skipping = plugin("A", pre_score=answering(Status.skip()), score=answering(7))
        assert self.totals(Bench(skipping, nodes=nodes("a", "b"))) == [0, 0]

    def test_each_plugins_share_can_be_had(self) -> None:
        bench = Bench(rating("A", a=10), rating("B", b=3), nodes=nodes("a", "b"))
        bench.cache.update_snapshot(bench.framework.handle.snapshot)
        infos = bench.framework.handle.snapshot.node_infos
        scores = bench.scheduler.score_nodes(bench.framework, CycleState(), POD, infos)
        assert {name: each.weighted.tolist() for name, each in scores.by_plugin.items()} == {
            "A": [10, 0],
            "B": [0, 3],
        }

    def test_ties_are_broken_by_the_seed_alone(self) -> None:
        def hosts(seed: int) -> list[str]:
            bench = Bench(SCORES_NOTHING, nodes=POOL[:20], seed=seed)
            return [bench.schedule(POD).suggested_host for _ in range(30)]

        assert hosts(1) == hosts(1)
        assert hosts(1) != hosts(2)
        assert len(set(hosts(1))) > 10


class TestNumFeasibleNodesToFind:
    @pytest.mark.parametrize(
        ("percentage", "all_nodes", "expected"),
        [
            (0, 10, 10),
            (40, 10, 10),
            (0, 1000, 420),
            (40, 1000, 400),
            (0, 6000, 300),
            (40, 6000, 2400),
            (100, 6000, 6000),
            (0, 5000, 500),
            (0, 100_000, 5000),
            (1, 100, 100),
            (1, 99, 99),
            (70, 150, 105),
        ],
    )
    def test_its_values_are_kube_schedulers(self, percentage: int, all_nodes: int, expected: int) -> None:
        assert num_feasible_nodes_to_find(percentage, all_nodes) == expected

    @given(st.integers(0, 100), st.integers(0, 200_000))
    def test_it_is_all_nodes_or_at_least_a_hundred(self, percentage: int, all_nodes: int) -> None:
        wanted = num_feasible_nodes_to_find(percentage, all_nodes)
        assert min(100, all_nodes) <= wanted <= all_nodes
        if all_nodes >= 2000 and percentage != 0:
            assert wanted == max(100, all_nodes * percentage // 100)

    @given(st.integers(1, 99), st.integers(0, 200_000))
    def test_a_higher_percentage_never_finds_fewer(self, percentage: int, all_nodes: int) -> None:
        assert num_feasible_nodes_to_find(percentage, all_nodes) <= num_feasible_nodes_to_find(
            percentage + 1, all_nodes
        )


class TestSampling:
    def feasible(self, bench: Bench) -> int:
        return bench.schedule(POD).feasible_nodes

    @pytest.mark.parametrize(
        ("scheduler_wide", "own", "feasible"),
        [(100, None, 300), (50, None, 150), (100, 40, 120), (40, 100, 300), (0, None, 144), (100, 0, 144)],
    )
    def test_a_profiles_percentage_wins_over_the_schedulers(
        self, scheduler_wide: int, own: int | None, feasible: int
    ) -> None:
        profile = Profile(["Even", "All"], percentage_of_nodes_to_score=own)
        bench = Bench(
            SCORES_NOTHING,
            plugin("All", filter=answering(None)),
            nodes=POOL,
            profile=profile,
            percentage=scheduler_wide,
        )
        assert self.feasible(bench) == feasible

    def test_without_filters_it_is_the_same(self) -> None:
        assert self.feasible(Bench(SCORES_NOTHING, nodes=POOL, percentage=50)) == 150

    def test_if_nothing_scores_the_first_feasible_node_will_do(self) -> None:
        for plugins in ([plugin("All", filter=answering(None))], []):
            bench = Bench(*plugins, nodes=POOL, percentage=100)
            assert [bench.schedule(POD).suggested_host for _ in range(3)] == ["n0", "n1", "n2"]

    def test_the_next_search_begins_where_the_last_one_ended(self) -> None:
        bench = Bench(SCORES_NOTHING, plugin("All", filter=answering(None)), nodes=POOL, percentage=50)
        bench.cache.update_snapshot(bench.framework.handle.snapshot)
        starts = []
        for _ in range(3):
            infos, _ = bench.scheduler.find_nodes_that_fit_pod(bench.framework, CycleState(), POD)
            starts.append((infos[0].name, infos[-1].name))
        assert starts == [("n0", "n149"), ("n150", "n299"), ("n0", "n149")]

    def test_an_error_moves_the_start_on_by_what_was_looked_at(self) -> None:
        broken = ["n7"]

        def fail_once(node_info: NodeInfo) -> None:
            if node_info.name in broken:
                broken.clear()
                raise ValueError(node_info.name)

        failing = plugin("A", filter=fail_once)
        bench = Bench(failing, SCORES_NOTHING, refusing("B", "n2"), nodes=POOL, percentage=50)
        with pytest.raises(SchedulingError):
            bench.schedule(POD)
        infos, _ = bench.scheduler.find_nodes_that_fit_pod(bench.framework, CycleState(), POD)
        assert infos[0].name == "n7"


def random_verdicts(random: Random, size: int, refused: float, failed: float) -> list[str]:
    """An answer per node; drawn here, since lists this long are beyond what hypothesis can vary one by one."""
    verdicts = random.choices(["pass", "refuse"], [1 - refused, refused], k=size)
    for index in range(size):
        if random.random() < failed:
            verdicts[index] = "fail"
        elif verdicts[index] == "refuse":
            verdicts[index] = random.choice(["refuse", "unresolvable", "pending"])
    return verdicts


class Oracle:
    """kube-scheduler's search as a plain loop."""

    def __init__(self, size: int, wanted: int) -> None:
        self.size, self.wanted, self.start = size, wanted, 0

    def search(self, verdicts: Sequence[str]) -> tuple[list[str], dict[str, str], str | None]:
        feasible: list[str] = []
        refused: dict[str, str] = {}
        failed = None
        for step in range(self.size):
            index = (self.start + step) % self.size
            if verdicts[index] == "fail":
                failed = f"n{index}"
                break
            if verdicts[index] != "pass":
                refused[f"n{index}"] = verdicts[index]
            elif len(feasible) == self.wanted:
                break
            else:
                feasible.append(f"n{index}")
        self.start = (self.start + len(feasible) + len(refused)) % self.size
        return feasible, refused, failed


STATUSES = {
    "pass": Status.success(),
    "refuse": Status.unschedulable("refused"),
    "unresolvable": Status.unresolvable("unresolvable"),
    "pending": Status.pending("pending"),
}


class TestSearch:
    @settings(max_examples=examples(25))
    @given(
        size=st.integers(1, 20) | st.integers(95, 300),
        percentage=st.integers(0, 100),
        refused=st.sampled_from([0, 0.1, 0.5, 0.9, 1]),
        failed=st.sampled_from([0, 0.003, 0.1]),
        seed=st.integers(0, 1 << 32),
    )
    def test_searches_one_after_the_other_are_those_of_a_plain_loop_whatever_the_parallelism(
        self, size: int, percentage: int, refused: float, failed: float, seed: int
    ) -> None:
        random = Random(seed)
        rounds = [random_verdicts(random, size, refused, failed) for _ in range(4)]
        wanted = num_feasible_nodes_to_find(percentage, size)
        oracle = Oracle(size, wanted)
        expected = [oracle.search(verdicts) for verdicts in rounds]
        outcomes: list[list[object]] = []
        for parallelism in (1, 2, 16):
            current: list[str] = []

            def verdict(node_info: NodeInfo, current: list[str] = current) -> Status:
                answer = current[int(node_info.name[1:])]
                if answer == "fail":
                    raise ValueError(node_info.name)
                return STATUSES[answer]

            def score(node_info: NodeInfo) -> int:
                return int(node_info.name[1:]) % 5

            bench = Bench(
                plugin("A", filter=verdict, score=score),
                nodes=POOL[:size],
                percentage=percentage,
                parallelism=parallelism,
                seed=seed,
            )
            outcome: list[object] = []
            for verdicts, (feasible, refusals, failure) in zip(rounds, expected, strict=True):
                current[:] = verdicts
                result = attempt(bench)
                if failure is not None:
                    assert isinstance(result, SchedulingError)
                    assert str(result) == f'running "A" filter plugin: ValueError: {failure}'
                elif not feasible:
                    assert isinstance(result, FitError)
                    self.check_diagnosis(result.diagnosis, refusals)
                else:
                    assert isinstance(result, ScheduleResult)
                    assert result.feasible_nodes == len(feasible)
                    assert result.evaluated_nodes == len(feasible) + len(refusals)
                    assert result.suggested_host in feasible
                outcome.append(result if isinstance(result, ScheduleResult) else str(result))
            bench.framework.close()
            outcomes.append(outcome)
        assert outcomes[0] == outcomes[1] == outcomes[2]

    def check_diagnosis(self, diagnosis: Diagnosis, refused: dict[str, str]) -> None:
        assert dict(diagnosis.node_to_status) == {
            name: STATUSES[verdict].with_plugin("A") for name, verdict in refused.items()
        }
        assert diagnosis.pending_plugins == ({"A"} if "pending" in refused.values() else set())
        assert diagnosis.unschedulable_plugins == ({"A"} if refused else set())

    @settings(max_examples=examples(10))
    @given(
        seed=st.integers(0, 1000),
        scores=st.lists(st.integers(0, 3), min_size=120, max_size=120),
        refused=st.sets(st.integers(0, 119), max_size=119),
    )
    def test_a_sequence_of_decisions_does_not_depend_on_the_parallelism(
        self, seed: int, scores: list[int], refused: set[int]
    ) -> None:
        """Each decision is put into effect before the next, as a scheduler does."""

        def decide(parallelism: int) -> list[ScheduleResult]:
            bench = Bench(
                plugin(
                    "A",
                    filter=lambda node_info: (
                        Status.unschedulable("refused") if int(node_info.name[1:]) in refused else None
                    ),
                    score=lambda node_info: max(
                        0, 50 + scores[int(node_info.name[1:])] - len(node_info.pods)
                    ),
                ),
                nodes=POOL[:120],
                percentage=85,
                parallelism=parallelism,
                seed=seed,
            )
            results = []
            for number in range(12):
                incoming = pod(f"p{number}")
                results.append(bench.schedule(incoming))
                bench.cache.assume_pod(incoming.bound_to(results[-1].suggested_host))
            bench.framework.close()
            return results

        assert decide(1) == decide(2) == decide(16)


class TestObserver:
    def steps(self, bench: Bench, pod: Pod = POD) -> list[tuple[object, ...]]:
        """The steps of a decision, as an observer is told of them."""
        seen: list[tuple[object, ...]] = []

        class Observer:
            def node_candidates(self, nodes: NodeSelection, start: int, narrowing: frozenset[str]) -> None:
                seen.append(("candidates", names(nodes), start, narrowing))

            def node_hinted(self, hint: Hint) -> None:
                seen.append(("hinted", hint.node, hint.batch_of))

            def nodes_filtered(self, nodes: NodeSelection, wanted: int, outcome: FilterOutcome) -> None:
                seen.append(("filtered", names(nodes), wanted, names(outcome.feasible)))

            def nodes_found(self, feasible: NodeSelection, diagnosis: Diagnosis) -> None:
                seen.append(("found", names(feasible), dict(diagnosis.node_to_status)))

            def nodes_scored(self, nodes: Sequence[NodeInfo], totals: Totals) -> None:
                seen.append(("scored", names(nodes), totals.values.tolist()))

        try:
            bench.scheduler.schedule(bench.framework, CycleState(), pod, observer=Observer())
        except (FitError, SchedulingError) as error:
            seen.append((type(error),))
        return seen

    def test_it_is_called_at_each_step(self) -> None:
        refused = Status.unschedulable("node(s) were refused").with_plugin("A")
        bench = Bench(refusing("A", "a"), rating("B", c=7), nodes=nodes("a", "b", "c"))
        assert self.steps(bench) == [
            ("candidates", ["a", "b", "c"], 0, frozenset()),
            ("filtered", ["a", "b", "c"], 3, ["b", "c"]),
            ("found", ["b", "c"], {"a": refused}),
            ("scored", ["b", "c"], [0, 7]),
        ]

    def test_nodes_that_are_left_over_come_with_the_plugins_that_chose_them(self) -> None:
        narrow = plugin("A", pre_filter=answering(PreFilterResult.of(["b"])))
        assert self.steps(Bench(narrow, SCORES_NOTHING, nodes=nodes("a", "b")))[:2] == [
            ("candidates", ["b"], 0, frozenset({"A"})),
            ("filtered", ["b"], 1, ["b"]),
        ]

    def test_after_a_failure_nothing_more_is_told(self) -> None:
        bench = Bench(plugin("A", filter=answering(RuntimeError("broken"))), SCORES_NOTHING, nodes=nodes("a"))
        assert [step[0] for step in self.steps(bench)] == ["candidates", "filtered", SchedulingError]

    @given(st.lists(st.sampled_from(["observed", "plain", "trial"]), max_size=8), st.integers(0, 3))
    @settings(max_examples=examples(20))
    def test_neither_it_nor_a_trial_changes_what_is_decided(self, kinds: list[str], seed: int) -> None:
        """Of many equal nodes a part is searched each time, and one is drawn."""
        bench, other = (Bench(SCORES_NOTHING, nodes=POOL, seed=seed) for _ in range(2))
        for kind in kinds:
            if kind == "trial":
                with bench.scheduler.trial():
                    bench.schedule(POD)
                continue
            if kind == "observed":
                *_, (what, feasible, _) = self.steps(bench)
                assert what == "scored"
                assert isinstance(feasible, list)
            else:
                bench.schedule(POD)
            other.schedule(POD)
        assert bench.schedule(POD) == other.schedule(POD)
