"""The option `--reschedule`, which frees bound pods from their nodes before anything else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches

import attrs
import click

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.api.selector_text import SelectorSyntaxError, parse_selector
from kschedfw.api.words import counted
from kschedfw.cli.enabled import UsageError
from kschedfw.cli.inputs import Input
from kschedfw.cluster import InMemoryCluster, free_pods
from kschedfw.cluster.freeing import belongs_to_its_node, may_be_freed

OPTION = "--reschedule"
ALL = "all"
NODE = "node:"

reschedule_option = click.option(
    OPTION,
    multiple=True,
    metavar="WHAT",
    help=(
        "Unbind pods first, except pods of DaemonSets and mirror pods: all, node:NAME, or a label "
        "selector (app=web). Repeatable."
    ),
)

Wanted = Callable[[Pod], bool]


def reschedule(loaded: Input, given: Sequence[str]) -> tuple[Input, Mapping[str, str]]:
    """Free the pods that the values name. Return the input without their bindings, and their former nodes by pod.

    Raises:
        UsageError: a value is invalid, or frees no pod.
    """
    if not given:
        return loaded, {}
    bound = [pod for pod in loaded.cluster.list(Pod) if may_be_freed(pod)]
    wanted: list[Wanted] = []
    for value in given:
        is_wanted = _wanted(value, loaded.cluster)
        matching = [pod for pod in bound if is_wanted(pod)]
        # True, too, if none matches.
        if all(map(belongs_to_its_node, matching)):
            found = f"the {len(matching)} that match are of DaemonSets or mirror pods"
            why = found if matching else "no bound pod matches"
            raise UsageError(f"{OPTION} {value}: no pod to free: {why}")
        wanted.append(is_wanted)
    freed = free_pods(loaded.cluster, lambda pod: any(is_wanted(pod) for is_wanted in wanted))
    stayed = f"; {len(freed.kept)} of DaemonSets or mirror pods stay" if freed.kept else ""
    taken = counted(len(freed.nodes), "bound pod")
    note = f"{taken} freed first ({OPTION} {', '.join(given)}){stayed}"
    return attrs.evolve(loaded, notes=(*loaded.notes, note)), freed.nodes


def _wanted(value: str, cluster: InMemoryCluster) -> Wanted:
    if value == ALL:
        return lambda _: True
    if value.startswith(NODE):
        return _on(value.removeprefix(NODE), cluster)
    try:
        selector = parse_selector(value)
    except SelectorSyntaxError as error:
        raise UsageError(f"{OPTION} {value}: give {ALL}, {NODE}NAME or a label selector; {error}") from None
    return lambda pod: selector.matches(pod.labels)


def _on(name: str, cluster: InMemoryCluster) -> Wanted:
    # The node of a pod may be missing in the input.
    known = {node.name for node in cluster.list(Node)} | {pod.node_name for pod in cluster.list(Pod)} - {""}
    if name not in known:
        similar = get_close_matches(name, known, n=3)
        hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
        raise UsageError(f"{OPTION} {NODE}{name}: there is no node of this name{hint}")
    return lambda pod: pod.node_name == name
