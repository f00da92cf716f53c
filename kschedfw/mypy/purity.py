"""Reads and changes beside its arguments of a hook that promises to be pure, as far as its own source shows them.

Functions that the hook calls aren't followed, and no values: a table of the module that something else changes, or the
order of a set, is found by `PluginContract`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy.nodes import (
    AssignmentStmt,
    CallExpr,
    Context,
    Decorator,
    DelStmt,
    DictExpr,
    Expression,
    FuncDef,
    GlobalDecl,
    IndexExpr,
    ListExpr,
    MemberExpr,
    NameExpr,
    Node,
    NonlocalDecl,
    OperatorAssignmentStmt,
    RefExpr,
    SetExpr,
    Statement,
    StrExpr,
    TupleExpr,
    TypeInfo,
    Var,
)

_PURE_HOOKS: Final = ("pre_filter", "filter", "pre_score", "score", "normalize_score")
"""`kschedfw.framework.plugin.PURE_HOOKS`; mypy's process needn't import the framework for it."""

_ELSEWHERE: Final = {
    "time": "the clock",
    "datetime.datetime.now": "the clock",
    "datetime.datetime.today": "the clock",
    "datetime.datetime.utcnow": "the clock",
    "datetime.date.today": "the clock",
    "random": "a random generator that the scheduler doesn't seed",
    "numpy.random": "a random generator that the scheduler doesn't seed",
    "secrets": "a random generator that the scheduler doesn't seed",
    "uuid": "a random generator that the scheduler doesn't seed",
    "os.environ": "the environment",
    "os.getenv": "the environment",
    "os": "the system",
    "io.open": "a file",
    "builtins.open": "a file",
    "socket": "the network",
    "urllib": "the network",
    "subprocess": "another process",
    "threading": "the thread",
    "builtins.id": "where an object is in memory",
    "builtins.hash": "the hash seed of the process",
}
"""Modules and functions with an answer of their own at each call, and what they read."""

_CHANGING: Final = frozenset(
    {
        "append",
        "extend",
        "insert",
        "add",
        "update",
        "setdefault",
        "pop",
        "popitem",
        "remove",
        "discard",
        "clear",
    }
)
"""Methods that change the list, dict or set that they are called on."""

_REFERENCES: Final = frozenset(
    {"analyzed", "expanded", "expanded_from", "info", "node", "original_def", "subject_dummy"}
)
"""Attributes of nodes that lead elsewhere, or to a second form of the same source."""

Impurity = tuple[str, Context]


def impurities(marked: Decorator) -> Iterator[Impurity]:
    """Yield what a hook reads or changes beside its arguments, if its class promises that it is pure."""
    hook = marked.func
    if not hook.info or not _promises(hook.info, hook.name):
        return
    for argument in hook.arguments:
        if isinstance(argument.initializer, (ListExpr, DictExpr, SetExpr)):
            yield f'shares the default of "{argument.variable.name}" with all calls', argument
    reading = _Reading(hook)
    reading.walk(hook.body)
    yield from reading.found


def _promises(owner: TypeInfo, hook: str) -> bool:
    """Tell whether the body of the class has `pure = True`, or names the hook there."""
    if hook not in _PURE_HOOKS:
        return False
    for statement in owner.defn.defs.body:
        if isinstance(statement, AssignmentStmt) and any(
            _is_named(each, "pure") for each in statement.lvalues
        ):
            value = statement.rvalue
            if isinstance(value, TupleExpr):
                return any(isinstance(item, StrExpr) and item.value == hook for item in value.items)
            return _is_named(value, "True")
    return False


def _is_named(expression: Expression, name: str) -> bool:
    return isinstance(expression, NameExpr) and expression.name == name


class _Reading:
    """A walk through the body of a hook, which collects what isn't pure. Nothing is reported twice at one place."""

    def __init__(self, hook: FuncDef) -> None:
        self.found: list[Impurity] = []
        self._self = hook.arguments[0].variable if hook.arguments and not hook.is_static else None

    def walk(self, node: Node) -> None:
        match node:
            case AssignmentStmt():
                for each in node.lvalues:
                    self._changes(each)
            case OperatorAssignmentStmt():
                self._changes(node.lvalue)
            case DelStmt():
                self._changes(node.expr)
            case GlobalDecl():
                self.found.append((f'changes "{node.names[0]}" of the module', node))
            case NonlocalDecl():
                self.found.append((f'changes "{node.names[0]}" of the function around it', node))
            case CallExpr(callee=MemberExpr() as method) if method.name in _CHANGING:
                self._changes(method.expr, is_object=True)
            case MemberExpr(name="handle") if self._is_self(node.expr):
                self.found.append(("asks the handle", node))
                return
            # The name of a function tells more than that of its module, which would follow.
            case RefExpr() if found := _read_by(node):
                self.found.append((f"reads {found}", node))
                return
        for part in _parts(node):
            self.walk(part)

    def _changes(self, target: Expression, *, is_object: bool = False) -> None:
        """Note a change of an attribute of the plugin, or of an object that outlives the call."""
        if isinstance(target, TupleExpr):
            for item in target.items:
                self._changes(item)
            return
        while isinstance(target, IndexExpr):
            target, is_object = target.base, True
        if isinstance(target, MemberExpr) and self._is_self(target.expr):
            self.found.append((f'changes "{target.name}" of the plugin', target))
        # A local variable has no dot in its full name.
        elif (
            is_object
            and isinstance(target, NameExpr)
            and isinstance(target.node, Var)
            and "." in target.fullname
        ):
            self.found.append((f'changes "{target.name}" of the module', target))

    def _is_self(self, expression: Expression) -> bool:
        return isinstance(expression, NameExpr) and self._self is not None and expression.node is self._self


def _read_by(reference: RefExpr) -> str:
    """Return what this function, or its module, reads; empty if nothing is known of it."""
    name = reference.fullname
    while name and name not in _ELSEWHERE:
        name = name.rpartition(".")[0]
    return _ELSEWHERE.get(name, "")


def _parts(node: Node) -> Iterator[Node]:
    """Yield the statements and expressions that a node consists of.

    Not by mypy's own visitors: where mypy is compiled, no class that isn't can inherit from them.
    """
    for name in dir(node):
        if not name.startswith("_") and name not in _REFERENCES:
            yield from _nodes_in(getattr(node, name, None))


def _nodes_in(value: object) -> Iterator[Node]:
    if isinstance(value, (Expression, Statement)):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _nodes_in(each)
