"""Admission of changed pods: what an API server would make of them, or refuse."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kschedfw import Pod
from kschedfw.api import Admission, ManifestError, PodSpec, object_from_manifest, to_manifest
from kschedfw.cluster import Cluster
from kschedfw_advisor.quotas import POLICIES


@attrs.frozen(eq=False)
class Readmission:
    """Tells whether changes of a pod survive the validation and the admission of an API server.

    A RuntimeClass gives a dropped selector back, for example, and a LimitRange refuses a request below its minimum.
    Quotas aren't asked: the pod counts in them already.
    """

    _admission: Admission

    @classmethod
    def of(cls, cluster: Cluster) -> Readmission:
        """Return the admission by the policies and PriorityClasses of a cluster."""
        return cls(Admission([obj for kind in POLICIES for obj in cluster.list(kind)]))

    def keeps(self, pod: Pod, changed: Pod) -> bool:
        """Return whether the changes would be in the stored pod, if the pod itself would be stored."""
        if changed == pod:
            return True
        if not _is_valid(changed):
            return not _is_valid(pod)
        if self._admission.admit(pod) is None:
            # The policies are newer than the pod, so they don't tell what else would be refused.
            return True
        stored = self._admission.admit(changed)
        return stored is not None and not any(_undone(pod.spec, changed.spec, stored.spec))


def _undone(old: PodSpec, changed: PodSpec, stored: PodSpec) -> Iterator[bool]:
    """Yield for each changed field whether admission has written something else there."""
    for field in attrs.fields(PodSpec):
        before, wanted, found = (getattr(spec, field.name) for spec in (old, changed, stored))
        if wanted != before:
            # Tolerations are only added.
            yield not set(wanted) <= set(found) if field.name == "tolerations" else wanted != found


def _is_valid(pod: Pod) -> bool:
    try:
        object_from_manifest(to_manifest(pod))
    except ManifestError:
        return False
    return True
