"""Names of workloads as users write them: KIND/NAME or KIND/NAMESPACE/NAME, as for kubectl."""

from __future__ import annotations

from typing import Final

from kschedfw.api.records import frozen
from kschedfw.cluster.workloads import Workload

_SHORT: Final = {
    "deploy": "deployment",
    "sts": "statefulset",
    "ds": "daemonset",
    "rs": "replicaset",
    "rc": "replicationcontroller",
    "cj": "cronjob",
}
"""kubectl's short names of kinds."""

_KINDS: Final = frozenset((*_SHORT.values(), "job"))


@frozen
class WorkloadName:
    """A workload's kind in lower case and its name; `namespace` is None for any."""

    kind: str
    namespace: str | None
    name: str

    @classmethod
    def parse(cls, text: str, namespace: str | None = None) -> WorkloadName | None:
        """Return the workload that is meant; None if the text isn't KIND/NAME or KIND/NAMESPACE/NAME.

        `namespace` is for a name without one. Of two parts the first is a namespace unless it is a kind of workload.
        """
        kind, *rest = text.split("/")
        kind = kind.lower()
        kind = _SHORT.get(kind, kind)
        if kind.removesuffix("s") in _KINDS:
            kind = kind.removesuffix("s")
        if len(rest) == 1 and kind in _KINDS:
            return cls(kind, namespace, rest[0])
        return cls(kind, rest[0], rest[1]) if len(rest) == 2 else None

    def means(self, workload: Workload | None) -> bool:
        """Tell whether this is the name of the workload."""
        return (
            workload is not None
            and workload.kind.lower() == self.kind
            and workload.name == self.name
            and self.namespace in (None, workload.namespace)
        )

    def __str__(self) -> str:
        return "/".join(filter(None, (self.kind, self.namespace, self.name)))
