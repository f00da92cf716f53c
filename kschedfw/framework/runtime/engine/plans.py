"""The plans of a profile's pods, by what its plugins tell pods apart by.

A signature's answers are kept when it comes again soon: a stream of pods that all differ leaves nothing behind. Where
answers depend on the pods on nodes, soon means among the last few signatures: later, so many nodes have changed that
asking about all of them is faster. A plugin without a batch form gets its answers kept at once, since asking it costs
much more than keeping.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from kschedfw.api.pod import Pod
from kschedfw.framework.cycle_state import CycleState
from kschedfw.framework.errors import HOOK_FAILURES
from kschedfw.framework.learning.learned import Revision
from kschedfw.framework.learning.places import signer
from kschedfw.framework.nodes.arrays import LARGEST_EXACT
from kschedfw.framework.nodes.table import NodeTable
from kschedfw.framework.parallelizer import Parallelizer
from kschedfw.framework.plugin import IDLE
from kschedfw.framework.runtime.engine.kept import Kept
from kschedfw.framework.runtime.engine.plan import Plan
from kschedfw.framework.runtime.engine.steps import Step
from kschedfw.framework.status_codes import StatusCodes

BYTES_PER_NODE: Final = 4096
LEAST_BYTES: Final = 16 * 1024 * 1024

_MOST_STATUSES: Final = 16_384
"""The number of statuses beyond which everything is forgotten: a plugin that puts node names into reasons makes a
status per node."""

_EXACT_BITS: Final = LARGEST_EXACT.bit_length() - 1
"""Amounts of so many bits are exact in float64, and so is what the pass computes with them."""

_NOT_KEPT: Final = object()
"""The stand-in for a signature whose answers aren't kept."""

_Key: TypeAlias = tuple[Hashable, ...]


class Plans:
    """Plans by signatures, and by whether amounts can be computed with; the least recently used are forgotten first.

    About 4 KiB are kept per node of the table at most, or 16 MiB in a small one.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        filters: Sequence[Step],
        scores: Sequence[Step],
        parallelizer: Parallelizer,
        revision: Revision,
        *,
        keeps: bool,
    ) -> None:
        """Make plans of these steps, whose filters and scores have these orders. Without `keeps`, all are asked."""
        self._steps = steps
        self._filters = filters
        self._scores = scores
        self._parallelizer = parallelizer
        rules = [each.rule for each in steps if each.rule is not None]
        self._ruled = [
            each for each in steps if keeps and each.rule is not None and rules.count(each.rule) == 1
        ]
        self._keeps = keeps
        self._unread = [
            each for each in steps if keeps and each.learned.is_whole and (each.pre_filter or each.pre_score)
        ]
        """Pure plugins with a pre_filter or pre_score, until the first pod comes."""
        self.revision = revision
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.codes = StatusCodes()
        self._begin()

    def _begin(self) -> None:
        """Begin without plans, and with the signatures of what is known now of pure hooks."""
        self._known = self.revision.number
        signing = [each for each in self._steps if self._keeps and each.signs and each not in self._ruled]
        self._declared = [each for each in signing if each.declares]
        learned = [each for each in signing if not each.declares]
        self._read = [each.learned.places_of_pods() for each in learned]
        self._sign = signer([(each.sign, each.plugin.concerns) for each in self._declared], self._read)
        """The function from a pod to its signatures."""
        self._signing = [*self._declared, *learned]
        self._plans: OrderedDict[_Key, Plan] = OrderedDict()
        # Weak, so that an answer goes with the last plan that uses it: plans share them, and only plans are counted.
        self._kept: WeakValueDictionary[tuple[str, Hashable], Kept] = WeakValueDictionary()
        self._bytes = self._rows = 0
        self._latest: Plan | None = None
        self._latest_is_computed = False
        self._latest_signatures: _Key = (_NOT_KEPT,) * len(self._signing)

    @property
    def are_outdated(self) -> bool:
        """True if more is known of pure hooks than when these plans were made."""
        return self._known != self.revision.number

    def _read_pre_hooks(self, pod: Pod) -> None:
        """Note what pure pre_filters and pre_scores read of the first pod.

        Otherwise that would be known only once answers are kept, and the pods after that were told apart anew.
        """
        for each in self._unread:
            for hook in (each.pre_filter, each.pre_score):
                if hook is not None:
                    each.learned.note(hook, CycleState(), pod)
        self._unread = []

    def of(self, pod: Pod, table: NodeTable, *, computes: bool = True, is_one_of_many: bool = False) -> Plan:
        """Return the pod's plan, in which the pass computes what it can if it `computes`.

        The signatures of one of many are kept at once.
        A plugin that fails to sign the pod counts as one that can't sign.
        """
        if self._unread:
            self._read_pre_hooks(pod)
        if len(self.codes.statuses) > _MOST_STATUSES:
            self.clear()
        elif self._known != self.revision.number:
            # The plan of the pod before stays right for that pod, but by its signatures other pods were like it.
            self._begin()
        is_computed = computes and self._is_computed(pod, table)
        try:
            # The fast way, without a `try` per plugin.
            signatures = self._sign(pod)
            if (
                signatures == self._latest_signatures
                and is_computed is self._latest_is_computed
                and self._latest
            ):
                return self._latest
            if not is_one_of_many:
                signatures = self._kept_signatures(signatures)
                # The latest plan may be this pod's, too: `_NOT_KEPT` stands for every signature that is new, as some of
                # each pod are where no two pods are alike.
                if (
                    signatures == self._latest_signatures
                    and is_computed is self._latest_is_computed
                    and self._latest
                ):
                    return self._latest
            known = self._plans.get((is_computed, *signatures))
        except HOOK_FAILURES:
            # A plugin that fails to sign a pod may fail again.
            self._sign = signer([(each.sign_or_none, "") for each in self._declared], self._read)
            signatures = self._kept_signatures(self._sign(pod))
            known = self._plans.get((is_computed, *signatures))
        if known is None:
            known = self._add(signatures, table, is_computed=is_computed)
        else:
            self._plans.move_to_end((is_computed, *signatures))
        self._latest, self._latest_is_computed, self._latest_signatures = known, is_computed, signatures
        return known

    def _is_computed(self, pod: Pod, table: NodeTable) -> bool:
        """Return whether the pass can compute the answers that follow from amounts."""
        requests = pod.requests
        scored, amounts = requests.scored, requests.amounts
        # The bits of all at once: a negative amount has all of the high ones.
        bits = scored.milli_cpu | scored.memory | amounts.milli_cpu | amounts.memory
        if bits >> _EXACT_BITS or not table.is_exact:
            return False
        wanted = requests.demand.scalar_resources
        if not wanted and not amounts.scalar_resources:
            return True
        # Plugins that score resources don't sign a pod whose resources devices may provide.
        return wanted.keys() <= table.columns.keys() and None not in [each.sign(pod) for each in self._ruled]

    def _kept_signatures(self, signatures: _Key) -> _Key:
        """Return the signatures, with `_NOT_KEPT` in place of those whose answers aren't kept."""
        # In a stream of pods that differ, most of a pod's signatures are those of the pod before: these are kept.
        return tuple(
            [
                signature
                if signature is before or signature == before or each.comes_again(signature)
                else _NOT_KEPT
                for each, signature, before in zip(
                    self._signing, signatures, self._latest_signatures, strict=True
                )
            ]
        )

    def _add(self, signatures: _Key, table: NodeTable, *, is_computed: bool) -> Plan:
        rules = {each.name: rule for each in self._ruled if is_computed and (rule := each.rule) is not None}
        plan = Plan(self._steps, self._filters, self._scores, self._kept_for(signatures), self.codes, rules)
        self._plans[is_computed, *signatures] = plan
        if len(table) != self._rows:  # all columns have the table's length
            self._rows = len(table)
            self._bytes = sum(each.size(self._rows) for each in self._plans.values())
        else:
            self._bytes += plan.size(self._rows)
        # The last plan is the one that the pod at hand is about to use, so it stays whatever its size.
        most = max(BYTES_PER_NODE * self._rows, LEAST_BYTES)
        while self._bytes > most and len(self._plans) > 1:
            self._bytes -= self._plans.popitem(last=False)[1].size(self._rows)
        return plan

    def _kept_for(self, signatures: _Key) -> Mapping[str, Kept]:
        answers: dict[str, Kept] = {}
        for each, signature in zip(self._signing, signatures, strict=True):
            if signature is IDLE and each.may_be_idle:
                answers[each.name] = Kept.idle(each, self.codes, self._parallelizer)
            elif signature is None or signature is IDLE:
                each.counts.classes_unsigned += 1
            elif signature is not _NOT_KEPT:
                key = each.name, signature
                known = self._kept.get(key)
                if known is None:
                    each.counts.classes_signed += 1
                    known = self._kept[key] = Kept(each, self.codes, self._parallelizer)
                answers[each.name] = known
        return answers
