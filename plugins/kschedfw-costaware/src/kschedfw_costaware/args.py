"""Arguments of the plugin CostAware: the prices of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

import attrs

from kschedfw import FieldError

NANO = 1_000_000_000
_HIGHEST = Decimal(1_000_000)


def nano_price(text: str) -> int:
    """Parse a price and return it in billionths, rounded down.

    Raises:
        ValueError: the text isn't a decimal number from 0 to 1,000,000.
    """
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 <= price <= _HIGHEST:
        raise ValueError(f"must be a decimal number from 0 to {_HIGHEST}")
    return int(price * NANO)


@attrs.frozen
class InstancePrice:
    """The hourly price of nodes whose price label has this value. All prices are in one currency, which isn't named."""

    value: str
    hourly_price: str


@attrs.frozen
class CostAwareArgs:
    """Arguments of CostAware. A node's price is the entry of `prices` with the value of its label `price_label`."""

    prices: tuple[InstancePrice, ...] = ()
    price_label: str = "node.kubernetes.io/instance-type"

    def validate(self) -> Iterator[FieldError]:
        if not self.prices:
            yield FieldError.required("prices", "without prices all nodes cost the same")
        if not self.price_label:
            yield FieldError.required("priceLabel")
        seen = set()
        for index, price in enumerate(self.prices):
            if price.value in seen:
                yield FieldError(f"prices[{index}].value", f'Duplicate value: "{price.value}"')
            seen.add(price.value)
            try:
                nano_price(price.hourly_price)
            except ValueError as error:
                yield FieldError.invalid(f"prices[{index}].hourlyPrice", price.hourly_price, str(error))
