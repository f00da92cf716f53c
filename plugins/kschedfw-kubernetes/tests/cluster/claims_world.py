"""A small world of schedulers that claim places by records: an API server, and actors whose watches lag."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import permutations
from random import Random

import attrs
from kschedfw_apiserver.exploration import explore
from kschedfw_kubernetes.claims.claim_book import ClaimBook, ClaimConflictError
from kschedfw_kubernetes.claims.node_record import NodeRecord, PodClaim

Action = tuple[str, int, str, str]
"""What, by which actor, and about which pod and node."""
_FOR_EVER = 1e9
STEPS = 1000
"""Steps of a random world."""


@attrs.define
class Actor:
    """A scheduler: its book, how far it has followed the pods, and what it is about to do.

    `decided` are pods that it is about to claim a place for on one node, `claimed` are those that it is about to bind.
    """

    book: ClaimBook
    pods: int
    node: str = ""
    decided: tuple[str, ...] = ()
    claimed: tuple[tuple[str, str], ...] = ()


class ClaimsWorld:
    """Actors that place any pod on any node that seems free to them. A node has room for so many pods.

    Bindings are told in their order, records as they are at the moment of telling. What the argument assumes is built
    in: a binding takes effect while its claim stands, or never. An actor commits up to `batch` pods of a node at once,
    and again if its commit is refused. If it is `eager`, it decides on further pods before it has bound the ones that
    it has claimed.
    """

    def __init__(
        self,
        *,
        actors: int = 2,
        nodes: int = 2,
        pods: int = 3,
        slots: int = 1,
        crashes: int = 1,
        batch: int = 1,
        eager: bool = False,
        checks: bool = True,
        watermarks: bool = True,
        fit_checks: bool = True,
    ) -> None:
        self.slots, self.checks, self.watermarks, self.fit_checks = slots, checks, watermarks, fit_checks
        self.batch, self.eager = batch, eager
        self.version = 1
        self.nodes = [f"n{number}" for number in range(nodes)]
        self.pods: dict[str, tuple[str, int]] = {f"p{number}": ("", 1) for number in range(pods)}
        self.leases: dict[str, tuple[NodeRecord, int]] = {}
        self.pod_log: list[tuple[str, str, int]] = []
        """Bindings: the pod, its node, and the version; an empty node says that it is gone."""
        self.crashes = crashes
        self.made = 0
        self.bound: Counter[str] = Counter()
        self.actors = [self._new_actor() for _ in range(actors)]

    def _new_actor(self) -> Actor:
        self.made += 1
        book = ClaimBook(f"s{self.made}", checks=self.checks)
        for uid, (node_name, version) in self.pods.items():
            book.pod_seen(uid, uid, node_name, version)
        book.followed = self.version
        for node_name, (record, version) in self.leases.items():
            book.record_seen(node_name, record, str(version), 0.0)
        return Actor(book, len(self.pod_log))

    # --- what may happen ---

    def actions(self) -> Iterator[Action]:
        for index, actor in enumerate(self.actors):
            if actor.pods < len(self.pod_log):
                yield "pods", index, "", ""
            yield from (("lease", index, "", node) for node in self.news(actor.book))
            for uid, node in actor.claimed:
                yield "bind", index, uid, node
                if self.crashes:
                    yield "lose", index, uid, node
            if actor.decided:
                yield "give up", index, "", ""
                if not actor.book.obstacle(actor.node):
                    yield "put", index, "", ""
            yield from (("decide", index, uid, node) for uid, node in self.choices(actor))
            yield from (("expire", index, claim.uid, node) for node, claim in self._dead(actor))
            if self.crashes and (actor.claimed or actor.decided):
                yield "crash", index, "", ""

    def news(self, book: ClaimBook) -> Iterator[str]:
        """The nodes of which an actor hasn't seen the present record."""
        for node in self.leases:
            if node not in book._records or book._records[node].version != self._lease_version(node):
                yield node

    def choices(self, actor: Actor) -> Iterator[tuple[str, str]]:
        """Pods that seem to be pending, and nodes that seem to be free, for one more of a batch or for the first."""
        if len(actor.decided) == self.batch or (actor.claimed and not self.eager):
            return
        book = actor.book
        for uid in self.pods:
            if uid in book._pods and not book.place(uid) and uid not in actor.decided:
                yield from ((uid, node) for node in self.nodes if self._is_choice(actor, uid, node))

    def _is_choice(self, actor: Actor, uid: str, node: str) -> bool:
        is_next = not actor.decided or (node == actor.node and uid > actor.decided[-1])
        return is_next and self._load(actor.book, node) + len(actor.decided) < self.slots

    def _is_full(self, book: ClaimBook, node: str) -> bool:
        return self.fit_checks and self._load(book, node) >= self.slots

    def _load(self, book: ClaimBook, node: str) -> int:
        return sum(book.place(uid) == node for uid in self.pods)

    def _dead(self, actor: Actor) -> Iterator[tuple[str, PodClaim]]:
        alive = {(each.book.holder, *claimed) for each in self.actors for claimed in each.claimed}
        for node, claim in actor.book.expired(_FOR_EVER):
            if (claim.holder, claim.uid, node) not in alive:
                yield node, claim

    def do(self, action: Action) -> None:
        what, index, uid, node = action
        actor = self.actors[index]
        if what == "pods":
            seen, where, version = self.pod_log[actor.pods]
            actor.pods += 1
            if where:
                actor.book.pod_seen(seen, seen, where, version)
            else:
                actor.book.pod_gone(seen, version)
        elif what == "lease":
            self._tell_lease(actor, node)
        elif what == "decide":
            actor.node, actor.decided = node, (*actor.decided, uid)
        elif what == "give up":
            actor.node, actor.decided = "", ()
        elif what == "put":
            self._put(actor)
        elif what in {"bind", "lose"}:
            actor.claimed = tuple(each for each in actor.claimed if each != (uid, node))
            if what == "bind":
                self._bind(actor, uid, node)
            else:
                self.crashes -= 1
                actor.book.refused(uid)
        elif what == "expire":
            self._expire(actor, uid, node)
        else:
            self.crashes -= 1
            self.actors[index] = self._new_actor()

    def _put(self, actor: Actor) -> None:
        """As `ClaimCommits` does it: what fits is committed, and stays to be committed again if others were faster."""
        node, book, fitting = actor.node, actor.book, []
        for uid in actor.decided:
            with suppress(ClaimConflictError):
                book.claim(uid, node, lambda: "full" if self._is_full(book, node) else "")
                fitting.append(uid)
        actor.decided = tuple(fitting)
        if fitting:
            record, version = book.commit(node, fitting)
            if self.checks and version != self._lease_version(node):
                for uid in fitting:
                    book.refused(uid)
            else:
                self._write(node, record if self.watermarks else attrs.evolve(record, watermark=0))
                actor.claimed = tuple(sorted((*actor.claimed, *((uid, node) for uid in fitting))))
                actor.decided = ()
            self._tell_lease(actor, node)
        if not actor.decided:
            actor.node = ""

    def _bind(self, actor: Actor, uid: str, node: str) -> None:
        if uid not in self.pods or self.pods[uid][0]:
            actor.book.refused(uid)
            return
        self.version += 1
        self.pods[uid] = node, self.version
        self.bound[uid] += 1
        self.pod_log.append((uid, node, self.version))

    def _expire(self, actor: Actor, uid: str, node: str) -> None:
        if uid in self.pods and self.pods[uid][0]:
            return  # it is read before, and is bound
        claim = next(each for name, each in actor.book.expired(_FOR_EVER) if (name, each.uid) == (node, uid))
        record, version = actor.book.without(node, claim)
        if version == self._lease_version(node):
            self._write(node, record)
        self._tell_lease(actor, node)

    def _write(self, node: str, record: NodeRecord) -> None:
        self.version += 1
        self.leases[node] = record, self.version

    def _lease_version(self, node: str) -> str:
        return str(self.leases[node][1]) if node in self.leases else ""

    def _tell_lease(self, actor: Actor, node: str) -> None:
        record, version = self.leases[node]
        actor.book.record_seen(node, record, str(version), 0.0)

    # --- what is seen, and what must hold ---

    def fingerprint(self) -> Hashable:
        """Nodes are alike, and so are pods; of versions only their order matters."""
        uids = list(self.pods)
        found = []
        for nodes in permutations(self.nodes):
            for order in permutations(uids):
                found.append(self._as_seen(nodes, order))
        return min(found)

    def _as_seen(self, nodes: tuple[str, ...], uids: tuple[str, ...]) -> tuple[object, ...]:
        name = {"": "", **{node: f"{number}" for number, node in enumerate(nodes)}}
        pod = {uid: number for number, uid in enumerate(uids)}
        holder = {each.book.holder: number for number, each in enumerate(self.actors)}

        def shape(record: NodeRecord) -> tuple[object, ...]:
            claims = sorted((pod[each.uid], holder.get(each.holder, -1)) for each in record.claims)
            return tuple(claims), sum(version > record.watermark for *_, version in self.pod_log)

        truth = tuple(name[self.pods[uid][0]] for uid in uids)
        leases = tuple(shape(self.leases[node][0]) if node in self.leases else () for node in nodes)
        seen = []
        for actor in self.actors:
            book = actor.book
            to_come = tuple((pod[uid], name[node]) for uid, node, _ in self.pod_log[actor.pods :])
            known = tuple(
                (shape(book._records[node].record), book.version(node) == self._lease_version(node))
                if node in book._records
                else ()
                for node in nodes
            )
            places = tuple((name[book.place(uid)], uid in book._in_flight) for uid in uids)
            decided = name[actor.node], sorted(pod[uid] for uid in actor.decided)
            claimed = sorted((pod[uid], name[node]) for uid, node in actor.claimed)
            seen.append((to_come, known, places, str(decided), str(claimed)))
        return truth, leases, str(seen), self.crashes

    def check(self) -> None:
        load = Counter(node for node, _ in self.pods.values() if node)
        assert all(count <= self.slots for count in load.values()), f"overcommitted: {dict(load)}"
        assert all(count <= 1 for count in self.bound.values()), "a pod was bound twice"

    def is_done(self) -> bool:
        """As many pods are bound as there is room for."""
        bound = sum(bool(node) for node, _ in self.pods.values())
        return bound == min(len(self.pods), self.slots * len(self.nodes))


LARGER_WORLDS: dict[str, Callable[[], ClaimsWorld]] = {
    "two nodes, three pods, a crash": ClaimsWorld,
    "batches of two on a node with room for two, three pods, a crash": partial(
        ClaimsWorld, nodes=1, slots=2, batch=2, eager=True
    ),
}
"""Of two schedulers; they take minutes."""


def run_at_random(seed: int, steps: int, *, checks: bool = True, watermarks: bool = True) -> None:
    """Random steps of up to eight schedulers, of which some are cut off, and with pods that come and go.

    Raises AssertionError where a property doesn't hold, with the seed.
    """
    random = Random(seed)
    world = ClaimsWorld(
        actors=random.randint(2, 8),
        nodes=random.randint(1, 4),
        pods=random.randint(1, 10),
        slots=random.randint(1, 3),
        crashes=steps,
        batch=random.randint(1, 3),
        eager=random.random() < 0.5,
        checks=checks,
        watermarks=watermarks,
    )
    cut_off: set[int] = set()
    for _ in range(steps):
        index = random.randrange(len(world.actors))
        chance = random.random()
        if chance < 0.02:
            cut_off ^= {index}
        elif chance < 0.06:
            _replace_a_pod(world, random)
        elif (action := _any_action(world, index, random, is_cut_off=index in cut_off)) is not None:
            world.do(action)
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def _any_action(world: ClaimsWorld, index: int, random: Random, *, is_cut_off: bool) -> Action | None:
    actor = world.actors[index]
    chance = random.random()
    if chance < 0.01:
        return "crash", index, "", ""
    if actor.claimed and is_cut_off:
        return "lose", index, *random.choice(actor.claimed)
    if is_cut_off:
        return None
    if chance < 0.4 and actor.pods < len(world.pod_log):
        return "pods", index, "", ""
    if chance < 0.7 and (stale := list(world.news(actor.book))):
        return "lease", index, "", random.choice(stale)
    if actor.claimed and random.random() < 0.7:
        return "lose" if random.random() < 0.05 else "bind", index, *random.choice(actor.claimed)
    if actor.decided and random.random() < 0.7:
        return "give up" if actor.book.obstacle(actor.node) else "put", index, "", ""
    if dead := list(world._dead(actor)):
        node, claim = random.choice(dead)
        return "expire", index, claim.uid, node
    choices = list(world.choices(actor))
    return ("decide", index, *random.choice(choices)) if choices else None


def _replace_a_pod(world: ClaimsWorld, random: Random) -> None:
    uid = random.choice(list(world.pods))
    world.version += 1
    del world.pods[uid]
    world.pod_log.append((uid, "", world.version))
    world.version += 1
    uid = f"q{world.version}"
    world.pods[uid] = "", world.version
    for actor in world.actors:  # whoever is new is seen by all: only bindings and ends lag
        actor.book.pod_seen(uid, uid, "", 0)


def main(arguments: Sequence[str]) -> int:
    """Visit every state of the larger worlds; or make arguments[0] random steps."""
    if arguments:
        for seed in range(int(arguments[0]) // STEPS):
            run_at_random(seed, STEPS)
        sys.stdout.write(f"{arguments[0]} random steps\n")
    else:
        for name, make in LARGER_WORLDS.items():
            sys.stdout.write(f"{name}: {explore(make)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
