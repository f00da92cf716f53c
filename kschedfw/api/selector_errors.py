"""The errors of label selectors that a validating API server would have refused.

Texts: apimachinery `metav1.LabelSelectorAsSelector` and `labels.NewRequirement` (v1.36).
"""

from __future__ import annotations

from collections.abc import Sequence

from kschedfw.api.field_errors import FieldError
from kschedfw.api.names import label_value_problems, qualified_name_problems
from kschedfw.api.selectors import LabelSelector, Operator, Requirement


def selector_error(selector: LabelSelector | None) -> str | None:
    """Return the first reason why the selector can't be compiled; None if it can."""
    if selector is None:
        return None
    for key, value in selector.match_labels.items():
        # Made and asked only where something is wrong: in a stream of pods that differ, each selector is new.
        if qualified_name_problems(key) or label_value_problems(value):
            return joined(_requirement_errors(Requirement(key, Operator.IN, (value,))))
    for requirement in selector.match_expressions:
        if texts := _requirement_errors(requirement):
            return joined(texts)
    return None


def joined(errors: Sequence[str]) -> str:
    """Return several errors in one text (apimachinery `errors.Aggregate`)."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _requirement_errors(requirement: Requirement) -> Sequence[str]:
    """Return the requirement's errors, each once."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator in (Operator.GT, Operator.LT):
        return [f'"{operator}" is not a valid label selector operator']
    errors = []
    if problems := qualified_name_problems(key):
        errors.append(str(FieldError.invalid("key", key, "; ".join(problems))))
    if operator in (Operator.IN, Operator.NOT_IN):
        if not values:
            why = "for 'in', 'notin' operators, values set can't be empty"
            errors.append(f"values: Invalid value: []: {why}")
    elif values:
        shown = ",".join(f'"{value}"' for value in values)
        errors.append(
            f"values: Invalid value: [{shown}]: values set must be empty for exists and does not exist"
        )
    for index, value in enumerate(values):
        if problems := label_value_problems(value):
            errors.append(str(FieldError.invalid(f"values[{index}][{key}]", value, "; ".join(problems))))
    return list(dict.fromkeys(errors)) if errors else ()
