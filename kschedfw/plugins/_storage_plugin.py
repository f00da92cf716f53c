"""What plugins have in common whose answers depend on a pod's volumes, which are looked up in the cluster."""

from __future__ import annotations

from collections.abc import Hashable

from kschedfw import Handle, Plugin, Pod


class StoragePlugin(Plugin):
    """Signs a pod by what its pre_filter found, since claims and volumes may change at any time.

    All pods without storage are alike. One whose pre_filter hasn't set `_signed` in this cycle has no signature.
    """

    def __init__(self, args: None, handle: Handle) -> None:
        super().__init__(args, handle)
        self._signed: tuple[Pod, Hashable] | None = None
        """The pod of the current cycle, and its signature."""

    def sign(self, pod: Pod) -> Hashable | None:
        if not pod.spec.volumes or not pod.storage:
            return ()
        signed = self._signed
        return signed[1] if signed is not None and signed[0] is pod else None
