"""Writes docs/feature-gates.md from the table of gates: `python docs/generate_feature_gates.py`."""

from __future__ import annotations

from pathlib import Path

from kschedfw.framework.gate_table import FEATURE_GATES, VERSIONS, FeatureGate, GateState

OUTPUT = Path(__file__).parent / "feature-gates.md"

INTRODUCTION = """\
# Feature gates

For operators: every feature gate, its default by version, and what it changes here.

<!-- Written by docs/generate_feature_gates.py from the table in kschedfw/framework/gate_table.py. Change that. -->

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

The defaults are those of v1.36. `--kube-version 1.37` takes another version's defaults; where only v1.36's behaviour
is here, a warning says so. `kschedfw compare --profile default@1.34 --profile default` shows [what an upgrade
changes](compare.md#configurations). Gates that need another one, are locked, or are unknown are refused in
kube-scheduler's words. A gate that isn't modelled can't be set away from its default.

A Policy has [gates of its own](policy.md#feature-gates).
"""


def feature_gates_page() -> str:
    """The text of docs/feature-gates.md."""
    header = f"| gate | {' | '.join(VERSIONS)} | needs | while it is on | can be set |"
    rows = [_row(name, gate) for name, gate in sorted(FEATURE_GATES.items())]
    return "\n".join([INTRODUCTION, header, f"|{' --- |' * (len(VERSIONS) + 4)}", *rows, ""])


def _row(name: str, gate: FeatureGate) -> str:
    states = " | ".join(_state(gate.at(version)) for version in VERSIONS)
    needs = ", ".join(gate.needs)
    merged = f"; from {gate.removed} on part of {gate.merged_into}" if gate.merged_into else ""
    return f"| {name} | {states} | {needs} | {gate.effect}{merged} | {_settable(gate)} |"


def _state(state: GateState | None) -> str:
    if state is None:
        return "–"
    return f"{state.stage}, {'on' if state.default else 'off'}{', locked' if state.locked else ''}"


def _settable(gate: FeatureGate) -> str:
    if gate.only is None:
        return "yes"
    return f"no, always {'on' if gate.only else 'off'}"


if __name__ == "__main__":
    OUTPUT.write_text(feature_gates_page(), encoding="utf-8")
