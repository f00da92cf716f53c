"""Random steps of many schedulers on a shared state: `python -m cell.random_world STEPS [FIRST_SEED]`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import count
from random import Random

from cell.shared_world import Action, SharedWorld
from kschedfw_lab.cell.shared_state import CommitMode, Detection

from kschedfw import Node, Pod, make_pod
from kschedfw.framework.clock import SystemClock

STEPS = 2000
"""Steps of one world."""
_CHECKED_EVERY = 10
_PROGRESS = 100_000


class RandomWorld(SharedWorld):
    """A world in which pods come and go, schedulers crash, and some are cut off from the truth for a while."""

    def __init__(self, seed: int, *, checks: bool = True) -> None:
        self.random = random = Random(seed)
        super().__init__(
            schedulers=random.randint(2, 8),
            nodes=random.randint(1, 4),
            pods=random.randint(1, 12),
            slots=random.randint(1, 4),
            most_claims=random.randint(1, 4),
            detection=random.choice(list(Detection)),
            mode=random.choice(list(CommitMode)),
            checks=checks,
        )
        self.laziness = [random.random() for _ in self.actors]
        """How seldom each scheduler follows the truth."""
        self.cut_off: set[int] = set()
        self.made = len(self.uids)

    def step(self) -> None:
        """Do something at random."""
        random = self.random
        chance = random.random()
        if chance < 0.01:
            self.cut_off ^= {random.randrange(len(self.actors))}
        elif chance < 0.06:
            self._replace_a_pod()
        else:
            index = random.randrange(len(self.actors))
            if chance < 0.065:
                self.do(("crash", index, ()))
                self.cut_off.discard(index)
            elif (action := self._next(index)) is not None:
                self.do(action)

    def _next(self, index: int) -> Action | None:
        actor, random = self.actors[index], self.random
        if index in self.cut_off:
            return None if actor.decision else self._decision(index)
        if actor.copy.lag and random.random() > self.laziness[index]:
            return "sync", index, ()
        if actor.decision:
            return "commit", index, ()
        return self._decision(index) or ("sync", index, ()) if actor.copy.lag else self._decision(index)

    def _decision(self, index: int) -> Action | None:
        copy, random = self.actors[index].copy, self.random
        pods = copy.list(Pod)
        taken = Counter(pod.node_name for pod in pods if pod.node_name)
        pending = [pod.key for pod in pods if not pod.node_name]
        places = []
        for key in random.sample(pending, min(len(pending), random.randint(1, self.most_claims))):
            if free := [node.name for node in copy.list(Node) if taken[node.name] < self.slots]:
                name = random.choice(free)
                taken[name] += 1
                places.append((key, name))
        return ("decide", index, tuple(places)) if places else None

    def _replace_a_pod(self) -> None:
        self.time += 1
        gone = self.random.choice(self.truth.list(Pod))
        self.truth.delete(gone)
        self.uids.remove(gone.uid)
        self.bound.pop(gone.uid, None)
        self.uids.append(self.truth.add(make_pod(f"q{self.made}").build()).uid)
        self.made += 1

    def settle(self) -> None:
        """Let everybody work undisturbed until nothing is left to do; what fits is bound then."""
        self.cut_off.clear()
        for _ in range(2 * len(self.uids) + 2):
            for index, actor in enumerate(self.actors):
                actor.copy.resync()
                if not actor.decision and (action := self._decision(index)) is not None:
                    self.do(action)
                if actor.decision:
                    self.do(("commit", index, ()))


def run_world(seed: int, steps: int = STEPS, *, checks: bool = True) -> None:
    """Make so many random steps. Raises AssertionError where a property doesn't hold, with seed and step."""
    world = RandomWorld(seed, checks=checks)
    for step in range(steps):
        world.step()
        if step % _CHECKED_EVERY == 0:
            _check(world, seed, step)
    world.settle()
    _check(world, seed, steps)
    assert world.is_done(), f"seed {seed}: pods are left over although there is room"


def _check(world: RandomWorld, seed: int, step: int) -> None:
    try:
        world.check()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, step {step}: {error}") from error


def main(arguments: Sequence[str]) -> int:
    """Make arguments[0] steps, from seed arguments[1] (1) on."""
    wanted, first = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 1
    clock = SystemClock()
    began = clock.monotonic()
    steps = 0
    for seed in count(first):
        if steps >= wanted:
            break
        try:
            run_world(seed)
        except AssertionError as error:
            sys.stdout.write(f"FAILED: {error}\n")
            return 1
        steps += STEPS
        if steps % _PROGRESS == 0 or steps >= wanted:
            sys.stdout.write(f"{clock.monotonic() - began:.0f} s: {steps} steps, seeds {first}-{seed}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
