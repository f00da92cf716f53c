"""The public names are few, and a new or lost one is noticed."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import get_args, get_type_hints

import attrs
import pytest

import kschedfw
import kschedfw.api

PUBLIC = {
    "kschedfw": [
        "ActionType",
        "Cache",
        "Candidate",
        "Clock",
        "ClusterClient",
        "ClusterEvent",
        "Code",
        "ConcurrentCycleError",
        "ConfigurationError",
        "CustomKind",
        "CustomObject",
        "CustomResource",
        "CycleState",
        "DisruptionBudgets",
        "EnabledPlugin",
        "Evaluation",
        "EventResource",
        "FieldError",
        "FieldValidation",
        "FitError",
        "Framework",
        "FrozenDict",
        "GenericScheduler",
        "Handle",
        "InMemoryCluster",
        "KschedfwError",
        "NoNodesAvailableError",
        "Node",
        "NodeInfo",
        "NodeSelection",
        "NodeTable",
        "NodeToStatus",
        "ObjectMeta",
        "Parallelizer",
        "Plugin",
        "Pod",
        "PodInfo",
        "PostFilterResult",
        "PreBindPreFlightResult",
        "PreFilterResult",
        "PreemptionEvaluator",
        "PreemptionPlan",
        "PreemptionRules",
        "Profile",
        "QosClass",
        "Quantity",
        "QueuedPodInfo",
        "QueueingHint",
        "Reads",
        "Registry",
        "Resource",
        "ScheduleResult",
        "Scheduler",
        "SchedulerConfiguration",
        "SchedulingError",
        "Snapshot",
        "StateKey",
        "Status",
        "SystemClock",
        "Verdicts",
        "Victims",
        "VolumeController",
        "__version__",
        "activate_pods",
        "default_profile",
        "hookimpl",
        "load_configuration",
        "pod_qos_class",
        "read_manifests",
        "read_openb_nodes",
        "read_openb_pods",
        "scheduler_from_configuration",
    ],
    "kschedfw.api": [
        "AWSElasticBlockStoreSource",
        "Affinity",
        "AzureDiskSource",
        "AzureFileSource",
        "CSIDriver",
        "CSIDriverSpec",
        "CSINode",
        "CSINodeDriver",
        "CSINodeSpec",
        "CSISource",
        "CSIStorageCapacity",
        "CinderSource",
        "CompletionMode",
        "Container",
        "ContainerImage",
        "ContainerPort",
        "ContainerStatus",
        "CustomKind",
        "CustomObject",
        "CustomResource",
        "DaemonSet",
        "Deployment",
        "EphemeralVolumeSource",
        "FieldError",
        "FieldErrors",
        "FieldValidation",
        "FrozenDict",
        "GCEPersistentDiskSource",
        "ISCSISource",
        "ImageVolumeSource",
        "InvalidObjectError",
        "Job",
        "JobSpec",
        "JobStatus",
        "KschedfwError",
        "LabelSelected",
        "LabelSelector",
        "LocalSource",
        "ManifestError",
        "Manifests",
        "Named",
        "Namespace",
        "Node",
        "NodeAffinity",
        "NodeCondition",
        "NodeInclusionPolicy",
        "NodeSelector",
        "NodeSelectorTerm",
        "NodeSpec",
        "NodeStatus",
        "ObjectMeta",
        "ObjectReference",
        "Operator",
        "OwnerReference",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "PersistentVolumeClaimSource",
        "PersistentVolumeClaimSpec",
        "PersistentVolumeClaimTemplate",
        "PersistentVolumeSpec",
        "Pod",
        "PodAffinity",
        "PodAffinityTerm",
        "PodCondition",
        "PodDisruptionBudget",
        "PodDisruptionBudgetSpec",
        "PodDisruptionBudgetStatus",
        "PodPhase",
        "PodRequests",
        "PodSchedulingGate",
        "PodSpec",
        "PodStatus",
        "PodTemplateSpec",
        "PortworxVolumeSource",
        "PreemptionPolicy",
        "PreferredSchedulingTerm",
        "PriorityClass",
        "Protocol",
        "QosClass",
        "Quantity",
        "QuantityError",
        "QuantityFormat",
        "RBDSource",
        "ReplicaSet",
        "ReplicationController",
        "ReplicationControllerSpec",
        "Requirement",
        "ResourceAmounts",
        "ResourceRequirements",
        "RestartPolicy",
        "Selector",
        "Service",
        "ServiceSpec",
        "StatefulSet",
        "StatefulSetOrdinals",
        "StatefulSetSpec",
        "StorageClass",
        "Taint",
        "TaintEffect",
        "Toleration",
        "TolerationOperator",
        "TopologyRequirement",
        "TopologySelectorTerm",
        "TopologySpreadConstraint",
        "UnsatisfiableAction",
        "Volume",
        "VolumeAttachment",
        "VolumeAttachmentSource",
        "VolumeAttachmentSpec",
        "VolumeAttachmentStatus",
        "VolumeBindingMode",
        "VolumeNodeAffinity",
        "VolumeNodeResources",
        "VolumePhase",
        "VolumeResourceRequirements",
        "VsphereVolumeSource",
        "WeightedPodAffinityTerm",
        "node_allocatable",
        "node_from_manifest",
        "object_from_manifest",
        "parse_manifests",
        "pod_from_manifest",
        "pod_qos_class",
        "pod_requests",
        "read_manifests",
        "to_manifest",
    ],
    "kschedfw.cluster": [
        "AlreadyExistsError",
        "Cluster",
        "ClusterError",
        "ConflictError",
        "EventType",
        "Freed",
        "InMemoryCluster",
        "MissingObject",
        "NotFoundError",
        "RecordedEvent",
        "VolumeController",
        "WatchEvent",
        "free_pods",
        "from_manifests",
        "missing_objects",
    ],
    "kschedfw.compare": [
        "Against",
        "Candidate",
        "Change",
        "Comparison",
        "Condition",
        "ConditionError",
        "Failure",
        "Fragmentation",
        "Ground",
        "Move",
        "Moves",
        "NodeAllocation",
        "Points",
        "Run",
        "UnknownProfileError",
        "Workload",
        "compare",
        "failures",
        "fragmentation",
        "imbalance_within",
    ],
    "kschedfw.simulator": [
        "Arrivals",
        "ArrivalsError",
        "Decision",
        "OpenbError",
        "Outcome",
        "Peak",
        "Reason",
        "Replay",
        "Report",
        "Simulation",
        "Spread",
        "Utilisation",
        "openb_notes",
        "read_openb_nodes",
        "read_openb_pods",
    ],
    "kschedfw.explain": [
        "Beyond",
        "Evidence",
        "Explaining",
        "ExplainingScheduler",
        "Explanation",
        "ExplanationFileError",
        "ExplanationWriter",
        "FilterStep",
        "GivesEvidence",
        "NodeExplanation",
        "PreFilterStep",
        "PreemptionCandidate",
        "PreemptionStep",
        "Refusals",
        "Result",
        "Score",
        "ScoreStep",
        "UnknownNodeError",
        "Verdict",
        "Victim",
        "explain_pod",
        "gated",
        "read_explanations",
    ],
    "kschedfw.testing": [
        "ClaimBuilder",
        "FakeClock",
        "FrameworkHarness",
        "NodeBuilder",
        "PluginContract",
        "PodBuilder",
        "VolumeBuilder",
        "assert_decision",
        "assert_golden",
        "decide",
        "make_claim",
        "make_node",
        "make_pod",
        "make_volume",
        "record_decisions",
    ],
}
MODULES = {name: importlib.import_module(name) for name in PUBLIC}
NAMES = [(module, name) for module, names in PUBLIC.items() for name in names]


@pytest.mark.parametrize("module", PUBLIC)
def test_these_names_are_public_and_no_others(module: str) -> None:
    assert sorted(MODULES[module].__all__) == PUBLIC[module]


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_each_exists_and_explains_itself(module: str, name: str) -> None:
    public = getattr(MODULES[module], name)
    if name in ("__version__", "hookimpl"):  # a string, and an instance of pluggy's marker
        return
    own = public.__doc__ if inspect.isclass(public) else inspect.getdoc(public)
    if module == "kschedfw" or inspect.isclass(public):
        assert own, f"{name} has no docstring"
        assert not own.startswith(f"{name}("), (
            "a docstring, not the signature that a decorator puts in its place"
        )


def test_the_types_of_an_objects_fields_are_public() -> None:
    classes = [
        public for public in vars(kschedfw.api).values() if inspect.isclass(public) and attrs.has(public)
    ]
    hints = {cls: get_type_hints(cls, localns={"PodRequests": kschedfw.api.PodRequests}) for cls in classes}
    used = {
        each
        for cls in classes
        for field in attrs.fields(cls)
        if not field.name.startswith("_")
        for each in _classes_in(hints[cls][field.name])
    }
    assert {cls.__name__ for cls in used} <= set(kschedfw.api.__all__)


def _classes_in(hint: object) -> Iterator[type]:
    """The project's classes that a type hint names."""
    if inspect.isclass(hint) and hint.__module__.startswith("kschedfw."):
        yield hint
    for argument in get_args(hint):
        yield from _classes_in(argument)


def test_the_version_is_the_distributions() -> None:
    assert kschedfw.__version__ == importlib.metadata.version("kschedfw")


def test_importing_it_needs_neither_the_extras_nor_the_plugins() -> None:
    program = """
import sys
for name in ("typer", "rich", "click", "pytest", "hypothesis"):
    sys.modules[name] = None
import kschedfw, kschedfw.testing, kschedfw.simulator
print(*[name for name in sys.modules if name.startswith("kschedfw.plugins")])
"""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
