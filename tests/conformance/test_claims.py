"""Scenarios whose claims can't be written as they were decided: the check goes on to the next decision."""

from __future__ import annotations

from typing import Any

import pytest

from kschedfw.framework.runtime.registry import Registry
from tests.conformance.decide import decide
from tests.conformance.scenario import Scenario

NODE = {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "8", "pods": "500"}}}
RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "a", "device": "d0"}
ALLOCATED = {"devices": {"results": [RESULT]}}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


def claim(status: dict[str, Any]) -> dict[str, Any]:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    spec = {"devices": {"requests": requests}}
    return {"metadata": {"name": "c", "namespace": "default", "uid": "c"}, "spec": spec, "status": status}


def pod(name: str) -> dict[str, Any]:
    claims = [{"name": "c", "resourceClaimName": "c"}]
    spec = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": claims}
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


def scenario(status: dict[str, Any], **more: Any) -> Scenario:
    objects: dict[str, list[dict[str, Any]]] = {
        "nodes": [NODE],
        "deviceclasses": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "resourceclaims": [claim(status)],
    }
    return Scenario("s", objects, [pod("p"), pod("q")], sequential=True, bind=True, **more)


def test_a_claim_with_256_reservations_is_decided_on_and_stays_as_it_is(registry: Registry) -> None:
    others = [{"resource": "pods", "name": f"o{number}", "uid": f"o{number}"} for number in range(256)]
    decisions = decide(scenario({"allocation": ALLOCATED, "reservedFor": others}), registry)
    assert [each["chosen"] for each in decisions] == ["a", "a"]


def test_a_claim_that_is_not_allocated_where_it_was_recorded_is_a_difference_and_no_end(
    registry: Registry,
) -> None:
    recorded = [{"chosen": "a"}, {"chosen": None}]
    decisions = decide(scenario({}, expected=recorded), registry)
    assert [each["chosen"] for each in decisions] == [None, None]
