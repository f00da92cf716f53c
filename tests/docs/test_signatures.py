"""Signatures in the reference; docs/signatures.py writes them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

readable = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "signatures.py"))["readable"]


@pytest.mark.parametrize(
    ("signature", "shown"),
    [
        ("(pods: tuple[str, ...] = (), *, seed: int = 0)", "(pods: tuple[str, ...]=(), *, seed: int=0)"),
        ("(meta: ObjectMeta = NOTHING)", "(meta: ObjectMeta=...)"),
        ("(now: ~a.b.C = <function LocalCopy.<lambda>>)", "(now: ~a.b.C=...)"),
        ("(wanted: ~a.C = <function _every at 0x7f>)", "(wanted: ~a.C=...)"),
        ("(metrics: ~a.C = <kschedfw.metrics.NoMetrics object>)", "(metrics: ~a.C=...)"),
        ("(type: type[str] = <class 'pathlib.Path'>)", "(type: type[str]=Path)"),
        ("(code: Code = <Code.SUCCESS: 0>)", "(code: Code=Code.SUCCESS)"),
        ("(*args: ~typing.~P)", "(*args: P)"),
        (f"(kept: frozenset[str] = frozenset({{'{'a' * 60}'}}))", "(kept: frozenset[str]=...)"),
        ("(what: int = <no Python>)", "(what: int = <no Python>)"),
    ],
)
def test_defaults_are_short_and_python(signature: str, shown: str) -> None:
    assert readable(signature) == shown
