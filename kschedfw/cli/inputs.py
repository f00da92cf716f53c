"""Reading of the command line's files into a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from kschedfw.api.admission import TOLERATED_BY_DEFAULT, RefusedPod
from kschedfw.api.devices import DeviceTaintRule
from kschedfw.api.errors import KschedfwError
from kschedfw.api.field_errors import UnknownField, printable
from kschedfw.api.frozendict import EMPTY
from kschedfw.api.limits import DEFAULT_LIMITS, Limits
from kschedfw.api.manifests import Expand, FieldValidation, Manifests, Progress, read_manifests
from kschedfw.api.meta import Named
from kschedfw.api.node import TaintEffect
from kschedfw.api.pod import Pod
from kschedfw.api.pod_groups import PodGroup, group_key
from kschedfw.api.records import frozen
from kschedfw.api.removed_versions import removed_in
from kschedfw.api.warning_events import WarningEvent
from kschedfw.api.words import counted
from kschedfw.api.workloads import CronJob, WorkloadObject
from kschedfw.cli.enabled import UsageError, check_name
from kschedfw.cli.exits import tell
from kschedfw.cli.formats import FORMATS, MANIFESTS
from kschedfw.cli.live import NO_LIVE_CLUSTER, Live, SourceCluster
from kschedfw.cluster import Cluster, InMemoryCluster
from kschedfw.framework.gate_table import (
    DEVICE_TAINT_RULES,
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
    TAINT_TOLERATION_COMPARISON_OPERATORS,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
)
from kschedfw.framework.gates import FeatureGates
from kschedfw.framework.versions import is_since

KINDS_NAMED = 5
"""The most kinds that a note lists; more are counted."""

REASONS_NAMED = 5
"""For how many reasons notes say that admission refuses pods; other pods are counted."""

_NAMED: Final = 5
"""The most workloads without pods that are named for each reason."""

_NOT_MODELLED: Final = {
    "CompositePodGroup": "CompositePodGroup, which is off by default in v1.37",
}
"""Kinds that scheduling depends on with a gate that isn't here."""

OPENB_HINT = "; the CSVs of the OpenB trace are read with --format openb, the pods' with --pods"


class InvalidInputError(KschedfwError, ValueError):
    """The error of invalid input; `problems` has a line for each problem, `ways_out` are options that help."""

    def __init__(self, problems: Sequence[str], ways_out: Sequence[str]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)
        self._ways_out = ways_out

    def __str__(self) -> str:
        count = len(self.problems)
        found = "1 problem" if count == 1 else f"{count} problems"
        hint = f" ({', '.join(self._ways_out)})" if self._ways_out else ""
        return f"{found} in the input, so nothing was done{hint}"


@frozen
class ReadingOptions:
    """The rules of reading manifests: the options that all commands share."""

    skip_invalid: bool = False
    field_validation: FieldValidation = FieldValidation.STRICT
    limits: Limits = DEFAULT_LIMITS
    expand: Expand = Expand.WORKLOADS


DEFAULT_READING = ReadingOptions()


@frozen
class Input:
    """The cluster that was read, with messages about it.

    `problems` are warnings and omitted objects; `notes` describe the objects that were read. `refused` are pods
    that an API server would not create; `refusal_notes` describes them. A pod whose name has no namespace is
    looked for in `namespace`; None stands for all namespaces. `workloads` are those of the files, as they were read,
    and `without_pods` says of some why they have no pods. `warning_events` are what the cluster itself warned of.
    """

    cluster: InMemoryCluster
    problems: Sequence[str] = ()
    notes: Sequence[str] = ()
    refused: Sequence[RefusedPod] = ()
    namespace: str | None = None
    workloads: Sequence[WorkloadObject | CronJob] = ()
    without_pods: Mapping[str, str] = EMPTY
    warning_events: Sequence[WarningEvent] = ()
    outdated: Mapping[tuple[str, str], int] = EMPTY
    """The number of objects by API version and kind, where a version of Kubernetes has stopped to serve it."""


@frozen
class InputOptions:
    """The options that say, beside the argument CLUSTER, what a cluster is read from and how.

    `format` is `MANIFESTS`, or the name of an entry point of the group `kschedfw.formats`. With a `live` cluster, files
    are added to it: their new pods are admitted under the policies of both.
    """

    pods: Sequence[Path] = ()
    live: Live = NO_LIVE_CLUSTER
    format: str = MANIFESTS
    reading: ReadingOptions = DEFAULT_READING

    def read(
        self,
        cluster: Sequence[Path],
        *,
        progress: Progress | None = None,
        show_progress: bool = True,
        namespaces: bool = False,
    ) -> Input:
        """Read everything into one cluster; `progress` is called with the numbers of bytes read and of all bytes.

        `show_progress` shows the progress of reading the live cluster. `namespaces` says that the command has a use for
        a namespace of files.

        Raises:
            InvalidInputError: the input is invalid, and the options don't skip invalid objects.
            KschedfwError: the live cluster can't be read.
            ExtensionError: no installed distribution reads the format.
            UsageError: a directory is given instead of a CSV, or neither a file nor a live cluster.
            AlreadyExistsError: two CSVs have a node or pod of the same name.
            OSError: a file can't be read.
        """
        files, live, options = (*cluster, *self.pods), self.live, self.reading
        if live.is_wanted:
            if self.format != MANIFESTS:
                raise UsageError(f"--format {self.format}: a trace and a live cluster don't go together")
            found = live.read(show_progress=show_progress)
            parts = [_live_part(found)]
            if files:
                existing = found.manifests.objects(skip_invalid=True)
                parts.append(_read_files(files, options, existing=existing))
            return attrs.evolve(_cluster_of(*parts), namespace=found.namespace)
        if live.namespace is not None and not namespaces:
            ways = " or ".join(live.ways)
            raise UsageError(f"--namespace {live.namespace}: goes with a live cluster; say which with {ways}")
        if not files:
            named = f", or a live one with {' or '.join(live.ways)}" if live.ways else ""
            raise UsageError(f"there is no cluster: give files{named}")
        if self.format != MANIFESTS:
            return FORMATS.load(self.format).read(cluster, self.pods)
        read = read_manifest_input(files, options, csv_hint=OPENB_HINT, progress=progress)
        if live.namespace is not None:
            check_name("namespace", live.namespace, {pod.namespace for pod in read.cluster.list(Pod)})
        return attrs.evolve(read, namespace=live.namespace)


def read_manifest_input(
    paths: Sequence[Path],
    options: ReadingOptions = DEFAULT_READING,
    *,
    csv_hint: str = "",
    progress: Progress | None = None,
) -> Input:
    """Read manifests into one cluster; `csv_hint` is added to the error about a CSV.

    Raises:
        InvalidInputError: the manifests are invalid, and the options don't skip invalid objects.
        OSError: a file can't be read.
    """
    return _cluster_of(_read_files(paths, options, csv_hint, progress))


@frozen
class _ReadManifests:
    """Manifests from one place, with the messages about them."""

    manifests: Manifests
    problems: Sequence[str]
    notes: Sequence[str]


def _cluster_of(*parts: _ReadManifests) -> Input:
    # Who read the parts has refused what isn't to be skipped.
    objects = [obj for part in parts for obj in part.manifests.objects(skip_invalid=True)]
    return Input(
        InMemoryCluster(objects),
        [problem for part in parts for problem in part.problems],
        [note for part in parts for note in part.notes],
        [pod for part in parts for pod in part.manifests.admission.refused],
        workloads=[workload for part in parts for workload in part.manifests.workloads],
        without_pods={name: why for part in parts for name, why in part.manifests.without_pods.items()},
        warning_events=[event for part in parts for event in part.manifests.warning_events],
        outdated=sum((Counter(part.manifests.outdated) for part in parts), Counter()),
    )


def _read_files(
    paths: Sequence[Path],
    options: ReadingOptions,
    csv_hint: str = "",
    progress: Progress | None = None,
    existing: Iterable[Named] = (),
) -> _ReadManifests:
    csvs = [path for path in paths if _is_csv(path) and path.exists()]
    manifests = read_manifests(
        *(path for path in paths if path not in csvs),
        field_validation=options.field_validation,
        limits=options.limits,
        expand_workloads=options.expand,
        progress=progress,
        existing=existing,
    )
    problems = [f"{path}: a CSV is no manifest, expected YAML or JSON{csv_hint}" for path in csvs]
    directories = {str(path): path for path in paths if path.is_dir()}
    for problem in manifests.problems:
        directory = directories.get(problem.source)
        has_csv = directory is not None and any(map(_is_csv, directory.iterdir()))
        problems.append(f"{problem}{csv_hint if has_csv else ''}")
    if problems and not options.skip_invalid:
        ways_out = []
        # A missing file is no reason to leave out all of the input.
        if manifests.objects(skip_invalid=True):
            ways_out.append("--skip-invalid leaves out what is invalid")
        wrong = (error for problem in manifests.problems for error in problem.errors)
        if any(isinstance(error, UnknownField) for error in wrong):
            ways_out.append("--field-validation=warn lets unknown fields pass")
        raise InvalidInputError(problems, ways_out)
    left_out = len({(each.source, each.document, each.subject) for each in manifests.problems}) + len(csvs)
    problems += [f"warning: {warning}" for warning in manifests.warnings]
    notes = _notes(manifests)
    if left_out:
        notes.append(f"left out of the input, since invalid: {left_out:,}; standard error says what")
    return _ReadManifests(manifests, problems, notes)


def _live_part(found: SourceCluster) -> _ReadManifests:
    """Return the part of a live cluster.

    Unreadable objects are omitted with a message, as there is no other version.
    """
    missing = [f"{found.name}: {each}" for each in found.missing]
    problems = [*map(str, found.manifests.problems), *(f"warning: {each}" for each in missing)]
    notes = [f"read from {found.name}", *missing, *_notes(found.manifests)]
    if left_out := len(found.manifests.problems):
        notes.append(f"left out, since it can't be read: {left_out:,}; standard error says what")
    return _ReadManifests(found.manifests, problems, notes)


def _is_csv(path: Path) -> bool:
    return path.name.lower().endswith((".csv", ".csv.gz"))


def _notes(manifests: Manifests) -> list[str]:
    # With the kind as it is written: an object doesn't tell the plural by which its API knows the kind.
    custom = Counter(f"{obj.kind.name} of {obj.kind.api_version}" for obj in manifests.custom_objects)
    notes = []
    not_modelled = {kind: number for kind, number in manifests.ignored.items() if kind in _NOT_MODELLED}
    for kind, number in not_modelled.items():
        notes.append(
            f"not modelled (it needs the feature gate {_NOT_MODELLED[kind]}): {counted(number, kind)}"
        )
    if useless := {kind: number for kind, number in manifests.ignored.items() if kind not in not_modelled}:
        notes.append(f"scheduling has no use for some of the input: {_counted(useless)}")
    if custom:
        notes.append(f"kept for plugins that know what it is: {_counted(custom)}")
    if manifests.made:
        pods = counted(sum(manifests.made.values()), "pod")
        name, *others = manifests.made
        whose = counted(len(manifests.made), "workload") if others else printable(name)
        notes.append(f"{pods} made for {whose} (--no-expand makes none)")
    if manifests.custom_owners:
        notes.append(f"--expand-custom makes the pods of {_counted(manifests.custom_owners)}")
    return [*notes, *_notes_without_pods(manifests.without_pods), *_admission_notes(manifests)]


def _notes_without_pods(reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield notes on workloads without pods, those with the same reason in one."""
    by_reason: dict[str, list[str]] = {}
    for workload, reason in reasons.items():
        by_reason.setdefault(reason, []).append(printable(workload))
    for reason, names in by_reason.items():
        others = len(names) - _NAMED
        more = f" and {counted(others, 'more workload')}" if others > 0 else ""
        yield f"no pods of {', '.join(names[:_NAMED])}{more}: {reason}"


def _admission_notes(manifests: Manifests) -> Iterator[str]:
    """Yield notes on admission: the numbers of changed pods, and what wasn't known."""
    admission = manifests.admission
    for plugin, pods in admission.changed.items():
        yield f"changed at admission by {plugin}: {counted(pods, 'pod')}"
    taints = {(taint.key, taint.effect) for node in manifests.nodes for taint in node.spec.taints}
    if admission.admitted and any(
        key in TOLERATED_BY_DEFAULT and effect is TaintEffect.NO_EXECUTE for key, effect in taints
    ):
        yield "pods tolerate not-ready and unreachable nodes (NoExecute) for 300 s, by DefaultTolerationSeconds"
    for name, pods in admission.unknown_runtime_classes.items():
        yield f'RuntimeClass "{printable(name)}" isn\'t in the input, so {counted(pods, "pod")} got no overhead of it'


def tell_notes(loaded: Input) -> None:
    """Print the notes on an input to standard error, where a command ends without an answer that has them."""
    tell([f"note: {note}" for note in loaded.notes])


def version_notes(loaded: Input, gates: FeatureGates) -> Iterator[str]:
    """Yield notes on objects that this version of Kubernetes no longer serves, and on groups without their gates."""
    for (api_version, kind), number in loaded.outdated.items():
        if is_since(gates.version, removed := removed_in(api_version, kind)):
            it = f"{api_version}, which is read all the same"
            yield f"Kubernetes v{removed} no longer serves {it}: {counted(number, kind)}"
    yield from gated_toleration_notes(loaded.cluster.list(Pod), gates)
    yield from _gate_notes(loaded.cluster, gates)


def gated_toleration_notes(pods: Iterable[Pod], gates: FeatureGates) -> Iterator[str]:
    """Yield a note on tolerations with Gt or Lt where their feature gate is off; it names the first, and counts pods.

    kube-apiserver refuses to create such a pod, but the gate may have been on when an exported pod was created.
    """
    found = {
        pod.key: f"spec.tolerations[{index}].operator: {each.operator} of pod {printable(pod.key)}"
        for pod in pods
        for index, each in enumerate(pod.spec.tolerations)
        if each.operator.compares_integers
    }
    if found and not gates.enabled(gate := TAINT_TOLERATION_COMPARISON_OPERATORS):
        more = f" (and of {counted(len(found) - 1, 'more pod')})" if len(found) > 1 else ""
        where = f"{next(iter(found.values()))}{more}"
        yield f"without effect, since the feature gate {gate} is off: {where}; an API server would refuse to create it"


def _gate_notes(cluster: Cluster, gates: FeatureGates) -> Iterator[str]:
    """Yield notes on objects, or parts of their specs, that are without effect since a feature gate is off."""
    if not gates.enabled(DEVICE_TAINT_RULES) and (number := len(cluster.list(DeviceTaintRule))):
        yield (
            f"without effect, since the feature gate {DEVICE_TAINT_RULES} is off:"
            f" {counted(number, 'DeviceTaintRule')}"
        )
    groups = cluster.list(PodGroup)
    keys = {group.key for group in groups} | {group_key(pod) for pod in cluster.list(Pod)} - {""}
    if keys and not gates.enabled(GENERIC_WORKLOAD):
        yield f"without effect, since the feature gate {GENERIC_WORKLOAD} is off: {counted(len(keys), 'PodGroup')}"
        return
    parts = (
        (
            "CompositePodGroup",
            "parent group",
            sum(bool(group.spec.parent_composite_pod_group_name) for group in groups),
        ),
        (
            "DRAWorkloadResourceClaims",
            "list of resource claims",
            sum(bool(group.spec.resource_claims) for group in groups),
        ),
        (GANG_SCHEDULING, "minCount", sum(group.min_count is not None for group in groups)),
        (
            TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
            "topology constraint",
            sum(bool(group.topology_key) for group in groups),
        ),
    )
    for gate, part, number in parts:
        if number and not gates.enabled(gate):
            yield f"the {part} is without effect, since the feature gate {gate} is off: {counted(number, 'PodGroup')}"


def refusal_notes(refused: Iterable[RefusedPod]) -> Iterator[str]:
    """Yield notes on pods that an API server would not create: the first reasons, with the numbers of pods."""
    reasons: dict[str, list[RefusedPod]] = {}
    for pod in refused:
        reasons.setdefault(pod.reason, []).append(pod)
    for pods_of_reason in list(reasons.values())[:REASONS_NAMED]:
        more = len(pods_of_reason) - 1
        also = f" (and {counted(more, 'more pod')})" if more else ""
        yield f"not created: {pods_of_reason[0].message}{also}"
    if rest := sum(map(len, list(reasons.values())[REASONS_NAMED:])):
        yield f"not created for other reasons: {counted(rest, 'pod')}"


def _counted(numbers: Mapping[str, int]) -> str:
    most = sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
    kinds = [f"{count} {printable(kind)}" for kind, count in most[:KINDS_NAMED]]
    if (rest := len(most) - KINDS_NAMED) > 0:
        kinds.append(counted(rest, "more kind"))
    return ", ".join(kinds)
