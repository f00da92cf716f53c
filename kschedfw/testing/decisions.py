"""Decisions on single pods, made and checked in tests of policies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from kschedfw import AnyPlugin, InMemoryCluster, Node, Pod, Profile, Registry
from kschedfw.api.meta import Named
from kschedfw.explain import Explanation, Result, Section, explain_pod, headline, overview
from kschedfw.testing.configured import Configuration, given_configuration, tie_breaker
from kschedfw.testing.manifest_reader import ManifestReader

_PLACED = frozenset((Result.PLACED, Result.WAITING))


def decide(
    pod: Pod | Mapping[str, object],
    *plugins: type[AnyPlugin],
    nodes: Iterable[Node | Mapping[str, object]],
    pods: Iterable[Pod | Mapping[str, object]] = (),
    objects: Iterable[Named | Mapping[str, object]] = (),
    profile: Profile | None = None,
    configuration: Configuration | None = None,
    seed: int | None = None,
) -> Explanation:
    """Return the decision on the pod, given these nodes, bound pods and other objects; nothing is bound or evicted.

    Pods, nodes and objects may be manifests, which are read as from a file; those of `objects` say their kind.

    The default profile is kube-scheduler's. A `configuration`, or the path of its file (relative to the working
    directory), provides all its profiles, one of which the pod names, and its extenders. `plugins` are classes
    that the profile or configuration may name; they replace installed plugins of the same names. Without a
    profile and a configuration, they are the profile. All filters are called for all nodes. Of equally good
    nodes the first by name is chosen; with a `seed`, a random one, as kube-scheduler does.

    Raises:
        ValueError: there are a profile and a configuration.
        NoProfileError: the pod is for another scheduler.
        ProfileError, PluginError: a profile can't run.
        ConfigurationError: the configuration is refused.
        ManifestError: a manifest is refused.
        TypeError: an argument is neither an object nor a manifest, or the configuration has the wrong type.
        OSError: the configuration's file can't be read.
    """
    manifests = ManifestReader(lenient=False)
    pod = manifests.pod(pod)
    cluster = InMemoryCluster(
        [*manifests.objects(objects), *map(manifests.node, nodes), *map(manifests.pod, pods)]
    )
    registry = Registry()
    names = [registry.register(plugin, replace=True).name for plugin in plugins]
    if profile is None and names and configuration is None:
        profile = Profile(names, scheduler_name=pod.spec.scheduler_name)
    profiles = None if profile is None else [profile]
    return explain_pod(
        cluster,
        pod,
        given_configuration(configuration, profiles, registry),
        profiles=profiles,
        registry=registry,
        selector=tie_breaker(seed),
        seed=seed or 0,
    )


def assert_decision(
    explanation: Explanation,
    *,
    node: str | None = None,
    result: Result | None = None,
    message: str | None = None,
    feasible: Iterable[str] | None = None,
    refused: Mapping[str, str | tuple[str, str]] | None = None,
    scores: Mapping[str, Mapping[str, int]] | None = None,
    totals: Mapping[str, int] | None = None,
    tied: Iterable[str] | None = None,
    victims: Iterable[str] | None = None,
) -> None:
    """Assert the given facts of a decision; others aren't checked.

    Args:
        explanation: the decision.
        node: the node that was chosen.
        result: the result, such as `Result.UNSCHEDULABLE`.
        message: kube-scheduler's message in the pod's condition.
        feasible: all feasible nodes, in any order.
        refused: by node, the plugin that rejects it, or the plugin and one of its reasons.
        scores: by plugin and node, the score that the plugin gives (0–100, normalised, not weighted).
        totals: by node, the weighted sum of all scores.
        tied: all nodes with the highest total, in any order.
        victims: the keys of all pods that preemption would evict, in any order.

    Raises:
        AssertionError: a fact differs, or names an unknown node or plugin; lists all of these, and shows the
            explanation.
    """
    # So that pytest shows the line of the test, not of this function.
    __tracebackhide__ = True
    wrong: list[str] = []
    if node is not None and (explanation.result not in _PLACED or explanation.node != node):
        placed = explanation.node if explanation.result in _PLACED else None
        hint = _similar(node, explanation.nodes)
        wrong.append(f"it should go to {node}, not {placed or 'nowhere'}{hint}")
    if result is not None and explanation.result is not result:
        wrong.append(f"it should be {result}, not {explanation.result}")
    if message is not None and explanation.message != message:
        wrong.append(f"the message should be {message!r}, not {explanation.message!r}")
    wrong.extend(_other_nodes("feasible", feasible, explanation.feasible))
    wrong.extend(_other_nodes("tied", tied, explanation.tied))
    wrong.extend(_other_refusals(explanation, refused or {}))
    wrong.extend(_other_scores(explanation, scores or {}))
    for name, expected in (totals or {}).items():
        if name not in explanation.nodes:
            wrong.append(_unknown_node(explanation, name))
            continue
        total = explanation.of(name).total
        if total != expected:
            wrong.append(f"the total of {name} should be {expected}, not {total}")
    if victims is not None:
        step = explanation.preemption
        chosen = None if step is None else step.chosen
        found = () if chosen is None else tuple(victim.pod for victim in chosen.victims)
        wrong.extend(_other_nodes("victims", victims, found))
    if wrong:
        problems = "\n".join(f"* {each}" for each in wrong)
        raise AssertionError(
            f"the decision on {explanation.pod} is another one:\n{problems}\n\n{as_text(explanation)}"
        )


def _other_nodes(what: str, expected: Iterable[str] | None, found: Iterable[str]) -> Iterator[str]:
    if expected is None:
        return
    should, are = sorted(expected), sorted(found)
    if should != are:
        yield f"{what} should be {', '.join(should) or 'none'}, not {', '.join(are) or 'none'}"


def _other_refusals(explanation: Explanation, refused: Mapping[str, str | tuple[str, str]]) -> Iterator[str]:
    for name, expected in refused.items():
        if name not in explanation.nodes:
            yield _unknown_node(explanation, name)
            continue
        plugin, reason = (expected, None) if isinstance(expected, str) else expected
        row = explanation.of(name)
        status, hint = row.refusal, _similar(plugin, explanation.plugins)
        if status is None:
            yield f"{name} should be refused by {plugin}, but is {row.verdict}{hint}"
        elif status.plugin != plugin:
            yield f"{name} should be refused by {plugin}, not by {status.plugin} ({status.message}){hint}"
        elif reason is not None and reason not in status.reasons:
            yield f"{plugin} should refuse {name} with {reason!r}, not {status.message!r}"


def _other_scores(explanation: Explanation, scores: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    for plugin, by_node in scores.items():
        for name, expected in by_node.items():
            if name not in explanation.nodes:
                yield _unknown_node(explanation, name)
                continue
            score = explanation.of(name).scores.get(plugin)
            if score is None:
                hint = _similar(plugin, explanation.plugins)
                yield f"{plugin} should give {name} {expected}, but doesn't score it{hint}"
            elif score.normalized != expected:
                yield f"{plugin} should give {name} {expected}, not {score.normalized}"


def _unknown_node(explanation: Explanation, name: str) -> str:
    return f"there is no node {name}{_similar(name, explanation.nodes)}"


def _similar(name: str, known: Collection[str]) -> str:
    """Return a hint with the most similar known name, if this name is unknown; else empty."""
    similar = () if name in known else get_close_matches(name, known, n=1)
    return f"; did you mean {similar[0]}?" if similar else ""


def as_text(explanation: Explanation) -> str:
    """The decision in tables, as `kschedfw explain` prints it."""
    return "\n".join([headline(explanation), *_blocks(overview(explanation))])


def _blocks(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        yield ""
        if section.title:
            yield section.title
        if section.headers:
            yield from _table(section)
        yield from section.lines


def _table(section: Section) -> Iterator[str]:
    rows = (section.headers, *section.rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if header in section.text else cell.rjust(width)
            for cell, width, header in zip(row, widths, section.headers, strict=True)
        )
        yield "  ".join(cells).rstrip()
