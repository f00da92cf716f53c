"""Selectors of DeviceClasses and ResourceClaims: expressions in CEL about one device.

A selector goes through these modules: `lexer`, `parser` with `macros`, `checker` (types), `evaluator` (a
program of `steps`) and `estimate` (with `call_estimates`); `functions` is the table that
`standard`, `strings`, `containers`, `kubernetes`, `formats` and `network` fill.

This is an implementation of our own because no library has Kubernetes' semantics. common-expression-language,
cel-expr-python and cel-python don't count costs during evaluation; and the first and the last don't know the
static types of Kubernetes' environment, which decide what compiles. Only patterns come from a library,
google-re2, since they are RE2's.

The names in `__init__.pyi` are imported when they are first used: a cluster without devices needs no compiler.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
