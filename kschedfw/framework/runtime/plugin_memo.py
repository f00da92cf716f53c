"""Counts of the questions to a plugin, and the reason if its answers can't be kept."""

from __future__ import annotations

import logging

import attrs

from kschedfw.framework.plugin import AnyPlugin, Plugin

_log = logging.getLogger(__name__)


@attrs.define
class PluginMemo:
    """Counts of the calls of a plugin's filter and score.

    `rows_asked` counts the nodes for which either form of the hooks was called (roughly, where several threads
    ask). `classes_signed` counts kinds of pods for which answers were kept, `classes_unsigned` those that the
    plugin gave no signature. `objection` is the reason why no answers can be kept; empty if they can.
    """

    rows_asked: int = 0
    classes_signed: int = 0
    classes_unsigned: int = 0
    objection: str = ""

    @classmethod
    def of(cls, plugin: AnyPlugin) -> PluginMemo:
        missing = []
        if plugin.reads is None:
            missing.append("reads")
        if type(plugin).sign is Plugin.sign:
            missing.append("sign")
        return cls(objection=f"it doesn't declare {' and '.join(missing)}" if missing else "")

    def signing_failed(self, plugin: AnyPlugin, error: BaseException) -> None:
        """Record that `sign` failed, so that the plugin's answers can't be kept. Only the first failure is logged."""
        if not self.objection:
            self.objection = f"sign failed: {type(error).__name__}: {error}"
            _log.warning("plugin %s: %s; its answers aren't kept", plugin.name, self.objection)
