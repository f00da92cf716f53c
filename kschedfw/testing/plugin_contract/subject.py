"""The plugin under test, as its author describes it, and the running of checks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeVar

import attrs

from kschedfw.api import KschedfwError, Named, Node, Pod
from kschedfw.api.objects import to_manifest
from kschedfw.cluster import InMemoryCluster
from kschedfw.framework.clock import Clock, SystemClock
from kschedfw.framework.nodes.snapshot import Snapshot
from kschedfw.framework.nominator import Nominator
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.parts import Parts
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.profile import Profile
from kschedfw.framework.runtime.calls import Evaluation
from kschedfw.framework.runtime.framework import Framework
from kschedfw.framework.runtime.registry import Registry
from kschedfw.testing.plugin_contract.world import World

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


class ContractViolation(AssertionError):
    """The error of a plugin that violates the contract; says what is wrong, and how to correct it."""

    def __init__(self, wrong: str, remedy: str) -> None:
        super().__init__(f"{wrong}\n  → {remedy}")
        self.wrong = wrong
        self.remedy = remedy


def violated(wrong: str, remedy: str, cause: BaseException | None = None) -> NoReturn:
    __tracebackhide__ = True
    raise ContractViolation(wrong, remedy) from cause


CheckT = TypeVar("CheckT", bound=Callable[..., None])

_CONCERNS = "_kschedfw_concerns"


def concerns(*hooks: str) -> Callable[[CheckT], CheckT]:
    """Limit a check to plugins with at least one of these hooks."""

    def mark(check: CheckT) -> CheckT:
        setattr(check, _CONCERNS, hooks)
        return check

    return mark


class Subject:
    """The plugin under test. Authors set the attributes, and override `pods` and `nodes` if necessary."""

    plugin: ClassVar[type[AnyPlugin] | str]
    """The plugin's class, or the name under which it is installed."""
    args: ClassVar[object] = None
    """The plugin's arguments, as in a profile: an `args_type`, or a mapping with camelCase keys."""
    objects: ClassVar[Sequence[Named]] = ()
    """Objects in the cluster other than nodes and pods."""
    other_plugins: ClassVar[Sequence[type[AnyPlugin] | str]] = ()
    """Other plugins of the profile, if the plugin calls them (preemption, for example)."""
    max_examples: ClassVar[int] = 15
    """The number of generated clusters for each check."""
    start_time: ClassVar[datetime] = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    """The time at which the clock of a check begins; with a time zone. Checks move it by up to two days."""

    def pods(self) -> SearchStrategy[Pod]:
        """Return the strategy of pods, both pending and bound; names, uids and nodes are replaced."""
        from kschedfw.testing import strategies

        return strategies.pods("pod")

    def nodes(self) -> SearchStrategy[Node]:
        """Return the strategy of nodes; their names are replaced, also in labels that have the name."""
        from kschedfw.testing import strategies

        return strategies.nodes("node")

    def __init_subclass__(cls) -> None:
        """Remove the tests of hooks that the plugin doesn't have."""
        super().__init_subclass__()
        if not hasattr(cls, "plugin"):
            return
        plugin = Registry().load(cls.plugin) if isinstance(cls.plugin, str) else cls.plugin
        for name, check in _checks(cls):
            if not any(hasattr(plugin, hook) for hook in getattr(check, _CONCERNS)):
                # An attribute that is None hides the test from pytest.
                setattr(cls, name, None)
            # A base class has removed the test for another plugin.
            elif getattr(cls, name) is None:
                setattr(cls, name, check)

    # For the checks

    @cached_property
    def _registry(self) -> Registry:
        registry = Registry()
        for plugin in (self.plugin, *self.other_plugins):
            if not isinstance(plugin, str):
                registry.register(plugin, replace=True)
        return registry

    @cached_property
    def _without_promises(self) -> Registry:
        """The same plugins, but this one promises nothing, so that its batch forms are asked about every pod."""
        plugin = self._registry.load(self._name)
        nothing: dict[str, object] = {"reads": None, "pure": False, "amounts_rule": None}
        # Hooks of its own, though they are its base's: then what they follow from isn't asked by domain.
        nothing |= {
            hook: vars(kind)[hook]
            for hook in ("filter", "score")
            for kind in reversed(plugin.__mro__)
            if hook in vars(kind)
        }
        registry = Registry()
        for each in self.other_plugins:
            if not isinstance(each, str):
                registry.register(each, replace=True)
        registry.register(
            type(plugin.__name__, (plugin,), {"__module__": plugin.__module__, **nothing}), replace=True
        )
        return registry

    @property
    def _refusal(self) -> KschedfwError | None:
        """Return the error of making a framework with the plugin and its arguments; None without an error.

        No check can run with such an error.
        """
        try:
            self._framework().close()
        except KschedfwError as error:
            return error
        return None

    def _must_be_accepted(self) -> None:
        if (error := self._refusal) is not None:
            violated(
                f"no framework can be made with it: {error}",
                "`plugin` and `args` of the contract are the class and the arguments that a profile gives",
                error,
            )

    @property
    def _name(self) -> str:
        return _name_of(self.plugin)

    def _profile(self, *more: str) -> Profile:
        """Return a profile of the plugin, the plugins that it needs, and these."""
        return Profile(
            [self._name, *map(_name_of, self.other_plugins), *more],
            args={} if self.args is None else {self._name: self.args},
        )

    def _framework(
        self,
        cluster: InMemoryCluster | None = None,
        snapshot: Snapshot | None = None,
        *,
        clock: Clock | None = None,
        nominator: Nominator | None = None,
        evaluation: Evaluation = Evaluation.SCALAR,
        registry: Registry | None = None,
    ) -> Framework:
        return Framework(
            self._registry if registry is None else registry,
            self._profile(),
            Parts(
                InMemoryCluster(self.objects) if cluster is None else cluster,
                snapshot=Snapshot() if snapshot is None else snapshot,
                clock=SystemClock() if clock is None else clock,
                nominator=Nominator() if nominator is None else nominator,
                parallelizer=Parallelizer(1),
            ),
            evaluation=evaluation,
        )

    def _in_worlds(self, check: Callable[[World], None]) -> None:
        """Run the check in generated worlds, which are always the same; a world in which it fails is shown."""
        for ingredients in self._ingredients():
            failure = _failure(check, ingredients)
            if failure is not None:
                # Not hypothesis' own shrinking, which takes minutes and seldom leads to a simpler world.
                simpler = (_failure(check, fewer) for fewer in ingredients.fewer())
                # Of the same type only: with fewer ingredients something else may go wrong.
                raise next((each for each in simpler if type(each) is type(failure)), failure)

    def _ingredients(self) -> Sequence[Ingredients]:
        """Return what the generated worlds are made of, which is always the same."""
        cls = type(self)
        any_will_do = cls.pods is Subject.pods and cls.nodes is Subject.nodes
        key = (Subject if any_will_do else cls), self.max_examples
        if key not in _DRAWN:
            _DRAWN[key] = self._drawn()
        return _DRAWN[key]

    def _drawn(self) -> Sequence[Ingredients]:
        # First, since its error says how to install hypothesis.
        import kschedfw.testing.strategies  # noqa: F401  # isort: skip
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import strategies as st

        few_nodes = st.lists(self.nodes(), min_size=3, max_size=3)
        few_pods = st.lists(self.pods(), min_size=3, max_size=3)
        drawn: list[Ingredients] = []

        @settings(
            max_examples=self.max_examples,
            deadline=None,
            # The same worlds in every run, with nothing kept on disk.
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.integers(0, 2**32 - 1), few_nodes, few_pods)
        def draw(seed: int, nodes: Sequence[Node], pods: Sequence[Pod]) -> None:
            drawn.append(Ingredients(seed, nodes, pods))

        draw()
        return drawn


@attrs.frozen
class Ingredients:
    """The nodes and pods that a world has copies of."""

    seed: int
    nodes: Sequence[Node]
    pods: Sequence[Pod]

    def world(self) -> World:
        return World(Random(self.seed), self.nodes, self.pods)

    def fewer(self) -> Iterator[Ingredients]:
        """Yield the same ingredients with only one of the nodes, and one of the pods."""
        for node, pod in itertools.product(self.nodes, self.pods):
            yield Ingredients(self.seed, [node], [pod])

    def __str__(self) -> str:
        """Return the manifests, without defaults."""
        lines = "".join(f"\n  {json.dumps(to_manifest(each))}" for each in (*self.nodes, *self.pods))
        return f"in a cluster whose nodes and pods are like these:{lines}"


_DRAWN: dict[tuple[type[Subject], int], Sequence[Ingredients]] = {}
"""Generated worlds, which checks share because generating takes longer than most checks."""


def _failure(check: Callable[[World], None], ingredients: Ingredients) -> Exception | None:
    try:
        # A world for this check alone, from the seed, since checks change it.
        check(ingredients.world())
    except Exception as error:
        error.add_note(str(ingredients))
        return error
    return None


def _name_of(plugin: type[AnyPlugin] | str) -> str:
    return plugin if isinstance(plugin, str) else plugin.name


def _checks(cls: type[Subject]) -> Iterator[tuple[str, Callable[..., None]]]:
    """Yield the checks that are limited to certain hooks, by name."""
    checks: dict[str, Callable[..., None]] = {}
    for base in cls.__mro__:
        for name, value in vars(base).items():
            if hasattr(value, _CONCERNS):
                checks.setdefault(name, value)
    yield from checks.items()
