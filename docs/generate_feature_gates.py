"""Writes docs/feature-gates.md from the tables of gates and rules: `python docs/generate_feature_gates.py`."""

from __future__ import annotations

from pathlib import Path

from kschedfw.framework.gate_table import FEATURE_GATES, FeatureGate, GateState
from kschedfw.framework.versions import RULES, VERSIONS, Rule

OUTPUT = Path(__file__).parent / "feature-gates.md"

INTRODUCTION = """\
# Feature gates and versions

For operators: after this page you know what each feature gate and rule changes, and in which versions.

<!-- Written by docs/generate_feature_gates.py from the tables in kschedfw/framework/gate_table.py and
kschedfw/framework/versions. Change those. -->

kschedfw decides as kube-scheduler v1.36, unless `--kube-version` names v1.34, v1.35 or v1.37. A version has its
defaults of feature gates, and [rules without a gate](#rules-without-a-gate). `kschedfw compare` shows
[what an upgrade changes](compare.md#configurations) for your pods.

## Setting gates

Gates are set as in kube-scheduler, by `--feature-gates GenericWorkload=true,GangScheduling=true`, or in a
configuration file of kschedfw, which kube-scheduler itself would refuse:

```yaml
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
featureGates: {GenericWorkload: true, GangScheduling: true}
```

In Python, `FeatureGates.parse("GenericWorkload=true,GangScheduling=true")` reads them, and
`Scheduler(cluster, feature_gates=gates)` follows them. A plugin finds them at `self.handle.feature_gates`. A gate on
the command line counts more than the same one in the file. `kschedfw config show` prints the gates that were given,
and the metric `kubernetes_feature_enabled` has all of them.

Where only v1.36's behaviour of a gate is here and the version has another default, a warning says so. Gates that need
another one, are locked, or are unknown are refused in kube-scheduler's words. A gate that isn't modelled can't be set
away from its default.

A Policy has [gates of its own](policy.md#feature-gates).

## Gates by version

Decisions with the gates of v1.36, default or set, were [recorded](conformance.md) from a running kube-scheduler. The
defaults of other versions, and the effects of gates that v1.36 lacks, were read.
"""

RULES_INTRODUCTION = """\
## Rules without a gate

A version also changes rules that no gate switches. *Recorded* rules were compared with decisions of a running
kube-scheduler; *read* ones come from the source that is named, and no decision of that version was compared.

v1.37's list of default plugins itself couldn't be read. A guide to `pkg/scheduler/apis/config/v1`, in a copy of that
time, gives the names and weights that v1.36 has, with the plugins that gates add; the order is taken to be v1.36's.
That a nomination counts while its pod is gated (kubernetes/kubernetes#139057, v1.37) holds here in every version. A
limit on the placements that are tried (`percentageOfPlacementsToScore`, kubernetes/kubernetes#139859) isn't in v1.37:
the pull request was open after its code freeze, and its configuration lacks the field.
A claim for All devices, of which some take shared counters, is allocated in every version; v1.36 panics
(kubernetes/kubernetes#138885). That a plugin's patch of a pod's status may have several conditions (#135160) is for
plugins in Go, and changes no decision.

Of v1.37 these aren't here:

| where | what |
| --- | --- |
| batching | members of a group reuse one another's searches (kubernetes/kubernetes#138754): here each is searched for, which gives other nodes only where a search doesn't look at all of them, in clusters of more than 100 nodes |
| preemption | nodes' `podPreemptionPolicy`, for pods that are resized (InPlacePodVerticalScalingSchedulerPreemption) |
| placements | groups of groups |
| metrics | how long the search for a single pod's victims takes: where it begins couldn't be read |
| metrics | that handling an update of a pending pod is `UnscheduledPodUpdate` and not `TargetPodUpdate` wasn't read |
"""  # noqa: E501  # rows of a table


def feature_gates_page() -> str:
    """The text of docs/feature-gates.md."""
    header = f"| gate | {' | '.join(VERSIONS)} | needs | while it is on | KEP | can be set |"
    rows = [_row(name, gate) for name, gate in sorted(FEATURE_GATES.items())]
    gates = [INTRODUCTION, header, f"|{' --- |' * (len(VERSIONS) + 5)}", *rows, ""]
    rules = [
        RULES_INTRODUCTION,
        "| rule | since | where | before | since then | source | basis |",
        f"|{' --- |' * 7}",
        *map(_rule, RULES),
        "",
    ]
    return "\n".join([*gates, *rules])


def _rule(rule: Rule) -> str:
    return f"| {rule.name} | {rule.since} | {rule.area} | {rule.before} | {rule.after} | {rule.source} | {rule.basis} |"


def _row(name: str, gate: FeatureGate) -> str:
    states = " | ".join(_state(gate.at(version)) for version in VERSIONS)
    needs = ", ".join(gate.needs)
    merged = f"; from {gate.removed} on part of {gate.merged_into}" if gate.merged_into else ""
    kep = gate.kep or ""
    return f"| {name} | {states} | {needs} | {gate.effect}{merged} | {kep} | {_settable(gate)} |"


def _state(state: GateState | None) -> str:
    if state is None:
        return "–"
    return f"{state.stage}, {'on' if state.default else 'off'}{', locked' if state.locked else ''}"


def _settable(gate: FeatureGate) -> str:
    if gate.only is None:
        return "yes"
    lacks = f": {gate.lacks}" if gate.lacks else ""
    return f"no, always {'on' if gate.only else 'off'}{lacks}"


if __name__ == "__main__":
    OUTPUT.write_text(feature_gates_page(), encoding="utf-8")
