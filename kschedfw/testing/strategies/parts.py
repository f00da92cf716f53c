"""Parts of manifests: amounts, labels and selectors, from small sets."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kschedfw.api.defaults import NAMESPACE_NAME_LABEL
from kschedfw.api.quantity import Quantity

Manifest = dict[str, Any]


def _one_in(number: int) -> st.SearchStrategy[bool]:
    """Return a strategy of True once in this number of draws, and False in the smallest one."""
    return st.integers(0, number - 1).map(lambda drawn: drawn == number - 1)


ONE_IN_THREE, ONE_IN_FOUR, ONE_IN_FIVE, ONE_IN_TEN = map(_one_in, (3, 4, 5, 10))

NAMESPACES = ("default", "team-a", "team-b")
ZONES = ("zone-1", "zone-2", "zone-3")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
GPU = "example.com/gpu"

LABELS = {
    "app": ("web", "db", "cache"),
    "tier": ("front", "back"),
    "kubernetes.io/arch": ("amd64", "arm64"),
    "generation": ("1", "7", "12"),
}


def quantity_texts(largest: int = 10_000) -> st.SearchStrategy[str]:
    """Return a strategy of texts of non-negative quantities, in all notations."""
    whole = st.integers(0, largest)
    suffixes = st.sampled_from(["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3"])
    fractions = st.builds("{}.{}".format, whole, st.integers(0, 999))
    return st.builds("{}{}".format, whole | fractions, suffixes)


def quantities(largest: int = 10_000) -> st.SearchStrategy[Quantity]:
    return quantity_texts(largest).map(Quantity.parse)


_CPU = st.lists(st.sampled_from(["0", "1m", "100m", "250m", "0.5", "1", "1500m", "4"]), max_size=2)
_MEMORY = st.lists(st.sampled_from(["0", "1", "64Mi", "128Mi", "1Gi", "1.5Gi", "500M", "4Gi"]), max_size=2)
_REQUESTS_OR_LIMITS = st.sampled_from(["requests", "limits"])


@st.composite
def resources(draw: st.DrawFn) -> Manifest:
    """Draw a container's `resources`: requests within limits, either of which may be missing."""
    given: Manifest = {"requests": {}, "limits": {}}
    for name, amounts in (("cpu", _CPU), ("memory", _MEMORY), ("ephemeral-storage", _MEMORY)):
        chosen = sorted(draw(amounts), key=Quantity.parse)
        if chosen:
            where = draw(_REQUESTS_OR_LIMITS) if len(chosen) == 1 else "requests"
            given[where][name] = chosen[0]
        if len(chosen) == 2:
            given["limits"][name] = chosen[1]
    if draw(ONE_IN_FIVE):
        # Extended resources can't be overcommitted: the request equals the limit.
        given["limits"][GPU] = str(draw(st.integers(0, 4)))
    return given


_KEYS = st.sampled_from(sorted(LABELS))
_PAIRS_OF = {key: st.tuples(st.just(key), st.sampled_from(values)) for key, values in LABELS.items()}
_PAIRS = _KEYS.flatmap(_PAIRS_OF.__getitem__)


def labels(most: int = len(LABELS)) -> st.SearchStrategy[dict[str, str]]:
    return st.lists(_PAIRS, max_size=most).map(dict)


def requirements(*, of_nodes: bool = False, least: int = -1) -> st.SearchStrategy[Manifest]:
    """Return a strategy of match expressions; those of nodes may compare numbers too, from `least` on.

    A number below 0 isn't a valid label value, so such an expression can't be compiled.
    """

    def with_values(key: str) -> st.SearchStrategy[Manifest]:
        values = st.lists(st.sampled_from(LABELS[key]), min_size=1, max_size=2, unique=True)
        sets = st.builds(
            lambda operator, chosen: {"key": key, "operator": operator, "values": chosen},
            st.sampled_from(["In", "NotIn"]),
            values,
        )
        existence = st.builds(
            lambda operator: {"key": key, "operator": operator},
            st.sampled_from(["Exists", "DoesNotExist"]),
        )
        comparisons = st.builds(
            lambda operator, number: {"key": key, "operator": operator, "values": [str(number)]},
            st.sampled_from(["Gt", "Lt"]),
            st.integers(least, 20),
        )
        return sets | existence | comparisons if of_nodes else sets | existence

    by_key = {key: with_values(key) for key in LABELS}
    return _KEYS.flatmap(by_key.__getitem__)


def label_selectors() -> st.SearchStrategy[Manifest]:
    expressions = st.lists(requirements(), max_size=2)
    return st.fixed_dictionaries({}, optional={"matchLabels": labels(2), "matchExpressions": expressions})


def namespace_selectors() -> st.SearchStrategy[Manifest]:
    """Return a strategy of selectors of namespaces by name, with any operator."""
    names = st.lists(st.sampled_from(NAMESPACES), min_size=1, max_size=2, unique=True)
    sets = st.builds(
        lambda operator, chosen: {"key": NAMESPACE_NAME_LABEL, "operator": operator, "values": chosen},
        st.sampled_from(["In", "NotIn"]),
        names,
    )
    existence = st.builds(
        lambda operator: {"key": NAMESPACE_NAME_LABEL, "operator": operator},
        st.sampled_from(["Exists", "DoesNotExist"]),
    )
    return st.builds(
        lambda expressions: {"matchExpressions": expressions},
        st.lists(sets | existence, min_size=1, max_size=2),
    )


def node_selector_terms(least: int = -1) -> st.SearchStrategy[Manifest]:
    """Return a strategy of node affinity terms; `least` as in `requirements`."""
    by_name = st.builds(
        lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
        st.sampled_from(["In", "NotIn"]),
        st.sampled_from(["node-0", "node-1"]),
    )
    return st.fixed_dictionaries(
        {},
        optional={
            "matchExpressions": st.lists(requirements(of_nodes=True, least=least), max_size=2),
            "matchFields": st.lists(by_name, max_size=1),
        },
    )
