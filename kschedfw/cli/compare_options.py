"""What the options of `compare` name: configurations (`--profile`) and conditions (`--fail-on`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import attrs

from kschedfw.api.node import Node
from kschedfw.api.pod import Pod
from kschedfw.cli.configurations import selected_configuration
from kschedfw.cli.enabled import UsageError
from kschedfw.cluster import Cluster
from kschedfw.compare import Candidate, Condition, ConditionError, UnknownProfileError
from kschedfw.config import PROVIDERS

DEFAULT = "default"
WHAT_THERE_IS = f"a configuration file, FILE#PROFILE, {DEFAULT}, {' or '.join(PROVIDERS)}"


@attrs.frozen
class _Named:
    """The parts of a value: a file and perhaps a profile in it, or the name of a built-in configuration."""

    text: str
    file: Path | None = None
    profile: str | None = None

    @classmethod
    def of(cls, text: str) -> _Named:
        if text == DEFAULT or text in PROVIDERS:
            return cls(text)
        if Path(text).is_file():  # `#` may be a part of its name
            return cls(text, Path(text))
        file, separator, profile = text.rpartition("#")
        if separator and profile and Path(file).is_file():
            return cls(text, Path(file), profile)
        raise UsageError(f"--profile {text}: no such file; give {WHAT_THERE_IS}")

    @property
    def labels(self) -> tuple[str, str, str]:
        """Possible labels, from the shortest one to a unique one."""
        if self.file is None:
            return (self.text, self.text, self.text)
        suffix = "" if self.profile is None else f"#{self.profile}"
        return (self.profile or self.file.stem, f"{self.file.name}{suffix}", self.text)

    def candidate(self, label: str) -> Candidate:
        provider = self.text if self.text in PROVIDERS else None
        configuration = selected_configuration(self.file, provider)
        try:
            return Candidate.of(label, configuration, self.profile)
        except UnknownProfileError as error:
            raise UsageError(f"--profile {self.text}: {error}") from None


def candidates_of(values: Sequence[str], at_least: int = 2) -> list[Candidate]:
    """The candidates that the values of `--profile` name, in their order.

    Raises:
        UsageError: there are fewer than `at_least`, two are equal, or one names no configuration.
        ConfigurationError: a configuration is refused.
    """
    if len(values) < at_least:
        raise UsageError(f"give --profile at least twice: {WHAT_THERE_IS}")
    if twice := [value for value, count in Counter(values).items() if count > 1]:
        raise UsageError(f"--profile {twice[0]} is given twice; it would differ in nothing")
    named = [_Named.of(value) for value in values]
    return [each.candidate(label) for each, label in zip(named, _labels(named), strict=True)]


def _labels(named: Sequence[_Named]) -> list[str]:
    """The shortest labels that are all different."""
    lengths = [0] * len(named)
    while True:
        labels = [each.labels[length] for each, length in zip(named, lengths, strict=True)]
        counts = Counter(labels)
        if len(counts) == len(labels):
            return labels
        lengths = [
            min(length + (counts[label] > 1), 2) for length, label in zip(lengths, labels, strict=True)
        ]


def check_pods(candidates: Iterable[Candidate], cluster: Cluster) -> None:
    """Check that no candidate is without pods only because the pods name another scheduler.

    Raises:
        UsageError: a candidate is; says what would be right.
    """
    pending = {
        pod.spec.scheduler_name for pod in cluster.list(Pod) if not pod.node_name and not pod.is_terminal
    }
    for candidate in candidates:
        own = {profile.scheduler_name for profile in candidate.profiles}
        if pending and not candidate.takes_every_pod and not pending & own:
            raise UsageError(
                f"--profile {candidate.label}: no pending pod names a scheduler of it ({', '.join(sorted(own))}); "
                f"they name {', '.join(sorted(pending))}. FILE#PROFILE schedules all of them with one profile"
            )


def conditions_of(values: Iterable[str]) -> list[Condition]:
    """The conditions, in their order.

    Raises:
        UsageError: a text isn't a condition; says why.
    """
    try:
        return [Condition.parse(value) for value in values]
    except ConditionError as error:
        raise UsageError(f"--fail-on: {error}") from None


def check_resources(conditions: Sequence[Condition], cluster: Cluster) -> None:
    """Check that the resources in the conditions exist on some node.

    Raises:
        UsageError: a resource exists on no node; names a similar one.
    """
    known = {name for node in cluster.list(Node) for name in node.status.allocatable}
    for condition in conditions:
        for name in sorted(condition.resources - known):
            similar = get_close_matches(name, known, n=1)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            raise UsageError(f"--fail-on {condition.text}: no node has the resource {name}{hint}")
