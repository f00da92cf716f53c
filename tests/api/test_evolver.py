"""Fast copies equal those of attrs."""

from __future__ import annotations

import pickle

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.evolver import evolver
from kschedfw.api.frozendict import FrozenDict
from kschedfw.api.meta import ObjectMeta
from kschedfw.api.pod import Pod, PodSpec
from kschedfw.testing.strategies import pods

place = evolver(PodSpec, "node_name")
stamp = evolver(ObjectMeta, "uid", "labels")
rename = evolver(Pod, "metadata", computed=("requests", "host_ports"))


@given(pods(), st.text(), st.dictionaries(st.text(), st.text()).map(FrozenDict))
def test_a_copy_equals_that_of_attrs(pod: Pod, text: str, labels: FrozenDict[str, str]) -> None:
    before = repr((pod.metadata, pod.spec))
    for copy, expected in (
        (place(pod.spec, text), attrs.evolve(pod.spec, node_name=text)),
        (stamp(pod.metadata, text, labels), attrs.evolve(pod.metadata, uid=text, labels=labels)),
    ):
        assert type(copy) is type(expected)
        assert copy == expected
        assert repr(copy) == repr(expected)
        assert hash(copy) == hash(expected)
        assert pickle.loads(pickle.dumps(copy)) == expected
    assert repr((pod.metadata, pod.spec)) == before


@given(pods(), st.text())
def test_a_copy_keeps_the_computed_values_that_are_named(pod: Pod, node_name: str) -> None:
    copy = rename(pod, ObjectMeta(node_name))
    assert copy.requests is pod.requests
    assert copy.host_ports is pod.host_ports
    assert copy == attrs.evolve(pod, metadata=ObjectMeta(node_name))


def test_a_copy_is_frozen_too() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        place(PodSpec(), "node-1").node_name = "node-2"  # type: ignore[misc]
