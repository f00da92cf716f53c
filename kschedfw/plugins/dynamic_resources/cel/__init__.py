"""Selectors of DeviceClasses and ResourceClaims: expressions in CEL about one device."""

from kschedfw.plugins.dynamic_resources.cel.kubernetes import Version
from kschedfw.plugins.dynamic_resources.cel.selector import (
    COST_LIMIT,
    AttributeValue,
    DeviceInput,
    Selector,
    compile_selector,
)
from kschedfw.plugins.dynamic_resources.cel.values import SelectorError

__all__ = [
    "COST_LIMIT",
    "AttributeValue",
    "DeviceInput",
    "Selector",
    "SelectorError",
    "Version",
    "compile_selector",
]
