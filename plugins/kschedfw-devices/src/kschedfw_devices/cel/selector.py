"""Selectors of devices: `compile_selector` once an expression, `Selector.matches` once a device.

The source of the semantics is k8s.io/dynamic-resource-allocation/cel in v1.36: the variable `device`, the
available libraries, and the cost limit.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Final

import attrs

from kschedfw.api import Quantity
from kschedfw_devices.cel.budget import Budget
from kschedfw_devices.cel.checker import check
from kschedfw_devices.cel.estimate import estimated_cost
from kschedfw_devices.cel.evaluator import Program, plan
from kschedfw_devices.cel.kubernetes import Amount, Version
from kschedfw_devices.cel.parser import parse
from kschedfw_devices.cel.types import ANY, BOOL
from kschedfw_devices.cel.values import CompileError, Map, SelectorError, Value, type_name

AttributeValue = bool | int | str | Version
"""The value of a device's attribute."""

COST_LIMIT: Final = 1_000_000
"""The limit of a selector's estimated cost, and of an evaluation's cost (`CELSelectorExpressionMaxCost`)."""

_MAX_LENGTH: Final = 10 * 1024
"""The maximal length of an expression in bytes (`CELSelectorExpressionMaxLength`)."""

_UNKNOWN_COST: Final = 2**64 - 1
_CACHED: Final = 1024
_EMPTY: Final = Map()


@attrs.frozen
class DeviceInput:
    """The value of `device` in an expression."""

    driver: str
    attributes: Mapping[str, AttributeValue] = attrs.field(factory=dict)
    """Attributes by name: `model`, which is in the driver's domain, or `gpu.example.com/model`."""
    capacity: Mapping[str, Quantity] = attrs.field(factory=dict)
    """Capacities by name, as in `attributes`."""
    allow_multiple_allocations: bool = False

    @functools.cached_property
    def value(self) -> Map:
        """The device as a value of CEL, made once."""
        return Map.of_strings(
            {
                "driver": self.driver,
                "allowMultipleAllocations": self.allow_multiple_allocations,
                "attributes": self._by_domain(self.attributes),
                "capacity": self._by_domain({name: Amount.of(q) for name, q in self.capacity.items()}),
            }
        )

    def _by_domain(self, named: Mapping[str, Value]) -> Map:
        domains: dict[str, dict[str, Value]] = {}
        for name, value in named.items():
            domain, slash, identifier = name.partition("/")
            if not slash:
                domain, identifier = self.driver, name
            domains.setdefault(domain, {})[identifier] = value
        return _Domains.of_strings({domain: Map.of_strings(values) for domain, values in domains.items()})


class _Domains(Map):
    """Attributes or capacities by domain. Looking up a missing domain returns an empty map.

    `in`, `size` and macros see only existing domains: Kubernetes gives only the lookup a default.
    """

    __slots__ = ()

    def field(self, name: str) -> Value:
        return self._values.get(name, _EMPTY)

    def find(self, key: Value) -> tuple[Value, bool]:
        value, present = super().find(key)
        return (value, True) if present else (_EMPTY, True)


@attrs.frozen
class CompiledSelector:
    """A compiled expression. Made by `compile_selector`."""

    expression: str
    compile_error: str | None
    """The compilation error in Kubernetes' words; None if the selector compiles."""
    max_cost: int
    """The static upper estimate of an evaluation's cost; above `COST_LIMIT` the API server refuses the expression."""
    _program: Program | None = attrs.field(repr=False, default=None)

    def matches(self, device: DeviceInput, budget: Budget | None = None) -> bool:
        """Return whether the expression is true of `device`.

        Args:
            device: the value of `device` in the expression.
            budget: pays for the steps; None: only `COST_LIMIT` limits them.

        Raises:
            SelectorError: it doesn't compile; it ends with an error; it costs more than `COST_LIMIT`; its value
                is no bool. The text is Kubernetes'.
            OutOfStepsError: the budget is spent.
        """
        if self._program is None:
            raise SelectorError(self.compile_error)
        result = self._program.evaluate(device.value, COST_LIMIT, budget or Budget())
        if result is True or result is False:
            return result
        name = type_name(result)
        why = _CONVERSIONS.get(name, f"type conversion error from '{name}' to 'bool'")
        raise SelectorError(f"CEL result of type {name} could not be converted to bool: {why}")

    def cost(self, device: DeviceInput) -> int:
        """Return the cost of the evaluation for `device`, even if it ends with an error; 0 if it doesn't compile."""
        return 0 if self._program is None else self._program.cost(device.value, COST_LIMIT)


_CONVERSIONS: Final = {
    "int": "unsupported type conversion from 'int' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
}


def compile_selector(expression: str) -> CompiledSelector:
    """Compile a selector; equal expressions are compiled once.

    An invalid one raises nothing here: see `Selector.compile_error`; its `max_cost` is the largest uint64.
    """
    return _compile(expression)


@functools.lru_cache(maxsize=_CACHED)
def _compile(expression: str) -> CompiledSelector:
    try:
        if len(expression.encode(errors="surrogatepass")) > _MAX_LENGTH:
            raise CompileError(f"Too long: may not be more than {_MAX_LENGTH} bytes")
        tree = parse(expression)
        type = check(tree, expression)
        if type not in (BOOL, ANY):
            raise CompileError(f"must evaluate to bool or the unknown type, not {type.full_name}")
        program = plan(tree)
    # It is raised, too, if the library for patterns isn't installed.
    except SelectorError as error:
        return CompiledSelector(expression, str(error), _UNKNOWN_COST)
    return CompiledSelector(expression, None, estimated_cost(tree), program)
