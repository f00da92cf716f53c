"""The public names are few, and a new or lost one is noticed."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import subprocess
import sys

import pytest

import kschedfw
import kschedfw.explain
import kschedfw.testing

PUBLIC = {
    "kschedfw": [
        "ActionType",
        "Cache",
        "ClusterEvent",
        "Code",
        "ConcurrentCycleError",
        "ConfigurationError",
        "CustomKind",
        "CustomObject",
        "CustomResource",
        "CycleState",
        "EnabledPlugin",
        "Evaluation",
        "EventResource",
        "FieldError",
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
        "ScheduleResult",
        "Scheduler",
        "SchedulerConfiguration",
        "SchedulingError",
        "Snapshot",
        "StateKey",
        "Status",
        "Verdicts",
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
    "kschedfw.explain": [
        "Beyond",
        "Explaining",
        "ExplainingScheduler",
        "Explanation",
        "ExplanationFileError",
        "ExplanationWriter",
        "FilterStep",
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
MODULES = {"kschedfw": kschedfw, "kschedfw.explain": kschedfw.explain, "kschedfw.testing": kschedfw.testing}
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


def test_the_packages_docstring_names_them_all_and_nothing_else() -> None:
    named = set(re.findall(r"`([A-Za-z_]+)`", kschedfw.__doc__ or ""))
    assert named == set(PUBLIC["kschedfw"])


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
