"""Checks that a plugin copes with any text in labels and annotations, which users write."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeAlias

import attrs

from kschedfw import FrozenDict, Node, Pod
from kschedfw.testing.plugin_contract.stage import NewStage, PluginStage, on_stages
from kschedfw.testing.plugin_contract.subject import ContractViolation, Subject, violated
from kschedfw.testing.plugin_contract.waking import ask_hints

Texts: TypeAlias = FrozenDict[str, str]

# What the API server accepts as the value of a label; annotations may be any text.
_LABELS: Final = ("", "0", "1.5", "NaN", "1e999", "true", "9" * 30, "no-such-thing")
_ANNOTATIONS: Final = (*_LABELS, "-1", "-Infinity", "1 Gi", "{", "[]", "null", "=", "a,b,,", "☃", "²")


class UserTextChecks(Subject):
    """Checks with arbitrary texts in the labels and annotations that the plugin reads, found by recording look-ups."""

    @on_stages()
    def test_nothing_that_users_write_makes_a_hook_raise(self, new_stage: NewStage) -> None:
        objects = _objects(new_stage())
        keys: set[str] = set()
        _ask_everything(self, [_with(each, lambda texts: WatchedText(texts, keys)) for each in objects])
        if not keys:
            return
        texts = itertools.cycle(_ANNOTATIONS)
        try:
            # Two rounds, since a stage may have fewer objects than there are texts.
            for _ in range(2):
                _ask_everything(self, [_saying(next(texts), keys, each) for each in objects])
        except ContractViolation:
            # Each text alone, to name the one that does it. If it takes several of them, the first violation
            # stands.
            for text in _ANNOTATIONS:
                self._with_one_text(text, keys, objects)
            raise

    def _with_one_text(self, text: str, keys: Collection[str], objects: Sequence[Node | Pod]) -> None:
        try:
            _ask_everything(self, [_saying(text, keys, each) for each in objects])
        except ContractViolation as violation:
            where = "labels and annotations" if text in _LABELS else "annotations"
            violated(
                f"where {where} of pods and nodes ({', '.join(sorted(keys))}) are {text!r}: {violation.wrong}",
                violation.remedy,
                violation.__cause__,
            )


class WatchedText(FrozenDict[str, str]):
    """A dict that records look-ups."""

    __slots__ = ("_looked_up",)

    def __init__(self, texts: FrozenDict[str, str], looked_up: set[str]) -> None:
        super().__init__(texts)
        self._looked_up = looked_up

    def __getitem__(self, key: str) -> str:
        self._looked_up.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]  # dict's overloads
        self._looked_up.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            self._looked_up.add(key)
        return super().__contains__(key)


def _objects(stage: PluginStage) -> list[Node | Pod]:
    return [*(info.node for info in stage.nodes), *stage.cluster.list(Pod)]


def _saying(text: str, keys: Collection[str], obj: Node | Pod) -> Node | Pod:
    """Return the object with this text in all annotations with these keys, and in labels if it is a valid value."""
    written = dict.fromkeys(keys, text)
    return _with(obj, lambda texts: FrozenDict({**texts, **written}), labels=text in _LABELS)


def _with(obj: Node | Pod, change: Callable[[Texts], Texts], *, labels: bool = True) -> Node | Pod:
    metadata = attrs.evolve(obj.metadata, annotations=change(obj.annotations))
    if labels:
        metadata = attrs.evolve(metadata, labels=change(obj.labels))
    return obj.with_metadata(metadata)


def _ask_everything(subject: Subject, objects: Iterable[Node | Pod]) -> None:
    stage = PluginStage(subject, objects)
    stage.books()
    if stage.hooks.has("events_to_register"):
        ask_hints(subject, stage)
