"""The services that a pod belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from kschedfw import ClusterClient, Pod
from kschedfw.api import Service


def services_of(pod: Pod, cluster: ClusterClient) -> Sequence[Service]:
    """The services of the pod's namespace that select it; one without a selector selects nothing."""
    labels = pod.labels
    return [
        service
        for service in cluster.list(Service, pod.namespace)
        if (selector := service.spec.selector)
        and all(labels.get(key) == value for key, value in selector.items())
    ]
