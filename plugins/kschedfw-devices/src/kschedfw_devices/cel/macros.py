"""The macros of CEL, which stand for comprehensions, calls and presence tests."""

import copy
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from kschedfw_devices.cel.syntax import (
    ACCUMULATOR,
    Call,
    Comprehension,
    Ident,
    Issue,
    ListLiteral,
    Literal,
    MapLiteral,
    Select,
    SyntaxNode,
)


class MacroError(Exception):
    """The error of a macro with arguments that it can't take."""

    def __init__(self, node: SyntaxNode, message: str) -> None:
        super().__init__(message)
        self.issue = Issue(node.offset, message)


Macro = Callable[[int, SyntaxNode | None, list[SyntaxNode]], SyntaxNode | None]
"""Takes the offset of the call, its target and arguments; gives None where it is an ordinary call after all."""


def _has(offset: int, _: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    selection = arguments[0]
    if not isinstance(selection, Select) or selection.optional or selection.test:
        raise MacroError(selection, "invalid argument to has() macro")
    return Select(offset, selection.operand, selection.field, test=True)


def _variables(arguments: list[SyntaxNode]) -> tuple[str, str | None]:
    """Return the names of the variables, one or two, that a macro binds."""
    names = []
    for argument in arguments:
        if not isinstance(argument, Ident) or argument.name.startswith("."):
            raise MacroError(argument, "argument must be a simple name")
        # A name that cel-go refuses; the accumulator is `@result` here.
        if argument.name == "__result__":
            raise MacroError(argument, "iteration variable overwrites accumulator variable")
        names.append(argument.name)
    if len(names) == 2 and names[0] == names[1]:
        raise MacroError(arguments[1], f"duplicate variable name: {names[0]}")
    return names[0], names[1] if len(names) == 2 else None


def _fold(
    offset: int,
    target: SyntaxNode | None,
    variables: list[SyntaxNode],
    initial: SyntaxNode,
    step: SyntaxNode,
    condition: SyntaxNode | None = None,
    result: SyntaxNode | None = None,
) -> SyntaxNode:
    assert target is not None
    first, second = _variables(variables)
    result = result or _accumulator(offset)
    condition = condition or Literal(offset, True)
    return Comprehension(offset, target, first, second, ACCUMULATOR, initial, condition, step, result)


def _accumulator(offset: int) -> SyntaxNode:
    return Ident(offset, ACCUMULATOR)


def _all(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    *variables, predicate = arguments
    condition = Call(offset, "@not_strictly_false", None, [_accumulator(offset)])
    step = Call(offset, "_&&_", None, [_accumulator(offset), predicate])
    return _fold(offset, target, variables, Literal(offset, True), step, condition)


def _exists(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    *variables, predicate = arguments
    unsettled = Call(offset, "!_", None, [_accumulator(offset)])
    condition = Call(offset, "@not_strictly_false", None, [unsettled])
    step = Call(offset, "_||_", None, [_accumulator(offset), predicate])
    return _fold(offset, target, variables, Literal(offset, False), step, condition)


def _exists_one(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    *variables, predicate = arguments
    more = Call(offset, "_+_", None, [_accumulator(offset), Literal(offset, 1)])
    result = Call(offset, "_==_", None, [_accumulator(offset), Literal(offset, 1)])
    return _fold(offset, target, variables, Literal(offset, 0), _if(offset, predicate, more), None, result)


def _if(offset: int, condition: SyntaxNode | None, changed: SyntaxNode) -> SyntaxNode:
    """Return the step that changes the accumulator only where the condition, if any, holds."""
    if condition is None:
        return changed
    return Call(offset, "_?_:_", None, [condition, changed, _accumulator(offset)])


def _appending(offset: int, element: SyntaxNode) -> SyntaxNode:
    return Call(offset, "_+_", None, [_accumulator(offset), ListLiteral(offset, [element])])


def _inserting(offset: int, *entry: SyntaxNode) -> SyntaxNode:
    return Call(offset, "cel.@mapInsert", None, [_accumulator(offset), *entry])


def _gathering(
    count: int,
    empty: type[ListLiteral] | type[MapLiteral],
    added: Callable[[int, SyntaxNode, SyntaxNode], SyntaxNode],
) -> Callable[[int, SyntaxNode | None, list[SyntaxNode]], SyntaxNode]:
    """Return a macro with `count` variables that gathers values, perhaps only where a condition holds.

    `added` returns the step from the offset, the first variable and the expression of the value.
    """

    def macro(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
        variables, (*conditions, value) = arguments[:count], arguments[count:]
        step = _if(offset, conditions[0] if conditions else None, added(offset, variables[0], value))
        return _fold(offset, target, variables, empty(offset, []), step)

    return macro


_map: Final = _gathering(1, ListLiteral, lambda offset, _, element: _appending(offset, element))
_transform_list: Final = _gathering(2, ListLiteral, lambda offset, _, element: _appending(offset, element))
_transform_map: Final = _gathering(
    2, MapLiteral, lambda offset, key, value: _inserting(offset, copy.copy(key), value)
)
_transform_map_entry: Final = _gathering(2, MapLiteral, lambda offset, _, entry: _inserting(offset, entry))


def _filter(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    variable, predicate = arguments
    step = _if(offset, predicate, _appending(offset, copy.copy(variable)))
    return _fold(offset, target, [variable], ListLiteral(offset, []), step)


def _binding(offset: int, variable: str, value: SyntaxNode, result: SyntaxNode) -> SyntaxNode:
    return Comprehension(
        offset,
        ListLiteral(offset, []),
        # Like the names with `@`, one that no expression can write.
        "#unused",
        None,
        variable,
        value,
        Literal(offset, False),
        Ident(offset, variable),
        result,
    )


def _bind(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    variable, value, result = arguments
    if not isinstance(variable, Ident):
        raise MacroError(variable, "cel.bind() variable names must be simple identifiers")
    return _binding(offset, variable.name, value, result)


_MAX_TARGET: Final = 10_000
"""The most nodes of an expression that `optMap` is called on: each call doubles them."""


def _all_nodes(root: SyntaxNode) -> Iterator[SyntaxNode]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children)


def _mapping_optional(name: str, made: Callable[[int, SyntaxNode], SyntaxNode]) -> Macro:
    """Return a macro for the value of an optional; `made` makes the result of the offset and the expression."""

    def macro(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
        variable, expression = arguments
        if not isinstance(variable, Ident):
            raise MacroError(variable, f"{name}() variable name must be a simple identifier")
        present = Call(offset, "hasValue", target, [])
        if target is not None and len(list(islice(_all_nodes(target), _MAX_TARGET))) == _MAX_TARGET:
            raise MacroError(variable, f"{name}() is called on an expression that is too large")
        # The target is evaluated again where its value is needed: both calls share it.
        content = Call(offset, "value", target, [])
        bound = made(offset, _binding(offset, variable.name, content, expression))
        return Call(offset, "_?_:_", None, [present, bound, Call(offset, "optional.none", None, [])])

    return macro


def _sort_by(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    name = "@__sortBy_input__"
    assert target is not None
    if isinstance(target, (Literal, MapLiteral)):
        raise MacroError(
            target,
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    keys = _map(offset, Ident(offset, name), arguments)
    return _binding(offset, name, target, Call(offset, "@sortByAssociatedKeys", Ident(offset, name), [keys]))


_ON_TARGET: Final[dict[str, tuple[Macro, tuple[int, ...]]]] = {
    "all": (_all, (2, 3)),
    "exists": (_exists, (2, 3)),
    "exists_one": (_exists_one, (2, 3)),
    "existsOne": (_exists_one, (2, 3)),
    "map": (_map, (2, 3)),
    "filter": (_filter, (2,)),
    "transformList": (_transform_list, (3, 4)),
    "transformMap": (_transform_map, (3, 4)),
    "transformMapEntry": (_transform_map_entry, (3, 4)),
    "bind": (_bind, (3,)),
    "optMap": (_mapping_optional("optMap", lambda at, value: Call(at, "optional.of", None, [value])), (2,)),
    "optFlatMap": (_mapping_optional("optFlatMap", lambda _, value: value), (2,)),
    "sortBy": (_sort_by, (2,)),
}
MACROS: Final[dict[tuple[str, int, bool], Macro]] = {
    ("has", 1, False): _has,
    **{(name, count, True): macro for name, (macro, counts) in _ON_TARGET.items() for count in counts},
}
"""Macros by name, number of arguments, and whether they are called on a target."""
