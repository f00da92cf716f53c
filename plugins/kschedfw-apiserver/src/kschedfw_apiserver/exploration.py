"""Explores every interleaving of a small world, by replaying it: an explicit-state model check of the real code."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Final, Protocol, TypeVar

import attrs

Action = TypeVar("Action")

_MOST_STATES: Final = 200_000


class ExploredWorld(Protocol[Action]):
    """A system to explore. A world is made anew for each path, and does the same whenever it is told the same."""

    def actions(self) -> Iterable[Action]:
        """Return the actions that may happen next."""
        ...

    def do(self, action: Action) -> None: ...

    def fingerprint(self) -> Hashable:
        """The same for states that can't be told apart from here on."""
        ...

    def check(self) -> None:
        """Raise an AssertionError where a property that always holds doesn't."""
        ...

    def is_done(self) -> bool:
        """Return whether everything is reached that had to be reached."""
        ...


@attrs.frozen
class Exploration:
    """Counts of an exploration."""

    states: int
    steps: int
    done: int
    """States in which everything was reached."""


def explore(
    make: Callable[[], ExploredWorld[Action]],
) -> Exploration:
    """Visit every reachable state once.

    Raises:
        AssertionError: a property doesn't hold, with the actions that lead there; or there is a state from which
            nothing leads to one that is done; or there are more states than the limit.
    """
    first = make()
    first.check()
    paths: dict[Hashable, tuple[Action, ...]] = {first.fingerprint(): ()}
    came_from: dict[Hashable, set[Hashable]] = {}
    done: set[Hashable] = {first.fingerprint()} if first.is_done() else set()
    to_visit = deque(paths)
    steps = 0
    while to_visit:
        state = to_visit.popleft()
        path = paths[state]
        for action in tuple(_replayed(make, path).actions()):
            world = _replayed(make, path)
            steps += 1
            try:
                world.do(action)
                world.check()
            except AssertionError as error:
                raise AssertionError(f"after {[*path, action]}: {error}") from error
            reached = world.fingerprint()
            came_from.setdefault(reached, set()).add(state)
            if reached not in paths:
                assert len(paths) < _MOST_STATES, f"more than {_MOST_STATES} states"
                paths[reached] = (*path, action)
                to_visit.append(reached)
                if world.is_done():
                    done.add(reached)
    stuck = paths.keys() - _leading_to(done, came_from)
    if stuck:
        shortest = min((paths[state] for state in stuck), key=len)
        raise AssertionError(f"no progress: nothing leads to the end after {[*shortest]}")
    return Exploration(len(paths), steps, len(done))


def _replayed(make: Callable[[], ExploredWorld[Action]], path: Iterable[Action]) -> ExploredWorld[Action]:
    world = make()
    for action in path:
        world.do(action)
    return world


def _leading_to(goals: set[Hashable], came_from: dict[Hashable, set[Hashable]]) -> set[Hashable]:
    leading, to_visit = set(goals), list(goals)
    while to_visit:
        for before in came_from.get(to_visit.pop(), ()):
            if before not in leading:
                leading.add(before)
                to_visit.append(before)
    return leading
