"""The prices of nodes, by a label, for the metrics of cost."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

import attrs

from kschedfw import Node
from kschedfw.api.reading import shown
from kschedfw_lab.sweep.errors import SweepError, similar

NANO: Final = 1_000_000_000
_HIGHEST: Final = Decimal(1_000_000)
_LABEL: Final = "node.kubernetes.io/instance-type"
_KEYS: Final = ("prices", "priceLabel")


@attrs.frozen
class Prices:
    """Hourly prices in billionths of a currency, by the value of a node label."""

    label: str
    by_value: Mapping[str, int]

    def of(self, node: Node) -> int:
        """Return the node's price.

        Raises:
            SweepError: the node has none.
        """
        value = node.labels.get(self.label)
        if value is None or value not in self.by_value:
            found = f"{self.label}={value}" if value is not None else f"no label {self.label}"
            raise SweepError(f"node {node.name}: there is no price for it: it has {found}")
        return self.by_value[value]

    def to_json(self) -> dict[str, object]:
        return {"priceLabel": self.label, "prices": dict(self.by_value)}


def read_prices(given: object) -> Prices:
    """Return the prices in a specification. Their format is that of the arguments of the plugin CostAware.

    Raises:
        SweepError: they are invalid. The caller adds the word `cost`.
    """
    if not isinstance(given, Mapping):
        raise SweepError(f"expected prices and perhaps priceLabel, found {shown(given)}")
    for key in given:
        if key not in _KEYS:
            raise SweepError.at(str(key), f"unknown field; {similar(str(key), _KEYS)}")
    label = given.get("priceLabel", _LABEL)
    if not isinstance(label, str) or not label:
        raise SweepError.at("priceLabel", f"expected the name of a label, found {shown(label)}")
    listed = given.get("prices")
    if not isinstance(listed, (list, tuple)) or not listed:
        raise SweepError.at("prices", "expected a list of value and hourlyPrice")
    prices: dict[str, int] = {}
    for index, each in enumerate(listed):
        place = f"prices[{index}]"
        if not isinstance(each, Mapping) or set(each) != {"value", "hourlyPrice"}:
            raise SweepError.at(place, f"expected value and hourlyPrice, found {shown(each)}")
        value = each["value"]
        if not isinstance(value, str) or value in prices:
            problem = "is there twice" if value in prices else "expected a text"
            raise SweepError.at(f"{place}.value", f"{shown(value)}: {problem}")
        prices[value] = _nano_price(f"{place}.hourlyPrice", each["hourlyPrice"])
    return Prices(label, prices)


def _nano_price(place: str, given: object) -> int:
    try:
        price = Decimal(str(given))
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 <= price <= _HIGHEST:
        raise SweepError.at(place, f"expected a decimal number from 0 to {_HIGHEST}, found {shown(given)}")
    # Whole numbers: sums don't depend on the order, and are equal on every machine.
    return int(price * NANO)
