"""Selectors in CEL mean what kube-scheduler v1.36 was observed to make of them."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kschedfw_devices.cel import (
    COST_LIMIT,
    AttributeValue,
    Budget,
    DeviceInput,
    SelectorError,
    Version,
    compile_selector,
)

from kschedfw.api import Quantity

DATA = Path(__file__).parent / "data" / "selectors" / "cel.jsonl.gz"
SELECTORS, EVALUATIONS = 500, 2499  # so that the file can't quietly shrink

pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    with gzip.open(DATA) as lines:
        return [msgspec.json.decode(line) for line in lines]


def attribute(value: Mapping[str, Any]) -> AttributeValue:
    ((kind, content),) = value.items()
    made: AttributeValue = Version.parse(content) if kind == "version" else content
    return made


def device_input(recorded: Mapping[str, Any]) -> DeviceInput:
    device = recorded["device"]
    return DeviceInput(
        recorded["driver"],
        {name: attribute(value) for name, value in device.get("attributes", {}).items()},
        {name: Quantity.parse(given["value"]) for name, given in device.get("capacity", {}).items()},
        device.get("allowMultipleAllocations", False),
    )


def test_what_does_not_compile_and_why(recorded: list[dict[str, Any]]) -> None:
    assert len(recorded) == SELECTORS
    for line in recorded:
        compiled = compile_selector(line["expression"])
        assert compiled.compile_error == line["expected"].get("compileError"), line["name"]


def test_the_static_estimate(recorded: list[dict[str, Any]]) -> None:
    for line in recorded:
        expected, compiled = line["expected"], compile_selector(line["expression"])
        if compiled.compile_error is None:
            assert compiled.max_cost == expected["maxCost"], line["name"]
            assert (compiled.max_cost > COST_LIMIT) is expected["tooComplex"]


@pytest.mark.slow
def test_matches_errors_and_costs(recorded: list[dict[str, Any]]) -> None:
    evaluations = limited = 0
    for line in recorded:
        compiled = compile_selector(line["expression"])
        for device, expected in zip(line["devices"], line["expected"].get("results") or (), strict=False):
            evaluations += 1
            given = device_input(device)
            if expected.get("cost") is not None and expected["cost"] <= COST_LIMIT:
                assert compiled.cost(given) == expected["cost"], line["name"]
            if "varies" in expected:
                continue
            if "error" in expected:
                with pytest.raises(SelectorError) as caught:
                    compiled.matches(given, Budget())
                assert str(caught.value) == expected["error"], line["name"]
                limited += "cost limit" in expected["error"]
            else:
                assert compiled.matches(given, Budget()) is expected["match"], line["name"]
    assert evaluations == EVALUATIONS
    assert limited > 0
