"""Selectors of DeviceClasses and ResourceClaims: expressions in CEL about one device.

A selector goes through these modules: `lexer`, `parser` with `macros`, `checker` (types), `evaluator` (a
program of `steps`) and `estimate` (with `call_estimates`); `functions` is the table that
`standard`, `strings`, `containers`, `kubernetes`, `formats` and `network` fill.

This is an implementation of our own because no library has Kubernetes' semantics. common-expression-language,
cel-expr-python and cel-python don't count costs during evaluation; and the first and the last don't know the
static types of Kubernetes' environment, which decide what compiles. Only patterns come from a library,
google-re2, since they are RE2's.
"""

from kschedfw.cel.budget import STEPS_PER_SECOND, Budget, OutOfStepsError
from kschedfw.cel.kubernetes import Version
from kschedfw.cel.selector import COST_LIMIT, AttributeValue, DeviceInput, Selector, compile_selector
from kschedfw.cel.values import SelectorError

__all__ = [
    "COST_LIMIT",
    "STEPS_PER_SECOND",
    "AttributeValue",
    "Budget",
    "DeviceInput",
    "OutOfStepsError",
    "Selector",
    "SelectorError",
    "Version",
    "compile_selector",
]
