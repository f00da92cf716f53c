"""Classifies resources by name (rules of apimachinery and component-helpers)."""

from __future__ import annotations

import functools
from typing import Final

from kschedfw.api.names import qualified_name_problems
from kschedfw.api.quantity import Quantity, QuantityError

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
STORAGE: Final = "storage"
PODS: Final = "pods"

_HUGE_PAGES: Final = "hugepages-"
_ATTACHABLE_VOLUMES: Final = "attachable-volumes-"
_NATIVE_DOMAIN: Final = "kubernetes.io/"
_STANDARD_FOR_CONTAINERS: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE})


def is_huge_pages(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


@functools.cache
def huge_page_size(name: str) -> int | None:
    """Return the size in bytes of the pages that a resource of huge pages names; 0 if it names none.

    None stands for other resources.
    """
    if not is_huge_pages(name):
        return None
    try:
        size = Quantity.parse(name.removeprefix(_HUGE_PAGES))
    except QuantityError:
        return 0
    return max(0, size.value()) if size.milli_value() % 1000 == 0 else 0


def is_attachable_volumes(name: str) -> bool:
    return name.startswith(_ATTACHABLE_VOLUMES)


def is_native(name: str) -> bool:
    """Tell whether Kubernetes itself defines the resource: no domain, or one of its own."""
    return "/" not in name or _NATIVE_DOMAIN in name


@functools.cache
def is_extended(name: str) -> bool:
    """Tell whether the resource has a domain that isn't Kubernetes' own, such as `nvidia.com/gpu`."""
    if is_native(name) or name.startswith("requests."):
        return False
    # It has to remain a valid name when a quota counts it.
    return not qualified_name_problems(f"requests.{name}")


@functools.cache
def is_scalar_resource(name: str) -> bool:
    """Tell whether the scheduler counts the resource beside CPU, memory, ephemeral storage and pods."""
    return is_extended(name) or is_huge_pages(name) or _NATIVE_DOMAIN in name or is_attachable_volumes(name)


def is_pod_level_resource(name: str) -> bool:
    """Tell whether the resource may be requested for the pod as a whole."""
    return name in (CPU, MEMORY) or is_huge_pages(name)


def may_overcommit(name: str) -> bool:
    """Tell whether limits of the resource may exceed requests."""
    return is_native(name) and not is_huge_pages(name)


def is_standard_for_containers(name: str) -> bool:
    return name in _STANDARD_FOR_CONTAINERS or is_huge_pages(name)


def must_be_integer(name: str) -> bool:
    """Tell whether the resource has no fractions: pods, and extended resources."""
    return name == PODS or is_extended(name)
