"""The versions of API groups that Kubernetes has stopped to serve, and by which version of Kubernetes.

Source: the versions that kubernetes/api and kubernetes/kube-scheduler have at each release's tag, and the removals that
`zz_generated.prerelease-lifecycle.go` announces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_REMOVED: Final[Mapping[str, Mapping[str, str]]] = {
    "apps/v1beta1": {"": "1.16"},
    "apps/v1beta2": {"": "1.16"},
    "batch/v1beta1": {"": "1.25"},
    "batch/v2alpha1": {"": "1.21"},
    "extensions/v1beta1": {"": "1.16", "Ingress": "1.22"},
    "kubescheduler.config.k8s.io/v1alpha1": {"": "1.19"},
    "kubescheduler.config.k8s.io/v1alpha2": {"": "1.19"},
    "kubescheduler.config.k8s.io/v1beta1": {"": "1.23"},
    "kubescheduler.config.k8s.io/v1beta2": {"": "1.28"},
    "kubescheduler.config.k8s.io/v1beta3": {"": "1.29"},
    "node.k8s.io/v1beta1": {"": "1.25"},
    "policy/v1beta1": {"": "1.25"},
    "resource.k8s.io/v1alpha1": {"": "1.27"},
    "resource.k8s.io/v1alpha2": {"": "1.31"},
    "resource.k8s.io/v1alpha3": {"": "1.34", "DeviceTaintRule": "1.39", "ResourcePoolStatusRequest": "1.42"},
    "resource.k8s.io/v1beta1": {"": "1.38"},
    "resource.k8s.io/v1beta2": {"": "1.39", "DeviceTaintRule": "1.42"},
    "scheduling.k8s.io/v1alpha1": {"Workload": "1.36"},
    "scheduling.k8s.io/v1alpha2": {"": "1.37"},
    "scheduling.k8s.io/v1beta1": {"PriorityClass": "1.22", "": "1.43"},
    "storage.k8s.io/v1alpha1": {"": "1.24"},
    "storage.k8s.io/v1beta1": {"": "1.22", "CSIStorageCapacity": "1.27"},
}
"""The version of Kubernetes that no longer serves a kind, by API version; with the empty name for its other kinds."""


def removed_in(api_version: str, kind: str) -> str:
    """Return the version of Kubernetes that removed the kind's API version, such as `1.29`; empty if none is known."""
    kinds = _REMOVED.get(api_version, {})
    return kinds.get(kind, kinds.get("", ""))


def removal_of(api_version: str, kind: str) -> str:
    """Return a clause for errors about a version that isn't read: what removed it; empty if nothing is known."""
    version = removed_in(api_version, kind)
    return f"; Kubernetes v{version} no longer serves it" if version else ""
