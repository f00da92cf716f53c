"""How much is asked of each plugin, and why its answers aren't kept where they aren't."""

from __future__ import annotations

import logging

import attrs

from kschedfw.framework.plugin import AnyPlugin, Plugin

_log = logging.getLogger(__name__)


@attrs.define
class PluginMemo:
    """What a plugin's filter and score were asked.

    `rows_asked` counts the nodes about which either form of the hooks was called (about, where several threads ask).
    `classes_signed` counts kinds of pods for which answers were kept, `classes_unsigned` those that the plugin gave no
    signature. `objection` says why no answers can be kept; empty if they can.
    """

    rows_asked: int = 0
    classes_signed: int = 0
    classes_unsigned: int = 0
    objection: str = ""


class MemoCounters:
    """Counts for all plugins of a framework."""

    def __init__(self) -> None:
        self.by_plugin: dict[str, PluginMemo] = {}

    def of(self, plugin: AnyPlugin) -> PluginMemo:
        counts = self.by_plugin.get(plugin.name)
        if counts is None:
            counts = self.by_plugin[plugin.name] = PluginMemo(objection=objection(plugin))
        return counts

    def failed(self, plugin: AnyPlugin, error: BaseException) -> None:
        """Note that `sign` failed, so that the plugin's answers can't be kept."""
        counts = self.of(plugin)
        if not counts.objection:
            counts.objection = f"sign failed: {type(error).__name__}: {error}"
            _log.warning("plugin %s: %s; its answers aren't kept", plugin.name, counts.objection)


def objection(plugin: AnyPlugin) -> str:
    """Why no answer of the plugin can be kept; empty if it promises what is needed."""
    missing = []
    if plugin.reads is None:
        missing.append("reads")
    if type(plugin).sign is Plugin.sign:
        missing.append("sign")
    return f"it doesn't declare {' and '.join(missing)}" if missing else ""
