"""Label selectors as kubectl takes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.selector_text import LONGEST, SelectorSyntaxError, parse_selector, selector_text
from kschedfw.api.selectors import EVERYTHING, NOTHING, Operator, Requirement, Selector

KEYS = st.sampled_from(["app", "example.com/tier", "a.b-c_d", "in", "notin"])
VALUES = st.sampled_from(["", "web", "a.b", "x-1"])
REQUIREMENTS = st.one_of(
    st.builds(Requirement, KEYS, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        Requirement,
        KEYS,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(VALUES, min_size=1, max_size=3, unique=True).map(tuple),
    ),
)


@given(st.lists(REQUIREMENTS, min_size=1, max_size=4))
def test_what_is_written_is_what_is_read(requirements: list[Requirement]) -> None:
    selector = Selector(tuple(requirements))
    assert parse_selector(selector_text(selector)) == selector


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("app==web", "app=web"),
        (" app = web ,tier != db", "app=web,tier!=db"),
        ("zone in ( a,b )", "zone in (a,b)"),
        ("zone  notin(a)", "zone!=a"),
        ("! spot,gpu", "!spot,gpu"),
    ],
)
def test_several_spellings(text: str, same: str) -> None:
    assert selector_text(parse_selector(text)) == same


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is none of KEY=VALUE"),
        ("app=web,", "'' is none of"),
        ("app=web=x", "'app=web=x' is none of"),
        ("app in a", "'app in a' is none of"),
        ("app in (a", "'app in \\(a' is none of"),
        ("a>1", "'a>1': name part must consist of"),
        ("-app=web", "name part must consist of"),
        ("app=we b", "'app=we b' is none of"),
        ("app=_", "a valid label must be an empty string or consist of"),
        (f"app={'a' * LONGEST}", "at most 4,000"),
    ],
)
def test_what_is_no_selector_is_named(text: str, problem: str) -> None:
    with pytest.raises(SelectorSyntaxError, match=problem):
        parse_selector(text)


def test_everything_and_nothing_are_words() -> None:
    assert (selector_text(EVERYTHING), selector_text(NOTHING)) == ("everything", "nothing")
