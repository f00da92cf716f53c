"""The memo of plugins' answers, so that plugins are only asked about changed nodes.

A plugin declares what it reads (`Plugin.reads`) and what of a pod its answers depend on (`Plugin.sign`). So its
answers are kept per signature, in a column with a row per node, and the node table's change logs tell which
rows must be asked about again. This is kube-scheduler's equivalence cache (1.9) and its pod signatures (1.36;
KEP-5598) in one. It is finer than either, as it works plugin by plugin: pods that differ in their requests
still share what is known of taints and affinity.

A signature gets a column when it comes again soon: a stream of pods that all differ leaves nothing behind.
Where answers depend on the pods on nodes, soon means among the last few signatures: later, so many nodes have
changed that asking about all of them is faster. A plugin without a batch form gets a column at once, since
asking it costs much more than keeping.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Final
from weakref import WeakValueDictionary

import attrs

from kschedfw.api.bounded_dict import BoundedDict
from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.nodes.reads import Reads
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.plugin import AnyPlugin
from kschedfw.framework.runtime.answers.columns import FEW_ROWS
from kschedfw.framework.runtime.answers.plugins import PluginMemo
from kschedfw.framework.runtime.answers.pod_class import POD_CLASS, Answers, PodClass
from kschedfw.framework.runtime.answers.status_codes import StatusCodes
from kschedfw.framework.runtime.hooks import Hook, asked_method

BYTES_PER_NODE: Final = 4096
LEAST_BYTES: Final = 16 * 1024 * 1024

_MOST_OF_NODES: Final = 4096
"""The number of latest signatures remembered of a plugin whose answers depend on nodes alone."""

_MOST_STATUSES: Final = 16_384
"""The number of statuses beyond which everything is forgotten: a plugin that puts node names into reasons makes a
status per node."""

_NOT_KEPT: Final = object()
"""The stand-in for a signature whose answers aren't kept."""


@attrs.frozen(eq=False)
class _Signing:
    """A plugin that signs pods, its counters, and its latest signatures; None if all signatures are kept."""

    plugin: AnyPlugin
    counts: PluginMemo
    latest: BoundedDict[Hashable, None] | None
    ask: Hook = attrs.field(init=False, repr=False)
    """The plugin's `sign`."""

    @ask.default
    def _ask(self) -> Hook:
        return asked_method(self.plugin, "sign")

    @classmethod
    def of(cls, plugin: AnyPlugin, counts: PluginMemo) -> _Signing:
        forms = (("filter", "filter_batch"), ("score", "score_batch"))
        if not all(hasattr(plugin, batch) for hook, batch in forms if hasattr(plugin, hook)):
            return cls(plugin, counts, None)
        # Of k kinds of pods in turn, k nodes have changed when a kind comes again. Beyond FEW_ROWS all of
        # them are asked about by the batch form, and then keeping costs more than it saves: of 8 kinds in
        # turn a pod took 353 µs with columns and 189 without, on 5,000 nodes.
        return cls(plugin, counts, BoundedDict(_MOST_OF_NODES if plugin.reads is Reads.NODE else FEW_ROWS))

    def sign(self, pod: Pod) -> Hashable | None:
        """Return the pod's signature; None if there is none, or the plugin fails to make one."""
        try:
            # Called one by one, so that only the plugin that fails loses what is kept of it.
            signature: Hashable | None = self.ask(pod)
            # An unhashable signature can't be a key. It counts as a failure of the plugin, like an exception.
            hash(signature)
        except HOOK_FAILURES as error:
            self.counts.signing_failed(self.plugin, error)
            return None
        return signature

    def comes(self, signature: Hashable | None) -> bool:
        """Note a signature. Return whether its answers are to be kept, since it has come lately."""
        if signature is None or self.latest is None:
            return True
        is_known = signature in self.latest
        self.latest[signature] = None
        if is_known:
            self.latest.move_to_end(signature)
        return is_known


class Memo:
    """Pod classes by signatures; the least recently used are forgotten first.

    About 4 KiB are kept per node of the table at most, or 16 MiB in a small one.
    """

    def __init__(self, plugins: Iterable[tuple[AnyPlugin, PluginMemo]]) -> None:
        self._signing = [
            _Signing.of(plugin, counts)
            for plugin, counts in plugins
            if not counts.objection and plugin.reads is not Reads.CLUSTER
        ]
        self._sign = [each.ask for each in self._signing]
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._codes = StatusCodes()
        self._classes: OrderedDict[tuple[Hashable, ...], PodClass] = OrderedDict()
        # Weak, so that an answer goes with the last class that uses it: classes share them, and only classes
        # are counted.
        self._answers: WeakValueDictionary[tuple[str, Hashable], Answers] = WeakValueDictionary()
        self._bytes = self._rows = 0
        self._latest: PodClass | None = None
        self._latest_signatures: tuple[Hashable, ...] = (_NOT_KEPT,) * len(self._signing)

    def begin_cycle(self, state: CycleState, pod: Pod, table: NodeTable) -> PodClass:
        """Return the class of the pod whose cycle begins, and write it to the state.

        A plugin that fails to sign the pod counts as one that can't sign.
        """
        if len(self._codes) > _MOST_STATUSES:
            self.clear()
        pods = self._class_of(pod, table)
        state.write(POD_CLASS, pods)
        return pods

    def _class_of(self, pod: Pod, table: NodeTable) -> PodClass:
        try:
            # The fast way, without a `try` per plugin; only if a plugin fails are they asked again, one by
            # one.
            signatures = tuple([sign(pod) for sign in self._sign])
            if self._latest is not None and signatures == self._latest_signatures:
                return self._latest
            signatures = self._kept_signatures(signatures)
            if self._latest is not None and signatures == self._latest_signatures:
                return self._latest  # as in a stream of pods that all differ in the same way
            known = self._classes.get(signatures)
        except HOOK_FAILURES:
            signatures = self._kept_signatures(tuple([each.sign(pod) for each in self._signing]))
            known = self._classes.get(signatures)
        if known is None:
            known = self._add(signatures, table)
        else:
            self._classes.move_to_end(signatures)
        self._latest, self._latest_signatures = known, signatures
        return known

    def _kept_signatures(self, signatures: tuple[Hashable | None, ...]) -> tuple[Hashable, ...]:
        """Return the signatures, with `_NOT_KEPT` in place of those whose answers aren't kept."""
        # In a stream of pods that differ, most of a pod's signatures are those of the pod before: these are kept.
        return tuple(
            [
                signature
                if signature is before or signature == before or each.comes(signature)
                else _NOT_KEPT
                for each, signature, before in zip(
                    self._signing, signatures, self._latest_signatures, strict=True
                )
            ]
        )

    def _add(self, signatures: tuple[Hashable, ...], table: NodeTable) -> PodClass:
        pods = PodClass(self._codes, self._answers_to(signatures))
        self._classes[signatures] = pods
        if len(table) != self._rows:  # all columns have the table's length
            self._rows = len(table)
            self._bytes = sum(each.size(self._rows) for each in self._classes.values())
        else:
            self._bytes += pods.size(self._rows)
        # The last class is the one that the pod at hand is about to use, so it stays whatever its size.
        most = max(BYTES_PER_NODE * self._rows, LEAST_BYTES)
        while self._bytes > most and len(self._classes) > 1:
            self._bytes -= self._classes.popitem(last=False)[1].size(self._rows)
        return pods

    def _answers_to(self, signatures: tuple[Hashable, ...]) -> Mapping[str, Answers]:
        answers: dict[str, Answers] = {}
        for each, signature in zip(self._signing, signatures, strict=True):
            if signature is None:
                each.counts.classes_unsigned += 1
            elif signature is not _NOT_KEPT:
                key = each.plugin.name, signature
                known = self._answers.get(key)
                if known is None:
                    each.counts.classes_signed += 1
                    assert each.plugin.reads is not None
                    known = self._answers[key] = Answers(each.plugin.reads)
                answers[each.plugin.name] = known
        return answers
