"""Reads `resource.k8s.io/v1beta1` as v1: kube-apiserver v1.36 serves it, and converts what it is sent.

In v1beta1 a request has the fields of `exactly` beside its name, and a device of a slice has its fields under `basic`.
All else is the same. Parts of a wrong type stay as they are, and are refused when v1 is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Manifest = Mapping[str, Any]

_OF_EXACTLY: Final = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)


def claim_as_v1(manifest: Manifest) -> Manifest:
    """Return a ResourceClaim of v1beta1 with the fields of v1."""
    return _with(manifest, "spec", _claim_spec)


def claim_template_as_v1(manifest: Manifest) -> Manifest:
    """Return a ResourceClaimTemplate of v1beta1 with the fields of v1."""
    return _with(manifest, "spec", lambda spec: _with(spec, "spec", _claim_spec))


def slice_as_v1(manifest: Manifest) -> Manifest:
    """Return a ResourceSlice of v1beta1 with the fields of v1."""
    return _with(manifest, "spec", lambda spec: _with_each(spec, "devices", _device))


def class_as_v1(manifest: Manifest) -> Manifest:
    """Return a DeviceClass of v1beta1, whose fields are those of v1."""
    return manifest


def _claim_spec(spec: Manifest) -> Manifest:
    return _with(spec, "devices", lambda devices: _with_each(devices, "requests", _request))


def _request(request: Manifest) -> Manifest:
    flat = {key: value for key, value in request.items() if key in _OF_EXACTLY}
    # With neither, it is an exact request without a class: the API server gives it a mode and a count by default.
    if not flat and request.get("firstAvailable"):
        return request
    return {**{key: value for key, value in request.items() if key not in flat}, "exactly": flat}


def _device(device: Manifest) -> Manifest:
    basic = device.get("basic")
    if not isinstance(basic, Mapping):
        return device
    return {**basic, **{key: value for key, value in device.items() if key != "basic"}}


def _with(content: Manifest, key: str, convert: Callable[[Manifest], Manifest]) -> Manifest:
    """Return an object with one of its fields converted, if that is an object."""
    found = content.get(key)
    return {**content, key: convert(found)} if isinstance(found, Mapping) else content


def _with_each(content: Manifest, key: str, convert: Callable[[Manifest], Manifest]) -> Manifest:
    """Return an object with the items of a field converted, if that is a list."""
    found = content.get(key)
    if not isinstance(found, list):
        return content
    return {**content, key: [convert(item) if isinstance(item, Mapping) else item for item in found]}
