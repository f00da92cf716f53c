"""DynamicResources keeps the promises that every plugin gives."""

from __future__ import annotations

from kschedfw.testing import PluginContract


class TestDynamicResources(PluginContract):
    plugin = "DynamicResources"
    max_examples = 6
