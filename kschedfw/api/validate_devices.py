"""The API server's validation of resource.k8s.io/v1, as far as scheduling relies on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kschedfw.api.affinity import TolerationOperator
from kschedfw.api.devices import (
    Device,
    DeviceAttribute,
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintRule,
    DeviceToleration,
    ResourceSlice,
)
from kschedfw.api.field_errors import FieldError, at
from kschedfw.api.names import label_problems, subdomain_problems
from kschedfw.api.pod import PodSpec
from kschedfw.api.quantity import Quantity
from kschedfw.api.resource_claims import (
    DeviceAllocationMode,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from kschedfw.api.resource_names import is_extended
from kschedfw.api.selectors import NodeSelector
from kschedfw.api.validate_selectors import Errors, node_selector, qualified_name, text_errors

_MOST_SELECTORS: Final = 32
_MOST_REQUESTS: Final = 32
_MOST_CONSTRAINTS: Final = 32
_MOST_ALTERNATIVES: Final = 8
_MOST_DEVICES: Final = 128
_MOST_ATTRIBUTES: Final = 32
_LONGEST_EXPRESSION: Final = 10 * 1024

# The grammar of semver.org 2.0.0.
_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def device_class_errors(obj: DeviceClass) -> Errors:
    spec = obj.spec
    yield from _selectors(spec.selectors, "spec.selectors")
    name = spec.extended_resource_name
    if name and not is_extended(name):
        yield FieldError.invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def resource_claim_errors(claim: ResourceClaim) -> Errors:
    yield from _device_claim(claim.spec.devices, "spec.devices")


def resource_claim_template_errors(template: ResourceClaimTemplate) -> Errors:
    yield from _device_claim(template.spec.spec.devices, "spec.spec.devices")


def resource_slice_errors(obj: ResourceSlice) -> Errors:
    spec = obj.spec
    yield from _name(spec.driver, "spec.driver", subdomain_problems)
    if not spec.pool.name:
        yield FieldError.required("spec.pool.name")
    for part in spec.pool.name.split("/") if spec.pool.name else ():
        yield from text_errors(part, "spec.pool.name", subdomain_problems)
    if spec.pool.generation < 0:
        why = "must be greater than or equal to zero"
        yield FieldError.invalid("spec.pool.generation", spec.pool.generation, why)
    if spec.pool.resource_slice_count <= 0:
        why = "must be greater than zero"
        yield FieldError.invalid("spec.pool.resourceSliceCount", spec.pool.resource_slice_count, why)
    alternatives = {
        "nodeName": bool(spec.node_name),
        "nodeSelector": spec.node_selector is not None,
        "allNodes": spec.all_nodes,
        "perDeviceNodeSelection": spec.per_device_node_selection,
    }
    yield from _one_of(alternatives, "spec")
    yield from _one_term(spec.node_selector, "spec.nodeSelector")
    yield from too_many(spec.devices, _MOST_DEVICES, "spec.devices")
    yield from _duplicates((each.name for each in spec.devices), "spec.devices", "name")
    for index, device in enumerate(spec.devices):
        yield from _device(device, f"spec.devices[{index}]", by_itself=spec.per_device_node_selection)
    yield from _duplicates((each.name for each in spec.shared_counters), "spec.sharedCounters", "name")
    for index, counters in enumerate(spec.shared_counters):
        yield from _name(counters.name, f"spec.sharedCounters[{index}].name")


def _device(device: Device, path: str, *, by_itself: bool) -> Errors:
    yield from _name(device.name, f"{path}.name")
    if len(device.attributes) + len(device.capacity) > _MOST_ATTRIBUTES:
        count = len(device.attributes) + len(device.capacity)
        why = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
        yield FieldError.invalid(path, count, why)
    for name, attribute in device.attributes.items():
        yield from qualified_name(name, at(f"{path}.attributes", name))
        yield from _attribute(attribute, at(f"{path}.attributes", name))
    for name in device.capacity:
        yield from qualified_name(name, at(f"{path}.capacity", name))
    alternatives = {
        "nodeName": bool(device.node_name),
        "nodeSelector": device.node_selector is not None,
        "allNodes": device.all_nodes,
    }
    if by_itself:
        yield from _one_of(alternatives, path)
        yield from _one_term(device.node_selector, f"{path}.nodeSelector")
    for index, taint in enumerate(device.taints):
        yield from _taint(taint, f"{path}.taints[{index}]")


def _taint(taint: DeviceTaint, path: str) -> Errors:
    if not taint.key:
        yield FieldError.required(f"{path}.key")
    if taint.effect is None:
        yield FieldError.required(f"{path}.effect")


def device_taint_rule_errors(rule: DeviceTaintRule) -> Errors:
    selector = rule.spec.device_selector
    if selector is not None:
        if selector.driver is not None:
            yield from _name(selector.driver, "spec.deviceSelector.driver", subdomain_problems)
        for part in (selector.pool or "").split("/") if selector.pool is not None else ():
            yield from _name(part, "spec.deviceSelector.pool", subdomain_problems)
        if selector.device is not None:
            yield from _name(selector.device, "spec.deviceSelector.device")
    yield from _taint(rule.spec.taint, "spec.taint")


def _attribute(attribute: DeviceAttribute, path: str) -> Errors:
    given = list(attribute.values)
    lists = (attribute.ints, attribute.bools, attribute.strings, attribute.versions)
    if any(lists):
        why = "a list of values needs the feature gate DRAListTypeAttributes, which isn't modelled"
        yield FieldError.forbidden(path, why)
    elif not given:
        yield FieldError.required(path, "exactly one value must be specified")
    elif len(given) > 1:
        yield FieldError.invalid(path, given, "exactly one value must be specified")
    version = attribute.version_value
    if version is not None and not _VERSION.fullmatch(version):
        why = "must be a string compatible with semver.org spec 2.0.0"
        yield FieldError.invalid(f"{path}.version", version, why)


def pod_claims(spec: PodSpec, path: str) -> Errors:
    """Yield the errors in a pod's references to claims."""
    yield from _duplicates((each.name for each in spec.resource_claims), f"{path}.resourceClaims", "name")
    for index, claim in enumerate(spec.resource_claims):
        where = f"{path}.resourceClaims[{index}]"
        yield from _name(claim.name, f"{where}.name")
        alternatives = {
            "resourceClaimName": claim.resource_claim_name is not None,
            "resourceClaimTemplateName": claim.resource_claim_template_name is not None,
        }
        if sum(alternatives.values()) != 1:
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield FieldError.invalid(where, claim.name, why)


# --- Claims ------------------------------------------------------------------------------------------------------


def _device_claim(claim: DeviceClaim, path: str) -> Errors:
    yield from too_many(claim.requests, _MOST_REQUESTS, f"{path}.requests")
    yield from _duplicates((each.name for each in claim.requests), f"{path}.requests", "name")
    names = set()
    for index, request in enumerate(claim.requests):
        names |= {request.name, *(f"{request.name}/{each.name}" for each in request.first_available)}
        yield from _request(request, f"{path}.requests[{index}]")
    yield from too_many(claim.constraints, _MOST_CONSTRAINTS, f"{path}.constraints")
    for index, constraint in enumerate(claim.constraints):
        yield from _constraint(constraint, names, f"{path}.constraints[{index}]")
    for index, config in enumerate(claim.config):
        yield from _known_requests(config.requests, names, f"{path}.config[{index}].requests")


def _request(request: DeviceRequest, path: str) -> Errors:
    yield from _name(request.name, f"{path}.name")
    if request.exactly is not None and request.first_available:
        why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        yield FieldError.invalid(path, request.name, why)
    elif request.exactly is None and not request.first_available:
        yield FieldError.required(path, "exactly one of `exactly` or `firstAvailable` is required")
    if request.exactly is not None:
        yield from _asked(request.exactly, f"{path}.exactly")
    yield from too_many(request.first_available, _MOST_ALTERNATIVES, f"{path}.firstAvailable")
    yield from _duplicates((each.name for each in request.first_available), f"{path}.firstAvailable", "name")
    for index, alternative in enumerate(request.first_available):
        where = f"{path}.firstAvailable[{index}]"
        yield from _name(alternative.name, f"{where}.name")
        yield from _asked(alternative, where)


def _asked(asked: ExactDeviceRequest | DeviceSubRequest, path: str) -> Errors:
    yield from _name(asked.device_class_name, f"{path}.deviceClassName", subdomain_problems)
    yield from _selectors(asked.selectors, f"{path}.selectors")
    if asked.allocation_mode is DeviceAllocationMode.ALL:
        if asked.count:
            why = "must not be specified when allocationMode is 'All'"
            yield FieldError.invalid(f"{path}.count", asked.count, why)
    elif asked.count <= 0:
        yield FieldError.invalid(f"{path}.count", asked.count, "must be greater than zero")
    for index, toleration in enumerate(asked.tolerations):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    requests: Mapping[str, Quantity] = {} if asked.capacity is None else asked.capacity.requests
    for name in requests:
        yield from qualified_name(name, at(f"{path}.capacity.requests", name))


def _toleration(toleration: DeviceToleration, path: str) -> Errors:
    if toleration.operator in (TolerationOperator.GT, TolerationOperator.LT):
        supported = (TolerationOperator.EQUAL, TolerationOperator.EXISTS)
        yield FieldError.unsupported(f"{path}.operator", toleration.operator, supported)
    if toleration.operator is TolerationOperator.EXISTS and toleration.value:
        why = "must be empty for operator `Exists`"
        yield FieldError.invalid(f"{path}.value", toleration.value, why)


def _constraint(constraint: DeviceConstraint, names: set[str], path: str) -> Errors:
    yield from _known_requests(constraint.requests, names, f"{path}.requests")
    given = {"matchAttribute": constraint.match_attribute, "distinctAttribute": constraint.distinct_attribute}
    if not any(given.values()):
        yield FieldError.required(path, "exactly one of `matchAttribute` or `distinctAttribute` is required")
    for field, name in given.items():
        if name:
            yield from qualified_name(name, f"{path}.{field}")
            if "/" not in name:
                why = "a valid fully qualified name must be a domain and a name separated by a slash"
                yield FieldError.invalid(f"{path}.{field}", name, why)


def _known_requests(requests: Sequence[str], names: set[str], path: str) -> Errors:
    yield from _duplicates(requests, path, "")
    for index, name in enumerate(requests):
        if name not in names:
            why = (
                "must be the name of a request in the claim or the name of a request and a subrequest "
                "separated by '/'"
            )
            yield FieldError.invalid(f"{path}[{index}]", name, why)


def _selectors(selectors: Sequence[DeviceSelector], path: str) -> Errors:
    yield from too_many(selectors, _MOST_SELECTORS, path)
    for index, selector in enumerate(selectors):
        where = f"{path}[{index}].cel"
        if selector.cel is None:
            yield FieldError.required(where)
        elif not selector.expression:
            yield FieldError.required(f"{where}.expression")
        elif len(selector.expression.encode()) > _LONGEST_EXPRESSION:
            why = f"may not be more than {_LONGEST_EXPRESSION} bytes"
            yield FieldError(f"{where}.expression", f"Too long: {why}")


# --- What they share ---------------------------------------------------------------------------------------------


def _one_of(alternatives: Mapping[str, bool], path: str) -> Errors:
    names = ", ".join(f"`{name}`" for name in alternatives)
    given = [name for name, is_given in alternatives.items() if is_given]
    if not given:
        yield FieldError.required(path, f"exactly one of {names} is required")
    elif len(given) > 1:
        yield FieldError.invalid(
            path, given, f"exactly one of {names} is required, but multiple fields are set"
        )


def _one_term(selector: NodeSelector | None, path: str) -> Errors:
    if selector is None:
        return
    yield from node_selector(selector, path)
    if len(selector.node_selector_terms) != 1:
        terms = len(selector.node_selector_terms)
        why = "must have exactly one node selector term"
        yield FieldError.invalid(f"{path}.nodeSelectorTerms", terms, why)


def too_many(items: Sequence[object], most: int, path: str) -> Errors:
    """Yield an error if there are more items than `most`."""
    if len(items) > most:
        yield FieldError(path, f"Too many: {len(items)}: must have at most {most} items")


def _duplicates(names: Iterable[str], path: str, field: str) -> Errors:
    seen = set()
    for index, name in enumerate(names):
        if name in seen:
            where = f"{path}[{index}]"
            yield FieldError.duplicate(f"{where}.{field}" if field else where, name)
        seen.add(name)


def _name(name: str, path: str, problems: Callable[[str], Sequence[str]] = label_problems) -> Errors:
    """Yield the errors of a name that has to be given: by default, the name of a label."""
    if not name:
        yield FieldError.required(path)
    else:
        yield from text_errors(name, path, problems)
