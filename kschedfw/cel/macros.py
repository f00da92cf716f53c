"""The macros of CEL, which stand for comprehensions, calls and presence tests."""

import copy
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from kschedfw.cel.syntax import (
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


def _map(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    variable, *conditions, element = arguments
    step = _if(offset, conditions[0] if conditions else None, _appending(offset, element))
    return _fold(offset, target, [variable], ListLiteral(offset, []), step)


def _filter(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    variable, predicate = arguments
    step = _if(offset, predicate, _appending(offset, copy.copy(variable)))
    return _fold(offset, target, [variable], ListLiteral(offset, []), step)


def _transform_list(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    first, second, *conditions, element = arguments
    step = _if(offset, conditions[0] if conditions else None, _appending(offset, element))
    return _fold(offset, target, [first, second], ListLiteral(offset, []), step)


def _transform_map(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    first, second, *conditions, value = arguments
    insert = Call(offset, "cel.@mapInsert", None, [_accumulator(offset), copy.copy(first), value])
    step = _if(offset, conditions[0] if conditions else None, insert)
    return _fold(offset, target, [first, second], MapLiteral(offset, []), step)


def _transform_map_entry(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    first, second, *conditions, entry = arguments
    insert = Call(offset, "cel.@mapInsert", None, [_accumulator(offset), entry])
    step = _if(offset, conditions[0] if conditions else None, insert)
    return _fold(offset, target, [first, second], MapLiteral(offset, []), step)


def _binding(offset: int, variable: str, value: SyntaxNode, result: SyntaxNode) -> SyntaxNode:
    return Comprehension(
        offset,
        ListLiteral(offset, []),
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


def _opt_map(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    return _mapped_optional(
        offset, target, arguments, "optMap", lambda value: Call(offset, "optional.of", None, [value])
    )


def _opt_flat_map(offset: int, target: SyntaxNode | None, arguments: list[SyntaxNode]) -> SyntaxNode:
    return _mapped_optional(offset, target, arguments, "optFlatMap", lambda value: value)


_MAX_TARGET: Final = 10_000
"""Nodes of what `optMap` is called on: each such call doubles them."""


def _all_nodes(root: SyntaxNode) -> Iterator[SyntaxNode]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children)


def _mapped_optional(
    offset: int,
    target: SyntaxNode | None,
    arguments: list[SyntaxNode],
    name: str,
    made: Callable[[SyntaxNode], SyntaxNode],
) -> SyntaxNode:
    variable, expression = arguments
    if not isinstance(variable, Ident):
        raise MacroError(variable, f"{name}() variable name must be a simple identifier")
    present = Call(offset, "hasValue", target, [])
    if target is not None and len(list(islice(_all_nodes(target), _MAX_TARGET))) == _MAX_TARGET:
        raise MacroError(variable, f"{name}() is called on an expression that is too large")
    # The target is evaluated again where its value is needed: both calls share it.
    content = Call(offset, "value", target, [])
    bound = _binding(offset, variable.name, content, expression)
    return Call(offset, "_?_:_", None, [present, made(bound), Call(offset, "optional.none", None, [])])


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


MACROS: Final[dict[tuple[str, int, bool], Macro]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all,
    ("exists", 2, True): _exists,
    ("exists_one", 2, True): _exists_one,
    ("existsOne", 2, True): _exists_one,
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("all", 3, True): _all,
    ("exists", 3, True): _exists,
    ("exists_one", 3, True): _exists_one,
    ("existsOne", 3, True): _exists_one,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _opt_map,
    ("optFlatMap", 2, True): _opt_flat_map,
    ("sortBy", 2, True): _sort_by,
}
"""Macros by name, number of arguments, and whether they are called on a target."""
