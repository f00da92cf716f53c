"""Of mistakes planted in an export, the answer names the mistake first, and what it says to change helps."""

from __future__ import annotations

import pytest
from planted import MISTAKES, Mistake, advice, answers, placed_after


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.workload)
def test_the_first_advice_names_the_mistake(mistake: Mistake) -> None:
    first = advice(answers()[mistake.workload])[0]
    assert mistake.is_told_by(first), first


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.workload)
def test_the_first_edits_made_to_a_copy_of_the_export_get_the_pods_a_place(mistake: Mistake) -> None:
    kind = answers()[mistake.workload]
    for remedy in kind["helps"][:1]:
        assert placed_after(remedy, kind) == remedy["placed"], remedy["changes"]
