"""The changes of the cluster and of the configuration that users make on the page; each comes as JSON."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, TypeAlias

import attrs
import msgspec

from kschedfw import KschedfwError, Node, ObjectMeta, Pod, Transaction, WhatIf
from kschedfw.api import (
    Named,
    PersistentVolume,
    PersistentVolumeClaim,
    PriorityClass,
    StorageClass,
    counted,
    object_from_manifest,
    parse_manifests,
    to_manifest,
)
from kschedfw.api.reading import DEEPEST, TOO_DEEP
from kschedfw.cluster import belongs_to_its_node, freed, may_be_freed
from kschedfw_advisor.edits import Edit, edited
from kschedfw_advisor.explore.configuration_document import ConfigurationDocument

MOST_ADDED: Final = 10_000
"""The most nodes or pods that one change adds."""
LONGEST_TEXT: Final = 1 << 20
"""The longest manifests in one change, in characters."""

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
Names: TypeAlias = Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=MOST_ADDED)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MOST_ADDED)]
Weight: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_TEXT)]

_NAMED = 3
_EDITABLE: Final[Mapping[str, type[Named]]] = {
    kind.__name__: kind
    for kind in (Pod, Node, PersistentVolumeClaim, PersistentVolume, StorageClass, PriorityClass)
}
"""The kinds whose objects can be edited, as remedies do."""


class ChangeError(KschedfwError):
    """A change can't be made; says why."""


class _Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    @property
    @abstractmethod
    def title(self) -> str:
        """The change in words."""


class ClusterChange(_Value, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A change of the cluster's objects. A late one is made when the pods that are pending have got their places."""

    is_late: ClassVar[bool] = False

    @abstractmethod
    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterable[str]:
        """Make the change in an open transaction; returns what there is to note.

        Raises:
            KschedfwError: it can't be made.
        """


class ConfigurationChange(_Value, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A change of a profile."""

    @abstractmethod
    def edit(self, document: ConfigurationDocument) -> None:
        """Make the change in the document.

        Raises:
            ConfigurationEditError: there is no such profile or plugin.
        """


# --- the configuration ---


class SetWeight(ConfigurationChange, frozen=True, tag="weight"):
    """Give a score plugin another weight; with 0 it doesn't score, unlike in a file, where 0 stands for 1."""

    profile: Name
    plugin: Name
    weight: Weight

    @property
    def title(self) -> str:
        return f"weight of {self.plugin}: {self.weight}" if self.weight else f"score of {self.plugin} off"

    def edit(self, document: ConfigurationDocument) -> None:
        document.set_weight(self.profile, self.plugin, self.weight)


class SwitchPlugin(ConfigurationChange, frozen=True, tag="plugin"):
    """Take a plugin out of a profile, or into it, at all extension points that it has."""

    profile: Name
    plugin: Name
    enabled: bool

    @property
    def title(self) -> str:
        return f"{self.plugin} {'on' if self.enabled else 'off'}"

    def edit(self, document: ConfigurationDocument) -> None:
        document.switch(self.profile, self.plugin, enabled=self.enabled)


class SetArguments(ConfigurationChange, frozen=True, tag="arguments"):
    """Give a plugin other arguments, as in `pluginConfig`."""

    profile: Name
    plugin: Name
    arguments: dict[str, Any]

    def __post_init__(self) -> None:
        # Whoever reads them recurses, as with configurations in files.
        level: list[object] = [self.arguments]
        for _ in range(DEEPEST):
            level = [
                item
                for each in level
                if isinstance(each, (dict, list))
                for item in (each.values() if isinstance(each, dict) else each)
            ]
        if level:
            raise ValueError(f"arguments: {TOO_DEEP}")

    @property
    def title(self) -> str:
        return f"arguments of {self.plugin}"

    def edit(self, document: ConfigurationDocument) -> None:
        document.set_arguments(self.profile, self.plugin, self.arguments)


# --- the cluster ---


class Cordon(ClusterChange, frozen=True, tag="cordon"):
    nodes: Names

    @property
    def title(self) -> str:
        return f"cordon {_listed(self.nodes)}"

    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterable[str]:  # noqa: ARG002  # see ClusterChange
        trial.cordon(*self.nodes)
        return ()


class Uncordon(ClusterChange, frozen=True, tag="uncordon"):
    nodes: Names

    @property
    def title(self) -> str:
        return f"uncordon {_listed(self.nodes)}"

    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterable[str]:  # noqa: ARG002  # see ClusterChange
        trial.uncordon(*self.nodes)
        return ()


class Drain(ClusterChange, frozen=True, tag="drain"):
    """Drain nodes as `kubectl drain` does; the evicted pods are pending again."""

    nodes: Names

    @property
    def title(self) -> str:
        return f"drain {_listed(self.nodes)}"

    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterator[str]:  # noqa: ARG002  # see ClusterChange
        drained = trial.drain(*self.nodes)
        evicted, staying = len(drained.evicted), len(drained.staying)
        yield f"{self.title}: evicts {counted(evicted, 'pod')}, leaves {staying:,} of the node's own"
        for pod, reason in drained.blocked:
            yield f"{self.title}: {pod.key} stays: {reason}"


class DeleteNodes(ClusterChange, frozen=True, tag="delete-nodes"):
    """Delete nodes together with their pods, as if the garbage collection of pods had run."""

    nodes: Names

    @property
    def title(self) -> str:
        return f"delete {_listed(self.nodes)}"

    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterable[str]:
        gone = set(self.nodes)
        lost = [pod for pod in what_if.pods if pod.node_name in gone]
        trial.delete(*lost, *(Node(metadata=ObjectMeta(name=name)) for name in self.nodes))
        return [f"{self.title}: {counted(len(lost), 'pod')} gone with it"] if lost else []


class AddNodes(ClusterChange, frozen=True, tag="add-nodes"):
    """Add nodes like an existing one."""

    like: Name
    count: Count = 1

    @property
    def title(self) -> str:
        return f"add {self.count} × {self.like}"

    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterable[str]:
        template = what_if.cluster.get(Node, self.like)
        if template is None:
            raise ChangeError(f"{self.title}: there is no node {self.like!r}")
        trial.add_nodes(_cleared(template), self.count)
        return ()


class AddObjects(ClusterChange, frozen=True, tag="add"):
    """Add objects from manifests; with a count, that many numbered copies of each."""

    manifests: Text
    count: Count = 1

    @property
    def title(self) -> str:
        names = [f"{type(obj).__name__.lower()} {obj.name}" for obj in self._objects()]
        times = f" × {self.count}" if self.count > 1 else ""
        return f"add {_listed(names)}{times}"

    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterable[str]:  # noqa: ARG002  # see ClusterChange
        for obj in self._objects():
            copies = (
                [obj] if self.count == 1 else [_numbered(obj, number) for number in range(1, self.count + 1)]
            )
            trial.add(*copies)
        return ()

    def _objects(self) -> list[Named]:
        read = parse_manifests(self.manifests, "the manifests")
        if read.problems:
            raise ChangeError("; ".join(map(str, read.problems[:_NAMED])))
        objects = list(read.objects())
        if not objects:
            raise ChangeError("the manifests have no object in them")
        return objects


class EditOf(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"old": "from", "new": "to"}):
    """One change of a manifest; see `kschedfw_advisor.edits.Edit`."""

    object: Name
    path: Annotated[str, msgspec.Meta(max_length=4096)]
    old: Any = None
    new: Any = None


class EditObjects(ClusterChange, frozen=True, tag="edit"):
    """Edit manifests, as a remedy for pending pods does; `text` says it in words.

    Edits of the first of the `pods` are made to all of them. The change is made after other pods got their places:
    before that, it could help those instead.
    """

    is_late: ClassVar[bool] = True
    text: Text
    edits: Annotated[tuple[EditOf, ...], msgspec.Meta(min_length=1, max_length=MOST_ADDED)]
    pods: tuple[Name, ...] = ()

    @property
    def title(self) -> str:
        return self.text

    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterable[str]:
        by_object: dict[str, list[Edit]] = {}
        for each in self.edits:
            edit = Edit(each.object, each.path, each.old, each.new)
            by_object.setdefault(each.object, []).append(edit)
        for name, edits in by_object.items():
            kind, _, key = name.partition(" ")
            alike = self.pods if kind == "Pod" and self.pods and key == self.pods[0] else (key,)
            for each_key in alike:
                self._edit(trial, what_if, kind, each_key, edits)
        return ()

    def _edit(self, trial: Transaction, what_if: WhatIf, kind: str, key: str, edits: Sequence[Edit]) -> None:
        whole = next((edit for edit in edits if not edit.path), None)
        if whole is not None and isinstance(whole.new, dict):
            trial.add(object_from_manifest(whole.new))
            return
        obj = what_if.cluster.get(_EDITABLE[kind], key) if kind in _EDITABLE else None
        if obj is None:
            raise ChangeError(f"{self.title}: there is no {kind} {key!r}")
        if whole is not None:
            trial.delete(obj)
        else:
            trial.update(object_from_manifest(edited(to_manifest(obj), edits)))


class DeletePods(ClusterChange, frozen=True, tag="delete-pods"):
    """Delete pods for good: their controllers make no others."""

    pods: Names

    @property
    def title(self) -> str:
        return f"delete {_listed(self.pods)}"

    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterable[str]:
        for key in self.pods:
            pod = what_if.cluster.get(Pod, key)
            if pod is None:
                raise ChangeError(f"{self.title}: there is no pod {key!r}")
            trial.delete(pod)
        return ()


class Reschedule(ClusterChange, frozen=True, tag="reschedule"):
    """Take pods off their nodes, so that they are scheduled anew: those of some nodes, or all; not those that belong to
    their nodes.
    """

    nodes: tuple[Name, ...] = ()

    @property
    def title(self) -> str:
        return f"take the pods off {_listed(self.nodes) if self.nodes else 'all nodes'}"

    def apply(self, trial: Transaction, what_if: WhatIf) -> Iterable[str]:
        wanted = set(self.nodes)
        taken = [
            pod
            for pod in what_if.pods
            if may_be_freed(pod) and not belongs_to_its_node(pod) and (not wanted or pod.node_name in wanted)
        ]
        trial.delete(*taken)
        trial.add(*(freed(pod, what_if.cluster.get(Node, pod.node_name)) for pod in taken))
        return ()


Change: TypeAlias = (
    SetWeight
    | SwitchPlugin
    | SetArguments
    | Cordon
    | Uncordon
    | Drain
    | DeleteNodes
    | AddNodes
    | AddObjects
    | EditObjects
    | DeletePods
    | Reschedule
)


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    rest = len(known) - _NAMED
    return ", ".join([*known[:_NAMED], *([f"{rest} more"] if rest > 0 else [])])


def _cleared(node: Node) -> Node:
    """The node as a template: schedulable, without an identity."""
    metadata = attrs.evolve(node.metadata, uid="", resource_version="")
    return attrs.evolve(node, metadata=metadata, spec=attrs.evolve(node.spec, unschedulable=False))


def _numbered(obj: Named, number: int) -> Named:
    return obj.with_metadata(attrs.evolve(obj.metadata, name=f"{obj.name}-{number}", uid=""))
