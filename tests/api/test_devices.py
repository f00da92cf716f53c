"""Objects of resource.k8s.io/v1: what is filled in, what is refused, what is written back."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.api.devices import DeviceClass
from kschedfw.api.manifests import (
    ManifestError,
    Manifests,
    object_from_manifest,
    parse_manifests,
    to_manifest,
)
from kschedfw.api.resource_claims import (
    DeviceAllocationMode,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)

API = "resource.k8s.io/v1"


def claim(*requests: dict[str, Any], **devices: Any) -> dict[str, Any]:
    spec = {"devices": {"requests": list(requests), **devices}}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec}


def slice_(*devices: dict[str, Any], **changes: Any) -> dict[str, Any]:
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "a",
        "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
        "devices": list(devices),
    }
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec | changes}


GPU = {"name": "r", "exactly": {"deviceClassName": "gpu"}}


def problems(manifest: dict[str, Any]) -> list[str]:
    try:
        object_from_manifest(manifest)
    except ManifestError as error:
        return [str(each) for each in error.errors]
    return []


def test_a_request_is_for_one_device_unless_it_says_otherwise() -> None:
    either = {"name": "s", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}]}
    every = {"name": "t", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    found = object_from_manifest(claim(GPU, either, every))
    assert isinstance(found, ResourceClaim)
    one, two, three = found.spec.devices.requests
    assert one.exactly is not None
    assert three.exactly is not None
    asked: list[ExactDeviceRequest | DeviceSubRequest] = [one.exactly, two.first_available[0], three.exactly]
    assert [(each.allocation_mode, each.count) for each in asked] == [
        (DeviceAllocationMode.EXACT_COUNT, 1),
        (DeviceAllocationMode.EXACT_COUNT, 1),
        (DeviceAllocationMode.ALL, 0),
    ]


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (
            claim({"name": "r"}),
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
        ),
        (claim(GPU, GPU), 'spec.devices.requests[1].name: Duplicate value: "r"'),
        (
            claim({"name": "r", "exactly": {}}),
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
        ),
        (
            claim({"name": "r", "exactly": {"deviceClassName": "gpu", "count": -1}}),
            "spec.devices.requests[0].exactly.count: Invalid value: -1: must be greater than zero",
        ),
        (
            claim(GPU, constraints=[{"requests": ["q"], "matchAttribute": "numa"}]),
            (
                'spec.devices.constraints[0].requests[0]: Invalid value: "q": must be the name of a request in the '
                "claim or the name of a request and a subrequest separated by '/'"
            ),
        ),
        (
            slice_({"name": "x"}, {"name": "x"}),
            'spec.devices[1].name: Duplicate value: "x"',
        ),
        (
            slice_({"name": "x", "attributes": {"v": {"version": "1.2"}}}),
            (
                'spec.devices[0].attributes.v.version: Invalid value: "1.2": must be a string compatible with '
                "semver.org spec 2.0.0"
            ),
        ),
        (
            slice_({"name": "x", "attributes": {"v": {}}}),
            "spec.devices[0].attributes.v: Required value: exactly one value must be specified",
        ),
        (
            slice_(allNodes=True),
            (
                'spec: Invalid value: ["nodeName","allNodes"]: exactly one of `nodeName`, `nodeSelector`, `allNodes`, '
                "`perDeviceNodeSelection` is required, but multiple fields are set"
            ),
        ),
    ],
)
def test_what_the_api_server_refuses_is_refused(manifest: dict[str, Any], said: str) -> None:
    assert said in problems(manifest)


@pytest.mark.parametrize(
    "values", [{"ints": [1]}, {"strings": ["a", "b"]}, {"string": "a", "versions": ["1.0.0"]}]
)
def test_an_attribute_that_is_a_list_is_refused_with_the_gate_that_it_needs(values: dict[str, Any]) -> None:
    """The API server of v1.37 drops the list while DRAListTypeAttributes is off, and finds no value then."""
    needs = "a list of values needs the feature gate DRAListTypeAttributes, which isn't modelled"
    (problem,) = problems(slice_({"name": "x", "attributes": {"v": values}}))
    assert problem == f"spec.devices[0].attributes.v: Forbidden: {needs}"


def test_versions_that_are_not_served_any_more_are_refused_rather_than_read_wrongly() -> None:
    old = claim(GPU) | {"apiVersion": "resource.k8s.io/v1alpha3"}
    assert problems(old) == [
        (
            'apiVersion: no kind "ResourceClaim" is registered for version "resource.k8s.io/v1alpha3": '
            '"ResourceClaim" is in "resource.k8s.io/v1"; write it so, with the fields of each of '
            "spec.devices.requests, but for name and firstAvailable, under exactly; Kubernetes v1.34 no longer"
            " serves it"
        )
    ]
    assert problems(claim(GPU) | {"apiVersion": "resource.k8s.io/v1beta2"}) == []


def test_what_was_read_is_written_back() -> None:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x", "shareID": "1"}
    status = {"allocation": {"devices": {"results": [{**result, "consumedCapacity": {"bw": "1G"}}]}}}
    for manifest in (
        claim(GPU) | {"status": status},
        slice_({"name": "x", "attributes": {"a": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}}),
    ):
        read = object_from_manifest(manifest)
        assert object_from_manifest(to_manifest(read)) == read
        assert to_manifest(read)["spec"].keys() >= {key for key in manifest["spec"] if manifest["spec"][key]}


def test_a_pods_claims_have_names_and_one_source() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "x"}], "resourceClaims": [{"name": "g"}]},
    }
    assert problems(pod) == [
        (
            'spec.resourceClaims[0]: Invalid value: "g": must specify one of: `resourceClaimName`, '
            "`resourceClaimTemplateName`"
        )
    ]


def test_files_have_them() -> None:
    text = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'true'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}}
"""
    found: Manifests = parse_manifests(text)
    assert found.problems == ()
    assert [each.name for each in found.of(DeviceClass)] == ["gpu"]
    assert [each.key for each in found.of(ResourceClaimTemplate)] == ["default/t"]
    assert len(list(found.objects())) == 2


EXACTLY = st.fixed_dictionaries(
    {"deviceClassName": st.sampled_from(["gpu", "nic"])},
    optional={
        "selectors": st.just([{"cel": {"expression": "true"}}]),
        "allocationMode": st.sampled_from(["All", "ExactCount"]),
        "adminAccess": st.booleans(),
        "tolerations": st.just([{"key": "broken", "operator": "Exists"}]),
        "capacity": st.just({"requests": {"memory": "1Gi"}}),
    },
)
REQUESTS = st.lists(
    EXACTLY.map(lambda exactly: {"exactly": exactly})
    | st.just({"firstAvailable": [{"name": "x", "deviceClassName": "gpu", "allocationMode": "All"}]}),
    max_size=3,
).map(lambda drawn: [{"name": f"r{index}", **each} for index, each in enumerate(drawn)])
BASIC = st.fixed_dictionaries(
    {},
    optional={
        "attributes": st.just({"model": {"string": "x"}}),
        "capacity": st.just({"memory": {"value": "1Gi"}}),
        "taints": st.just([{"key": "broken", "effect": "NoSchedule"}]),
        "allowMultipleAllocations": st.booleans(),
    },
)
DEVICES = st.lists(BASIC, max_size=3).map(lambda drawn: [(f"d{i}", basic) for i, basic in enumerate(drawn)])


class TestV1Beta1:
    """kube-apiserver v1.36 serves it, and converts it to the same objects as v1's."""

    OLD: ClassVar = {"apiVersion": "resource.k8s.io/v1beta1"}

    @staticmethod
    def flat(request: dict[str, Any]) -> dict[str, Any]:
        return {"name": request["name"], **request.get("exactly", {}), **without(request, "exactly")}

    @given(REQUESTS)
    def test_a_claim_is_the_same_as_of_v1(self, requests: list[dict[str, Any]]) -> None:
        old = claim(*map(self.flat, requests)) | self.OLD
        assert object_from_manifest(old) == object_from_manifest(claim(*requests))

    @given(REQUESTS)
    def test_so_is_a_template(self, requests: list[dict[str, Any]]) -> None:
        def template(*its: dict[str, Any]) -> dict[str, Any]:
            return {**claim(), "kind": "ResourceClaimTemplate", "spec": {"spec": claim(*its)["spec"]}}

        old = template(*map(self.flat, requests)) | self.OLD
        assert object_from_manifest(old) == object_from_manifest(template(*requests))

    @given(DEVICES)
    def test_so_is_a_slice(self, devices: list[tuple[str, dict[str, Any]]]) -> None:
        old = slice_(*({"name": name, "basic": basic} for name, basic in devices)) | self.OLD
        assert object_from_manifest(old) == object_from_manifest(
            slice_(*({"name": name, **basic} for name, basic in devices))
        )

    def test_so_is_a_class(self) -> None:
        made = {
            "apiVersion": API,
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": []},
        }
        assert object_from_manifest(made | self.OLD) == object_from_manifest(made)

    @pytest.mark.parametrize(
        ("request_", "said"),
        [
            ({"name": "r"}, "spec.devices.requests[0].exactly.deviceClassName: Required value"),
            (
                {
                    "name": "r",
                    "deviceClassName": "gpu",
                    "firstAvailable": [{"name": "x", "deviceClassName": "g"}],
                },
                "exactly one of `exactly` or `firstAvailable` is required",
            ),
            ({"name": "r", "deviceClassName": 3}, "spec.devices.requests[0].exactly.deviceClassName"),
        ],
    )
    def test_what_it_may_not_say_is_refused(self, request_: dict[str, Any], said: str) -> None:
        assert any(said in each for each in problems(claim(request_) | self.OLD))

    @pytest.mark.parametrize("spec", [None, 3, [], {"devices": 3}, {"devices": {"requests": {"a": 1}}}])
    def test_parts_of_a_wrong_type_are_told_as_of_v1(self, spec: object) -> None:
        assert problems({**claim(), "spec": spec, **self.OLD}) == problems({**claim(), "spec": spec})


def without(content: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in keys}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"taint": {"key": "k", "effect": "NoSchedule"}, "deviceSelector": {"pool": "rack-1/a"}}, []),
        ({"taint": {"key": "k"}}, ["spec.taint.effect: Required value"]),
        ({"taint": {"effect": "NoExecute"}}, ["spec.taint.key: Required value"]),
        (
            {"taint": {"key": "k", "effect": "None"}, "deviceSelector": {"driver": "", "device": ""}},
            ["spec.deviceSelector.driver: Required value", "spec.deviceSelector.device: Required value"],
        ),
    ],
)
@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1alpha3"])
def test_a_rule_that_taints_devices_needs_a_key_and_an_effect(
    spec: dict[str, Any], said: list[str], version: str
) -> None:
    manifest = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": spec,
    }
    assert problems(manifest) == said
