"""Keeps plugins' answers, so that only nodes that have changed are asked about again.

Where a plugin says what it reads (`Plugin.reads`) and on what of a pod its answers depend (`Plugin.sign`), they can be
kept per signature in a column with a row per node; the table's change logs say which rows have to be worked out anew.
This is kube-scheduler's equivalence cache (1.9) and its pod signatures (1.36; KEP-5598) in one, and finer than either,
as it works plugin by plugin: pods that differ in their requests still share what is known of taints and affinity.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast
from weakref import WeakValueDictionary

import attrs

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.runtime.columns import Column, CombinedCodes, Normalized, SummedScores
from kschedfw.framework.runtime.memo_report import MemoCounters, PluginMemo

BYTES_PER_NODE: Final = 4096
LEAST_BYTES: Final = 16 * 1024 * 1024
BYTES_BESIDE: Final = 1024
"""What the objects around one plugin's answers take, and their key, about: in a small cluster nearly all there is."""

_MOST_COLUMNS: Final = 8

ColumnT = TypeVar("ColumnT")


@attrs.define(eq=False, weakref_slot=True)
class Answers:
    """What one plugin says to pods of one signature, as far as it was asked. Classes of pods share it."""

    codes: Column | None = None
    scores: Column | None = None
    normalized: Normalized | None = None


@attrs.define(eq=False)
class PodClass:
    """Pods for which all plugins have the same signatures, and what is known of them.

    `answers` has the plugins whose answers can be kept; `combined` and `summed` are made from several plugins', by
    those that take part.
    """

    answers: Mapping[str, Answers] = attrs.field(factory=dict)
    combined: dict[Hashable, CombinedCodes] = attrs.field(factory=dict)
    summed: dict[Hashable, SummedScores] = attrs.field(factory=dict)
    ways: dict[Hashable, Any] = attrs.field(factory=dict)
    _columns: dict[Hashable, object] = attrs.field(factory=dict)

    def size(self, rows: int) -> int:
        """In bytes, about, with a table of so many rows."""
        # 4 bytes a row for a code, 8 for a score or a sum of them: counted as if all were there, and nothing shared.
        count = len(self.answers)
        return rows * (12 + 20 * count) + BYTES_BESIDE * (1 + count)

    def column(self, key: Hashable, make: Callable[[], ColumnT]) -> ColumnT:
        """What else is known by node; of many such columns the oldest go."""
        column = self._columns.get(key)
        if column is None:
            if len(self._columns) >= _MOST_COLUMNS:
                del self._columns[next(iter(self._columns))]
            column = self._columns[key] = make()
        return cast("ColumnT", column)


@attrs.frozen(eq=False)
class Cycle:
    """A pod's scheduling cycle, and what is known of pods like this one.

    `pods` is about plugins that look at single nodes. Of those that look at the whole cluster answers are known only
    while nothing changes, in `cluster`.
    """

    state: CycleState
    pod: Pod
    pods: PodClass = attrs.field(factory=PodClass)
    cluster: ClusterAnswers | None = None

    def answers(self, plugin: AnyPlugin) -> Answers | None:
        """What the plugin said to pods like this one; None if that can't be kept."""
        if plugin.reads is not Reads.CLUSTER:
            return self.pods.answers.get(plugin.name)
        return None if self.cluster is None else self.cluster.of(plugin, self.pod)


class ClusterAnswers:
    """What plugins that look at the whole cluster say, as long as nothing in it changes.

    Nearly every cycle places a pod, and then all this is void. So nothing is kept, and no pod signed for it, unless the
    cycle before changed nothing: when many pods in a row fit nowhere.
    """

    def __init__(self, counters: MemoCounters) -> None:
        self._counters = counters
        self._version = (-1, -1, -1)
        self._answers: dict[tuple[str, Hashable], Answers] = {}

    def is_quiet(self, table: NodeTable) -> bool:
        """Whether nothing has changed since this was asked last."""
        version = (table.layout, table.node_changes.version, table.pod_changes.version)
        if version == self._version:
            return True
        self._version = version
        self._answers.clear()
        return False

    def of(self, plugin: AnyPlugin, pod: Pod) -> Answers | None:
        if self._counters.of(plugin).objection or (signature := signed(plugin, pod, self._counters)) is None:
            return None
        return self._answers.setdefault((plugin.name, signature), Answers())


class Memo:
    """Pod classes by signature; the least recently used go first.

    About 4 KiB are kept per node of the table at most, or 16 MiB in a small one.
    """

    def __init__(self, plugins: Iterable[AnyPlugin], counters: MemoCounters) -> None:
        self._counters = counters
        self._signing: list[tuple[AnyPlugin, PluginMemo]] = []
        for plugin in plugins:
            counts = counters.of(plugin)
            if not counts.objection and plugin.reads is not Reads.CLUSTER:
                self._signing.append((plugin, counts))
        self._classes: OrderedDict[tuple[Hashable, ...], PodClass] = OrderedDict()
        self._answers: WeakValueDictionary[tuple[str, Hashable], Answers] = WeakValueDictionary()
        self._bytes = self._rows = 0
        self._latest: PodClass | None = None
        self._cluster = ClusterAnswers(counters)

    def cycle(self, state: CycleState, pod: Pod, table: NodeTable) -> Cycle:
        """The cycle that begins for the pod. A plugin that fails to sign it counts as one that can't."""
        quiet = self._cluster.is_quiet(table)
        return Cycle(state, pod, self._class_of(pod, table), self._cluster if quiet else None)

    def _class_of(self, pod: Pod, table: NodeTable) -> PodClass:
        try:
            signatures = tuple([plugin.sign(pod) for plugin, _ in self._signing])
            known = self._classes.get(signatures)
        except HOOK_FAILURES:
            signatures = tuple([signed(plugin, pod, self._counters) for plugin, _ in self._signing])
            known = self._classes.get(signatures)
        if known is None:
            known = self._add(signatures, table)
        elif known is not self._latest:
            self._classes.move_to_end(signatures)
        self._latest = known
        return known

    def clear(self) -> None:
        """Forget everything."""
        self._classes.clear()
        self._latest = None
        self._answers.clear()
        self._bytes = self._rows = 0
        self._cluster = ClusterAnswers(self._counters)

    def _add(self, signatures: tuple[Hashable, ...], table: NodeTable) -> PodClass:
        pods = PodClass(self._answers_to(signatures))
        self._classes[signatures] = pods
        if len(table) != self._rows:  # all columns grow with it
            self._rows = len(table)
            self._bytes = sum(each.size(self._rows) for each in self._classes.values())
        else:
            self._bytes += pods.size(self._rows)
        most = max(BYTES_PER_NODE * self._rows, LEAST_BYTES)
        while self._bytes > most and len(self._classes) > 1:
            self._bytes -= self._classes.popitem(last=False)[1].size(self._rows)
        return pods

    def _answers_to(self, signatures: tuple[Hashable, ...]) -> Mapping[str, Answers]:
        answers: dict[str, Answers] = {}
        for (plugin, counts), signature in zip(self._signing, signatures, strict=True):
            if signature is None:
                counts.classes_unsigned += 1
                continue
            counts.classes_signed += 1
            known = self._answers.get((plugin.name, signature))
            if known is None:
                known = self._answers[plugin.name, signature] = Answers()
            answers[plugin.name] = known
        return answers


def signed(plugin: AnyPlugin, pod: Pod, counters: MemoCounters) -> Hashable | None:
    """The pod's signature; None if there is none, or the plugin fails to make one."""
    try:
        signature = plugin.sign(pod)
        hash(signature)
    except HOOK_FAILURES as error:
        counters.failed(plugin, error)
        return None
    return signature
