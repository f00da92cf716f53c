"""A profile may hold nodes against every filter, so that all reasons are known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import Code, CycleState, Framework, Profile, Status, Verdicts
from tests.framework.support import PluginClass, answering, make_framework, nodes, plugin, pod

POD = pod()

SOFT = plugin("Soft", filter=answering(Status.unschedulable("node(s) were full")))
HARD = plugin("Hard", filter=answering(Status.unresolvable("node(s) were wrong")))
FINE = plugin("Fine", filter=answering(None))
BROKEN = plugin("Broken", filter=answering(ValueError("boom")))


def framework(*plugins: PluginClass, run_all: bool = True) -> Framework:
    names = tuple(each.name for each in plugins)
    return make_framework(*plugins, nodes=nodes("a"), profile=Profile(names, run_all_filters=run_all))


def verdict(*plugins: PluginClass, run_all: bool = True) -> Status:
    made = framework(*plugins, run_all=run_all)
    (info,) = made.handle.snapshot.node_infos
    alone = made.run_filter_plugins(CycleState(), POD, info)
    found = made.filter_nodes(CycleState(), POD, made.handle.snapshot.selection)
    together = found.error or next(iter(dict(found.refused).values()), Status.success())
    assert alone == together
    return alone


@pytest.mark.parametrize(
    ("plugins", "code", "reasons", "blamed"),
    [
        ((FINE,), Code.SUCCESS, (), ""),
        ((SOFT, FINE), Code.UNSCHEDULABLE, ("node(s) were full",), "Soft"),
        (
            (SOFT, HARD),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            ("node(s) were full", "node(s) were wrong"),
            "Soft",
        ),
        (
            (HARD, FINE, SOFT),
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
            ("node(s) were wrong", "node(s) were full"),
            "Hard",
        ),
        ((SOFT, BROKEN, HARD), Code.ERROR, ('running "Broken" filter plugin: ValueError: boom',), "Broken"),
    ],
)
def test_all_refusals_become_one(
    plugins: tuple[PluginClass, ...], code: Code, reasons: tuple[str, ...], blamed: str
) -> None:
    status = verdict(*plugins)
    assert (status.code, status.reasons, status.plugin) == (code, reasons, blamed)


def test_otherwise_the_first_refusal_is_the_last_question() -> None:
    assert verdict(SOFT, BROKEN, run_all=False).reasons == ("node(s) were full",)


def test_batch_answers_are_merged_too() -> None:
    refusal = Status.unschedulable("node(s) were full")

    def all_full(rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Verdicts:
        return Verdicts.refuse(np.ones(len(rows), dtype=bool), refusal)

    batch = plugin("Batch", filter=answering(refusal), filter_batch=all_full)
    assert verdict(batch, HARD).reasons == ("node(s) were full", "node(s) were wrong")
    assert verdict(HARD, batch, run_all=False).reasons == ("node(s) were wrong",)


@given(st.permutations([SOFT, HARD, FINE]))
def test_whether_a_node_passes_does_not_depend_on_it(order: list[PluginClass]) -> None:
    for count in range(1, len(order) + 1):
        every, first = verdict(*order[:count]), verdict(*order[:count], run_all=False)
        assert every.is_success == first.is_success
        assert set(first.reasons) <= set(every.reasons)
