"""A registry that changes the plugins of another registry, for example to one form, or to record their answers."""

from __future__ import annotations

from collections.abc import Callable

from kschedfw import AnyPlugin, Registry


class DerivedRegistry(Registry):
    """The plugins of another registry, each replaced by what `derive` returns for it."""

    def __init__(self, inner: Registry, derive: Callable[[type[AnyPlugin]], type[AnyPlugin]]) -> None:
        super().__init__(entry_points=False)
        self._inner = inner
        self._derive = derive

    def load(self, name: str) -> type[AnyPlugin]:
        if name not in super().names():
            self.register(self._derive(self._inner.load(name)))
        return super().load(name)

    def distribution(self, name: str) -> str | None:
        return self._inner.distribution(name)

    def names(self) -> list[str]:
        return self._inner.names()
