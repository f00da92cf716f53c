"""Amounts of resources as text that says them exactly."""

from __future__ import annotations

from kschedfw import Quantity, Resource
from kschedfw.api import CPU, EPHEMERAL_STORAGE, MEMORY, QuantityFormat, is_huge_pages

_MIB = 1 << 20
_STEP = 1024


def exact_text(resource: str, amount: int) -> str:
    """Return the text that stands for exactly this amount, given in the resource's unit (CPU: millicores)."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    return str(Quantity.of(amount, _format(resource)))


def plain_text(resource: str, amount: int) -> str:
    """Return the amount for people, in cores or in the largest binary unit, rounded to hundredths: `31.85`, `7.6Gi`."""
    if resource == CPU:
        return f"{amount / 1000:.2f}".rstrip("0").rstrip(".")
    if _format(resource) is not QuantityFormat.BINARY_SI:
        return str(amount)
    size, unit = float(amount), ""
    for unit in ("", "Ki", "Mi", "Gi", "Ti"):
        if size < _STEP or unit == "Ti":
            break
        size /= _STEP
    return f"{size:.2f}".rstrip("0").rstrip(".") + unit


def quantity_of(resource: str, amount: int) -> Quantity:
    """The amount in the resource's unit as a quantity."""
    return Quantity.parse(exact_text(resource, amount))


def step_of(resource: str) -> int:
    """Return the unit for rounding amounts: 1 MiB for resources counted in bytes, since nobody writes single bytes."""
    return _MIB if _format(resource) is QuantityFormat.BINARY_SI else 1


def rounded(resource: str, amount: int, *, up: bool) -> int:
    """Return the amount, rounded up or down to whole steps (`step_of`)."""
    step = step_of(resource)
    return (-(-amount // step) if up else amount // step) * step


def amounts_text(resource: Resource) -> str:
    """All amounts that aren't 0, such as `cpu 500m, memory 1Gi`."""
    return ", ".join(f"{name} {exact_text(name, amount)}" for name, amount in resource.items() if amount)


def _format(resource: str) -> QuantityFormat:
    is_size = resource in (MEMORY, EPHEMERAL_STORAGE) or is_huge_pages(resource)
    return QuantityFormat.BINARY_SI if is_size else QuantityFormat.DECIMAL_SI
