"""All evaluations come to the same decisions, whatever plugins promise, answer and break, as the cluster changes."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from random import Random

import attrs
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kschedfw import (
    CycleState,
    Evaluation,
    Framework,
    InMemoryCluster,
    NodeInfo,
    NodeSelection,
    NodeTable,
    Parallelizer,
    Parts,
    Pod,
    PodInfo,
    PreFilterResult,
    Profile,
    Reads,
    Registry,
    Snapshot,
    Status,
    Verdicts,
    make_node,
    make_pod,
)
from kschedfw.framework.nodes.arrays import IntArray
from kschedfw.framework.nodes.column import UNKNOWN_SCORE
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.outcome import FilterOutcome
from kschedfw.framework.runtime.engine.errors import NotTogetherError
from kschedfw.framework.runtime.engine.plan import Plan
from kschedfw.framework.runtime.engine.together import Together
from kschedfw.testing import FakeClock
from kschedfw.testing.properties import examples
from tests.framework.support import PluginClass, plugin

pytestmark = pytest.mark.slow

KIND = "kind"
KINDS = 4


@pytest.fixture(autouse=True)
def errors_of_the_engine_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where a search of all nodes at once ends with an error of its own: to ask node by node would hide it."""
    find = Together.find

    def checked(
        self: Together, plan: Plan, state: CycleState, pod: Pod, nodes: NodeSelection, wanted: int
    ) -> FilterOutcome:
        try:
            return find(self, plan, state, pod, nodes, wanted)
        except NotTogetherError:
            raise
        except Exception as error:
            pytest.fail(f"{error!r}")  # no `Exception`, so that the framework doesn't catch it

    monkeypatch.setattr(Together, "find", checked)


def drawn(*what: object) -> int:
    """A number that depends on these things only, and looks random."""
    return zlib.crc32(repr(what).encode())


@attrs.frozen
class Character:
    """What a plugin promises, and how it behaves; what it answers is drawn from its seed and what it may read."""

    seed: int
    reads: Reads | None
    signs: bool
    filter_batch: bool
    score_batch: bool
    normalizes: bool
    breaks: bool
    """Whether it raises or answers nonsense for some nodes."""
    narrows: bool
    calm: bool
    """Whether it cares for little of what is on a node, and most nodes suit it: its answers mostly stay as they are."""
    repeats: bool
    """Whether equal verdicts are the same object."""

    @classmethod
    def any(cls, random: Random) -> Character:
        def likely(probability: float) -> bool:
            return random.random() < probability

        return cls(
            seed=random.randrange(1000),
            reads=random.choice([Reads.NODE, Reads.PODS, Reads.PODS, Reads.CLUSTER, None]),
            signs=likely(0.8),
            filter_batch=likely(0.6),
            score_batch=likely(0.6),
            normalizes=likely(0.5),
            breaks=likely(0.15),
            narrows=likely(0.15),
            calm=likely(0.5),
            repeats=likely(0.5),
        )


def kind_of(pod: Pod) -> int:
    return int(pod.labels[KIND])


def node_state(info: NodeInfo) -> object:
    return info.name, sorted(info.node.labels.items())


def pods_state(info: NodeInfo) -> object:
    return node_state(info), [each.pod.uid for each in info.pods]


def plugin_with(name: str, character: Character, snapshot: Snapshot) -> PluginClass:
    """A plugin of this character."""
    kept: dict[tuple[int, tuple[object, ...]], IntArray] = {}
    given: dict[object, Verdicts] = {}

    def seen(info: NodeInfo) -> object:
        match character.reads:
            case Reads.NODE:
                return node_state(info)
            case Reads.PODS:
                return (node_state(info), len(info.pods) // 2) if character.calm else pods_state(info)
        return pods_state(info), [pods_state(each) for each in snapshot.node_infos]

    def draw(what: str, pod: Pod, info: NodeInfo) -> int:
        return drawn(character.seed, what, kind_of(pod), seen(info))

    def says(what: str, pod: Pod, one_of: int) -> bool:
        return drawn(character.seed, what, kind_of(pod)) % one_of == 0

    def filter_(pod: Pod, node_info: NodeInfo) -> object:
        number = draw("filter", pod, node_info)
        if character.breaks and number % 19 == 0:
            if number % 2:
                raise ValueError(f"broke on {node_info.name}")
            return Status.from_error("can't say") if number % 3 else Status.wait(1, "later")
        match number % (24 if character.calm else 8):
            case 0:
                return Status.unschedulable(f"node(s) had {number % 3}")
            case 1:
                return Status.unresolvable(f"{node_info.name} had {number % 3}")
            case 2:
                return Status.pending("node(s) not yet", "node(s) soon")
        return None if number % 2 else Status.success()

    def filter_batch(pod: Pod, nodes: NodeTable, rows: IntArray) -> Verdicts | None:
        if says("leaves it to filter", pod, 5):
            return None
        statuses = [Status.success()]
        codes = []
        for row in rows.tolist():
            try:
                answer = filter_(pod, nodes.node_infos[row])
            except ValueError as error:
                answer = Status.from_error(error)
            codes.append(0 if answer is None else len(statuses))
            if isinstance(answer, Status):
                statuses.append(answer)
        array = np.array(codes, dtype=np.int16)
        verdicts = Verdicts(array, tuple(statuses))
        if character.repeats:
            return given.setdefault((tuple(codes), tuple(map(said, statuses))), verdicts)
        return verdicts

    def score(pod: Pod, node_info: NodeInfo) -> object:
        number = draw("score", pod, node_info)
        if character.breaks and number % 19 == 0:
            raise ValueError("no score")
        if character.breaks and number % 19 == 1:
            return 101
        if character.normalizes:
            return UNKNOWN_SCORE if number % 11 == 0 else number % 2001 - 1000
        return number % 101

    def score_batch(pod: Pod, nodes: NodeTable, rows: IntArray) -> object:
        if says("leaves it to score", pod, 5):
            return None
        scores: list[object] = [score(pod, nodes.node_infos[row]) for row in rows.tolist()]
        answer = kept.setdefault((kind_of(pod), tuple(scores)), np.array(scores, dtype=np.int64))
        return answer  # the same array each time

    def normalize_score(pod: Pod, scores: IntArray) -> IntArray | None:
        if says("normalises badly", pod, 3) and character.breaks:
            raise ValueError("can't normalise")
        floats = scores.astype(float)
        span = max(float(floats.max() - floats.min()), 1.0)
        within: IntArray = ((floats - floats.min()) / span * 100).astype(np.int64)
        if says("normalises in place", pod, 2):
            scores[:] = within
            return None
        return within

    def pre_filter(pod: Pod) -> PreFilterResult | Status | None:
        if says("skips filter", pod, 6):
            return Status.skip()
        if character.narrows and says("narrows", pod, 2):
            return PreFilterResult.of(
                info.name for info in snapshot.node_infos if draw("leaves", pod, info) % 4
            )
        return None

    def pre_filter_add_pod(pod: Pod, node_info: NodeInfo) -> Status | None:
        breaks = character.breaks and draw("adds", pod, node_info) % 3 == 0
        return Status.from_error("can't add") if breaks else None

    def sign(pod: Pod) -> Hashable | None:
        if character.breaks and says("can't sign", pod, 7):
            raise RuntimeError("no pen")
        return None if says("doesn't sign", pod, 6) else kind_of(pod)

    hooks: dict[str, object] = {
        "pre_filter": pre_filter,
        "pre_filter_add_pod": pre_filter_add_pod,
        "filter": filter_,
        "pre_score": lambda pod: Status.skip() if says("skips score", pod, 6) else None,
        "score": score,
    }
    optional = {
        "filter_batch": (character.filter_batch, filter_batch),
        "score_batch": (character.score_batch, score_batch),
        "normalize_score": (character.normalizes, normalize_score),
    }
    hooks |= {hook: function for hook, (has_it, function) in optional.items() if has_it}
    made = plugin(name, **hooks)
    made.reads = character.reads
    if character.signs:
        made.sign = lambda self, pod: sign(pod)  # type: ignore[misc, method-assign]
    return made


class World:
    """Nodes and pods that change at random; the snapshot follows as a cache would bring it along."""

    def __init__(self, random: Random, *, calm: bool = False) -> None:
        """With `calm`, mostly a pod is placed or gone, and pods are much alike."""
        self.random = random
        self.calm = calm
        self.infos: dict[str, NodeInfo] = {}
        self.nominator = Nominator()
        self._made = 0
        self._names = [f"n{number}" for number in range(random.choice([20, 20, 60]))]
        for _ in range(random.randint(1, len(self._names) * 2 // 3)):
            self._add_node()
        self.snapshot = Snapshot(self.infos.values())

    def pod(self) -> Pod:
        self._made += 1
        labels = {KIND: str(self.random.randrange(2 if self.calm else KINDS))}
        return (
            make_pod(f"p{self._made}")
            .uid(f"p{self._made}")
            .labels(labels)
            .priority(self.random.randrange(3))
            .build()
        )

    def change(self) -> None:
        """Any number of changes, then one update or replacement of the snapshot."""
        if self.calm and self.infos and self.random.random() < 0.8:
            self._change_pods()
            self._update()
            return
        order = list(self.infos)
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 8])):
            match self.random.choice(["pods"] * 5 + ["label"] * 2 + ["add", "remove", "again", "nominate"]):
                case "pods" if self.infos:
                    self._change_pods()
                case "label" if self.infos:
                    self._relabel()
                case "add":
                    self._add_node()
                case "remove" if len(self.infos) > 1:
                    del self.infos[self._any_node()]
                case "again" if self.infos:  # gone and back in the same state, in another place
                    name = self._any_node()
                    self.infos[name] = self.infos.pop(name).clone()
                case "nominate":
                    self._nominate()
        if self.random.random() < 0.05:
            names = list(self.infos)
            self.random.shuffle(names)
            self.infos = {name: self.infos[name] for name in names}
        if list(self.infos) == order and self.random.random() < 0.9:
            self._update()
        else:
            self.snapshot.replace(self.infos.values())

    def _update(self) -> None:
        self.snapshot.update(
            [info for info in self.infos.values() if info is not self.snapshot.get(info.name)]
        )

    def _any_node(self) -> str:
        return self.random.choice(list(self.infos))

    def _add_node(self) -> None:
        name = self.random.choice(self._names)
        if name not in self.infos:
            self.infos[name] = NodeInfo.of(make_node(name).build())

    def _change_pods(self) -> None:
        name = self._any_node()
        info = self.infos[name] = self.infos[name].clone()
        if info.pods and self.random.random() < 0.5:
            info.remove_pod(self.random.choice(info.pods).pod)
        else:
            info.add_pod(PodInfo.of(self.pod()))

    def _relabel(self) -> None:
        name = self._any_node()
        info = self.infos[name] = self.infos[name].clone()
        info.set_node(make_node(name).labels(colour=self.random.choice("rgb")).build())

    def _nominate(self) -> None:
        for info in self.nominator.nominated_pods():
            self.nominator.delete(info.pod)
        for _ in range(self.random.randint(0, 3)):
            name = self.random.choice(self._names)
            for _ in range(self.random.randint(1, 2)):
                self.nominator.add(PodInfo.of(self.pod()), name)


def framework_of(
    world: World, characters: Sequence[Character], evaluation: Evaluation, parallelism: int
) -> Framework:
    registry = Registry(entry_points=False)
    names = [f"P{index}" for index in range(len(characters))]
    for name, character in zip(names, characters, strict=True):
        registry.register(plugin_with(name, character, world.snapshot))
    return Framework(
        registry,
        Profile(names),
        Parts(
            InMemoryCluster(),
            snapshot=world.snapshot,
            nominator=world.nominator,
            clock=FakeClock(),
            random=Random(0),
            parallelizer=Parallelizer(parallelism),
        ),
        evaluation=evaluation,
    )


def said(status: Status | None) -> object:
    return None if status is None else (status.code, status.reasons, status.plugin)


@attrs.frozen
class Question:
    """One cycle's question, the same for all frameworks: how much of the table, from where on, and how many nodes."""

    pod: Pod
    start: int
    most: int | None
    """Only so many nodes are candidates."""
    wanted: int | None

    @classmethod
    def any(cls, world: World) -> Question:
        random, count = world.random, len(world.snapshot)
        if world.calm and random.random() < 0.9:
            return cls(world.pod(), 0, None, None)
        return cls(
            world.pod(),
            random.choice([0, random.randrange(count)]),
            random.choice([None, None, random.randint(0, count)]),
            random.choice([None, random.randint(0, count)]),
        )

    def put_to(self, framework: Framework) -> list[object]:
        """All that the framework answers, in comparable form."""
        table, state = framework.handle.snapshot.table, CycleState()
        result, status, narrowing = framework.run_pre_filter_plugins(state, self.pod)
        answers: list[object] = [result, said(status), narrowing]
        if not status.is_success:
            return answers
        nodes = NodeSelection.whole(table, self.start)
        if self.most is not None:
            nodes = nodes[: self.most]
        if result is not None:
            rows = [row for row in nodes.rows.tolist() if table.names[row] in result.node_names]
            nodes = NodeSelection(table, np.array(rows, dtype=np.int64))
        found = framework.filter_nodes(state, self.pod, nodes, self.wanted)
        answers += [list(found.feasible.names), list(found.refused), said(found.error), found.processed]
        status = framework.run_pre_score_plugins(state, self.pod, found.feasible)
        answers += [said(status), state.skip_score_plugins]
        if not status.is_success:
            return answers
        totals, status = framework.total_scores(state, self.pod, found.feasible)
        answers += [None if totals is None else (totals.values.tolist(), totals.best.tolist()), said(status)]
        scores, status = framework.run_score_plugins(state, self.pod, list(found.feasible))
        answers.append(said(status))
        if scores is not None:
            answers += [
                (name, each.weight, each.raw.tolist(), each.normalized.tolist())
                for name, each in scores.by_plugin.items()
            ]
            assert totals is not None
            assert scores.totals.tolist() == totals.values.tolist()
        return answers


@settings(max_examples=examples(120))
@given(st.integers(0, 2**32 - 1))
@example(529148217)  # nominated pods leave no room, and some of the nodes are looked at
@example(
    1749693217
)  # of two filters without batch form, the second one refuses a node because of a nominated pod
def test_every_evaluation_answers_as_the_scalar_one_through_a_whole_history(seed: int) -> None:
    random = Random(seed)
    calm = random.random() < 0.4
    world = World(random, calm=calm)
    characters = [Character.any(random) for _ in range(random.randint(1, 5))]
    if calm:  # as in most real clusters, nearly all can be kept
        local = [Reads.NODE, Reads.PODS]
        characters = [
            attrs.evolve(each, reads=random.choice(local), signs=True, breaks=False, narrows=False, calm=True)
            for each in characters[:3]
        ]
    parallelism = random.choice([1] * 9 + [3])
    scalar, memo, seldom = (
        framework_of(world, characters, evaluation, parallelism)
        for evaluation in (Evaluation.SCALAR, Evaluation.MEMO, Evaluation.MEMO)
    )
    try:
        for cycle in range(24 if calm else 12):
            question = Question.any(world)
            expected = question.put_to(scalar)
            assert question.put_to(memo) == expected
            if cycle % 3 == 0:
                assert question.put_to(seldom) == expected
            world.change()
    finally:
        for framework in (scalar, memo, seldom):
            framework.close()
