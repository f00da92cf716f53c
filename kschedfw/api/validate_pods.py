"""The API server's validation of pods, as far as scheduling relies on it (core/v1 `ValidatePodSpec`).

Volumes, security contexts, probes and the like aren't checked. Two rules of the API server are omitted on purpose,
because pods that violate them can be scheduled, and simulations have such pods: a pod may not name a host port twice,
and, as long as the feature gate UserNamespacesHostNetworkSupport is off, may not combine the host's network with its
own user namespace. `lone_huge_pages` is for new pods alone, once admission has changed them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kschedfw.api.containers import Container, ResourceRequirements
from kschedfw.api.field_errors import FieldError, at
from kschedfw.api.names import label_problems, qualified_name_problems, subdomain_problems
from kschedfw.api.pod import Pod, PodSpec
from kschedfw.api.quantity import Quantity
from kschedfw.api.requests import aggregate
from kschedfw.api.resource_names import (
    CPU,
    MEMORY,
    huge_page_size,
    is_extended,
    is_huge_pages,
    is_native,
    is_pod_level_resource,
    is_standard_for_containers,
    may_overcommit,
    must_be_integer,
)
from kschedfw.api.validate_devices import pod_claims, too_many
from kschedfw.api.validate_selectors import (
    Errors,
    affinity,
    labels,
    qualified_name,
    spread_constraints,
    text_errors,
    tolerations,
)

_PORTS: Final = range(1, 65536)
_MOST_RULES: Final = 20
_MOST_EXIT_CODES: Final = 255
_PORT: Final = "must be between 1 and 65535, inclusive"


def pod_spec(spec: PodSpec, path: str, *, in_template: bool = False) -> Errors:
    """Yield the errors in the spec of a pod that has its defaults, or of a template, which hasn't."""
    yield from _containers(spec, path)
    if spec.host_network:
        yield from _ports_of_host(spec, path, in_template=in_template)
    if spec.resources is not None:
        yield from _pod_resources(spec, spec.resources, f"{path}.resources")
    yield from resource_list(spec.overhead, f"{path}.overhead")
    yield from labels(spec.node_selector, f"{path}.nodeSelector")
    yield from node_name(spec, path)
    yield from affinity(spec.affinity, f"{path}.affinity")
    yield from tolerations(spec.tolerations, f"{path}.tolerations")
    yield from spread_constraints(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints")
    yield from _gates(spec, path)
    if spec.resource_claims:
        yield from pod_claims(spec, path)
    if spec.priority_class_name:
        yield from text_errors(spec.priority_class_name, f"{path}.priorityClassName", subdomain_problems)
    if spec.priority is not None and not -(1 << 31) <= spec.priority < 1 << 31:
        yield FieldError.invalid(f"{path}.priority", spec.priority, "must fit 32 bits")


def node_name(spec: PodSpec, path: str) -> Errors:
    if spec.node_name:
        yield from text_errors(spec.node_name, f"{path}.nodeName", subdomain_problems)


def _gates(spec: PodSpec, path: str) -> Errors:
    seen = set()
    for index, gate in enumerate(spec.scheduling_gates):
        yield from text_errors(gate.name, f"{path}.schedulingGates[{index}]", qualified_name_problems)
        if gate.name in seen:
            yield FieldError.duplicate(f"{path}.schedulingGates[{index}]", gate.name)
        seen.add(gate.name)


def gated_pod(pod: Pod) -> Errors:
    """Yield an error for a bound pod with gates: an admitted pod can only be bound when no gate is left."""
    if pod.node_name and pod.spec.scheduling_gates:
        yield FieldError.forbidden(
            "spec.nodeName", "cannot be set until all schedulingGates have been cleared"
        )


# --- Containers --------------------------------------------------------------------------------------------------


def _containers(spec: PodSpec, path: str) -> Errors:
    if not spec.containers:
        yield FieldError.required(f"{path}.containers")
    names: set[str] = set()
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            place = f"{path}.{field}[{index}]"
            if not container.name:
                yield FieldError.required(f"{place}.name")
            else:
                yield from text_errors(container.name, f"{place}.name", label_problems)
                if container.name in names:
                    yield FieldError.duplicate(f"{place}.name", container.name)
            names.add(container.name)
            yield from _ports(container, f"{place}.ports")
            yield from requirements(container.resources, f"{place}.resources")
            yield from _restart_rules(container, place)


def _ports(container: Container, path: str) -> Errors:
    for index, port in enumerate(container.ports):
        place = f"{path}[{index}]"
        if port.container_port == 0:
            yield FieldError.required(f"{place}.containerPort")
        elif port.container_port not in _PORTS:
            yield FieldError.invalid(f"{place}.containerPort", port.container_port, _PORT)
        if port.host_port != 0 and port.host_port not in _PORTS:
            yield FieldError.invalid(f"{place}.hostPort", port.host_port, _PORT)


def _ports_of_host(spec: PodSpec, path: str, *, in_template: bool) -> Errors:
    """Yield the errors in ports of a pod in its host's network; ports of init containers may differ."""
    for index, container in enumerate(spec.containers):
        for number, port in enumerate(container.ports):
            # A template may leave the host's port open: only pods get it by default.
            is_open = in_template and port.host_port == 0
            if port.host_port != port.container_port and not is_open:
                place = f"{path}.containers[{index}].ports[{number}].hostPort"
                why = "must match `containerPort` when `hostNetwork` is true"
                yield FieldError.invalid(place, port.host_port, why)


def _restart_rules(container: Container, path: str) -> Errors:
    rules = container.restart_policy_rules
    if rules and container.restart_policy is None:
        why = "must specify restartPolicy when restart rules are used"
        yield FieldError.required(f"{path}.restartPolicy", why)
    yield from too_many(rules, _MOST_RULES, f"{path}.restartPolicyRules")
    for index, rule in enumerate(rules):
        place = f"{path}.restartPolicyRules[{index}].exitCodes.values"
        yield from too_many(rule.exit_codes.values, _MOST_EXIT_CODES, place)


# --- Resources ---------------------------------------------------------------------------------------------------


def resource_list(resources: Mapping[str, Quantity], path: str) -> Errors:
    """Yield errors of negative amounts, and of fractions of pods and extended resources."""
    for name, amount in resources.items():
        if amount.sign < 0:
            yield FieldError.invalid(at(path, name), str(amount), "must be greater than or equal to 0")
        elif must_be_integer(name) and amount.milli_value() % 1000:
            yield FieldError.invalid(at(path, name), str(amount), "must be an integer")


def requirements(resources: ResourceRequirements, path: str) -> Errors:
    """Yield the errors in requests and limits of a container."""
    requests, limits = resources.requests, resources.limits
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name in amounts:
            if "/" in name or not is_standard_for_containers(name):
                yield from _container_resource_name(name, at(f"{path}.{field}", name))
        yield from resource_list(amounts, f"{path}.{field}")
        yield from _whole_huge_pages(amounts, path)
    yield from _within_limits(requests, limits, path)


def _container_resource_name(name: str, path: str) -> Errors:
    """Yield the errors in a name that has a domain, or isn't one of those standard for containers."""
    if "/" not in name:
        yield FieldError.invalid(path, name, "must be a standard resource for containers")
        return
    problems = qualified_name_problems(name)
    for why in problems:
        yield FieldError.invalid(path, name, why)
    if not problems and not is_native(name) and not is_extended(name):
        yield FieldError.invalid(path, name, "doesn't follow extended resource name standard")


def _whole_huge_pages(amounts: Mapping[str, Quantity], path: str) -> Errors:
    """Yield an error for each amount of huge pages that isn't a multiple of the page size in the resource's name."""
    for name, amount in amounts.items():
        if (size := huge_page_size(name)) is not None and (size == 0 or amount.value() % size):
            why = f"{amount} is not positive integer multiple of {name}"
            yield FieldError.invalid(path, str(amount), why)


def lone_huge_pages(spec: PodSpec, path: str) -> Errors:
    """Yield an error wherever a pod wants huge pages without CPU or memory, which a LimitRange may give it."""
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            if _has_lone_huge_pages(container.resources):
                yield _lone_huge_pages(f"{path}.{field}[{index}]")
    if spec.resources is not None and _has_lone_huge_pages(spec.resources):
        yield _lone_huge_pages(path)


def _has_lone_huge_pages(resources: ResourceRequirements) -> bool:
    names = {*resources.limits, *resources.requests}
    return names.isdisjoint((CPU, MEMORY)) and any(map(is_huge_pages, names))


def _lone_huge_pages(path: str) -> FieldError:
    return FieldError.forbidden(f"{path}.resources", "HugePages require cpu or memory")


def _within_limits(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity], path: str) -> Errors:
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None:
            if not may_overcommit(name):
                yield FieldError.required(
                    f"{path}.limits", "Limit must be set for non overcommitable resources"
                )
        elif amount != limit and not may_overcommit(name):
            yield FieldError.invalid(
                at(f"{path}.requests", name), str(amount), f"must be equal to {name} limit of {limit}"
            )
        elif amount > limit:
            why = f"must be less than or equal to {name} limit of {limit}"
            yield FieldError.invalid(at(f"{path}.requests", name), str(amount), why)


def _pod_resources(spec: PodSpec, resources: ResourceRequirements, path: str) -> Errors:
    for field, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        for name in amounts:
            if not is_pod_level_resource(name):
                yield FieldError.unsupported(at(f"{path}.{field}", name), name, (CPU, MEMORY, "hugepages-*"))
        yield from resource_list(amounts, f"{path}.{field}")
        yield from _whole_huge_pages(amounts, path)
    yield from _within_limits(resources.requests, resources.limits, path)
    total = aggregate(Pod(spec=spec), lambda container: container.resources.requests)
    for name, amount in resources.requests.items():
        if name in total and total[name] > amount:
            why = f"must be greater than or equal to aggregate container requests of {total[name]}"
            yield FieldError.invalid(at(f"{path}.requests", name), str(amount), why)


def metadata_key(key: str, path: str) -> Errors:
    """Yield the errors of an annotation's key: like a label's key, but in any case."""
    yield from qualified_name(key.lower(), path)
