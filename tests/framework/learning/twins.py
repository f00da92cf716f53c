"""Two schedulers on equal clusters that change alike: one learns what pure hooks read, one asks about each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from unittest import mock

import attrs

from kschedfw import (
    CycleState,
    EnabledPlugin,
    Evaluation,
    FitError,
    FrozenDict,
    InMemoryCluster,
    Node,
    Pod,
    Profile,
    Registry,
    Scheduler,
    SchedulingError,
    default_profile,
)
from kschedfw.framework.learning.learned import LearnedHook
from kschedfw.testing import FakeClock
from tests.framework.learning.drawn_hooks import PureHooks
from tests.scheduler.churn.objects import Terrain, changed_node, random_kinds, random_node
from tests.scheduler.invariants.objects import APPS

_SMALL = attrs.evolve(
    default_profile(), multi_point=(EnabledPlugin("PrioritySort"), EnabledPlugin("NodeResourcesFit"))
)


class Side:
    """A scheduler on a cluster of its own."""

    def __init__(
        self, nodes: Sequence[Node], profile: Profile, registry: Registry, evaluation: Evaluation
    ) -> None:
        self.cluster = InMemoryCluster(nodes)
        self.scheduler = Scheduler(
            self.cluster,
            [profile],
            registry=registry,
            clock=FakeClock(),
            random=Random(1),
            percentage_of_nodes_to_score=100,
            evaluation=evaluation,
        )
        (self.framework,) = self.scheduler.frameworks.values()

    def decide(self, pod: Pod) -> tuple[str, object]:
        """Return the node, or nothing with all refusals or the error."""
        state = CycleState()
        try:
            return self.scheduler.algorithm.schedule(self.framework, state, pod).suggested_host, None
        except FitError as error:
            statuses = {name: repr(status) for name, status in error.diagnosis.node_to_status}
            return "", (str(error), statuses)
        except SchedulingError as error:
            return "", str(error)


class Twins:
    """The two schedulers, and the changes of their clusters. The same seed makes the same run."""

    def __init__(self, seed: int, drawn: Sequence[PureHooks], nodes: int = 8) -> None:
        self._random = random = Random(seed)
        self._terrain = Terrain(is_scarce=random.random() < 0.4, is_plain=random.random() < 0.7)
        self._names = [f"n{index}" for index in range(nodes)]
        there = [random_node(random, name, name, self._terrain) for name in self._names]
        # Few kinds of pods, so that most come again; some have a label of their own.
        self._kinds = [
            attrs.evolve(kind, spec=attrs.evolve(kind.spec, scheduler_name="default-scheduler"))
            for kind in random_kinds(random, ())
        ]
        profile = random.choice([default_profile(), _SMALL])
        names = [f"Drawn{index}" for index in range(len(drawn))]
        profile = attrs.evolve(
            profile, multi_point=(*profile.multi_point, *[EnabledPlugin(name) for name in names])
        )
        self.sides = []
        for pure, evaluation in (
            (True, Evaluation.MEMO),
            (False, Evaluation.SCALAR),
        ):
            registry = Registry()
            for name, each in zip(names, drawn, strict=True):
                registry.register(each.plugin(name, pure=pure))
            self.sides.append(Side(there, profile, registry, evaluation))
        self.counts: Counter[str] = Counter()
        self._count = 0

    def run(self, decisions: int) -> None:
        """Compare decisions, between which several things change.

        Learned answers are asked again much more often than in a scheduler: no plugin may be taken for one that isn't
        pure.
        """
        with (
            mock.patch("kschedfw.framework.learning.learned._ASKED_AGAIN", 5),
            mock.patch("kschedfw.framework.runtime.search_hooks._ASKED_AGAIN", 3),
        ):
            self._run(decisions)
        problems = [form.problem for form in self._forms()]
        assert not any(problem.startswith("it isn't pure") for problem in problems)

    def _run(self, decisions: int) -> None:
        random = self._random
        for _ in range(decisions):
            for _ in range(random.choice([0, 0, 1, 2])):
                self._change()
            pod = self._new_pod()
            learned, plain = [side.decide(pod) for side in self.sides]
            assert learned == plain, f"{pod}\nlearned: {learned}\nplain:   {plain}"
            self.counts["decisions"] += 1
            self.counts["placed"] += bool(learned[0])
            if learned[0]:
                bound = pod.bound_to(learned[0])
                self._on_both(lambda cluster, bound=bound: cluster.add(bound))

    def asked(self) -> tuple[int, int]:
        """Return how many batch answers were learned ones, and how often learning has paused."""
        forms = self._forms()
        return sum(len(form.of_node.places) for form in forms), sum(form.pauses for form in forms)

    def _forms(self) -> Sequence[LearnedHook]:
        return [form for each in self.sides[0].framework.learned.values() for form in each.forms.values()]

    def close(self) -> None:
        for side in self.sides:
            side.scheduler.close()

    def _new_pod(self) -> Pod:
        random, self._count = self._random, self._count + 1
        kind, name = random.choice(self._kinds), f"p{self._count}"
        labels = kind.labels
        if random.random() < 0.3:
            labels = FrozenDict(
                {**labels, random.choice(["own", "tier", "disk"]): random.choice(["ssd", "x", name])}
            )
        return kind.with_metadata(attrs.evolve(kind.metadata, name=name, uid=name, labels=labels))

    def _change(self) -> None:
        random, cluster = self._random, self.sides[0].cluster
        nodes, pods = cluster.list(Node), cluster.list(Pod)
        node = random.choice(nodes)
        match random.randrange(7):
            case 0 | 1:
                changed = changed_node(random, node, self._terrain)
                self._on_both(lambda each: each.update(changed))
            case 2:
                # Another node under the same name; its pods stay.
                self._count += 1
                other = random_node(random, node.name, f"{node.name}-{self._count}", self._terrain)
                self._on_both(lambda each: (each.delete(node), each.add(other)))
            case 3 if len(nodes) > 2:
                self._on_both(lambda each: each.delete(node))
            case 3:
                pass
            case 4 if pods:
                gone = random.choice(pods)
                self._on_both(lambda each: each.delete(gone))
            case 5 if pods:
                pod = random.choice(pods)
                labels = FrozenDict({**pod.labels, "app": random.choice(APPS)})
                relabelled = pod.with_metadata(attrs.evolve(pod.metadata, labels=labels, resource_version=""))
                self._on_both(lambda each: each.update(relabelled))
            case _:
                there = {each.name for each in nodes}
                missing = [name for name in self._names if name not in there]
                if missing:
                    new = random_node(random, random.choice(missing), "", self._terrain)
                    self._on_both(lambda each: each.add(new))

    def _on_both(self, change: object) -> None:
        for side in self.sides:
            change(side.cluster)  # type: ignore[operator]
