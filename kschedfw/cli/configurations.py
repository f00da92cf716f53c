"""Loading of the configuration that the options name: a file, an algorithm provider, or the default one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from kschedfw.api.records import frozen
from kschedfw.cli.enabled import UsageError
from kschedfw.config import (
    FeatureGates,
    SchedulerConfiguration,
    load_configuration,
    parse_configuration,
    preset_configuration,
)
from kschedfw.config.extensions import (
    DEFAULT,
    WHAT_THERE_IS,
    NamedConfiguration,
    UnknownConfigurationError,
    short_labels,
)
from kschedfw.framework.profile import Profile
from kschedfw.framework.versions import REFERENCE, VERSIONS
from kschedfw.scheduler.setup import Setup, UnknownProfileError, profiles_of


def feature_gates(given: Sequence[str], version: str | None = None) -> FeatureGates:
    """Return the gates of all `--feature-gates` options, with the defaults of a version of Kubernetes.

    Raises:
        FeatureGateError: the gates have errors; names all of them.
    """
    return FeatureGates.parse(",".join(given), version or REFERENCE)


def selected_configuration(
    file: Path | None,
    provider: str | None = None,
    gates: Sequence[str] = (),
    kube_version: str | None = None,
) -> SchedulerConfiguration:
    """Return the configuration of the file or the algorithm provider; without either, kube-scheduler's defaults.

    Its warnings are printed to stderr.

    Raises:
        UsageError: both are given.
        FeatureGateError, ExtensionError, ConfigurationError: one of them is refused.
        OSError: the file can't be read.
    """
    if file is not None and provider is not None:
        raise UsageError(
            f"--algorithm-provider {provider} takes the place of a configuration, and {file} is one"
        )
    configuration = _configuration(file, provider, feature_gates(gates, kube_version))
    print_warnings(configuration.source, configuration.warnings)
    return configuration


def _configuration(file: Path | None, provider: str | None, gates: FeatureGates) -> SchedulerConfiguration:
    if provider is not None:
        return preset_configuration(provider, gates)
    if file is not None:
        return load_configuration(file, gates=gates)
    # Read like a file that says nothing, since gates change kube-scheduler's defaults.
    default = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return parse_configuration(default, "default", gates=gates)


@frozen
class ConfigurationChoice:
    """The values of the options that name a configuration."""

    file: Path | None
    provider: str | None
    gates: Sequence[str]
    kube_version: str | None

    def load(self) -> SchedulerConfiguration:
        """Load the configuration; raises as `selected_configuration` does."""
        return selected_configuration(self.file, self.provider, self.gates, self.kube_version)


def selected_profile(configuration: SchedulerConfiguration, scheduler_name: str | None) -> Profile:
    """Return the profile of this name, or the only one; print a warning about extenders, which aren't called.

    Raises:
        UsageError: there is none of this name, or several and no name.
        PluginError, ProfileError: the profile can't run.
    """
    profiles = {profile.scheduler_name: profile for profile in profiles_of(configuration)}
    if scheduler_name is None and len(profiles) > 1:
        raise UsageError(
            f"{configuration.source} has several profiles; --scheduler-name says which: {', '.join(profiles)}"
        )
    name = next(iter(profiles)) if scheduler_name is None else scheduler_name
    if name not in profiles:
        raise UsageError(
            f"--scheduler-name {name}: {configuration.source} has no such profile; it has {', '.join(profiles)}"
        )
    if configuration.extenders:
        print(f"{configuration.source}: warning: its extenders aren't asked", file=sys.stderr)
    return profiles[name]


def print_warnings(source: str, warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"{source}: warning: {warning}", file=sys.stderr)


def candidates_of(values: Sequence[str], at_least: int = 2, option: str = "--profile") -> list[Setup]:
    """Return the candidates that the values of an option name, in their order.

    Raises:
        UsageError: there are fewer than `at_least`, two are equal, or one names no configuration.
        ConfigurationError: a configuration is refused.
    """
    if len(values) < at_least:
        raise UsageError(f"give {option} at least twice: {WHAT_THERE_IS}")
    if twice := [value for value, count in Counter(values).items() if count > 1]:
        raise UsageError(f"{option} {twice[0]} is given twice; it would differ in nothing")
    named = [_named(value, option) for value in values]
    labels = short_labels(named)
    return [_candidate(label, each, option) for each, label in zip(named, labels, strict=True)]


@frozen
class ComparedConfigurations:
    """The configurations that a command compares.

    `remake` returns the one that is compared in several versions of Kubernetes with any other gates; None if there
    are several configurations.
    """

    setups: Sequence[Setup]
    remake: Callable[[FeatureGates], Setup] | None = None

    @classmethod
    def of(
        cls, values: Sequence[str], versions: Sequence[str], option: str = "--profile", at_least: int = 2
    ) -> ComparedConfigurations:
        """Return the configurations that the values of an option name, or one of them in several versions.

        Raises:
            UsageError: as for `candidates_of`; or there are versions and several configurations, only one version, two
                that are equal, one that is unknown, or a configuration that is of a certain version.
            ConfigurationError: a configuration is refused, or a version refuses it.
        """
        if not versions:
            return cls(candidates_of(values, at_least, option))
        if len(values) > 1:
            raise UsageError(f"--kube-version compares versions of one {option}")
        if len(versions) < 2:
            raise UsageError(
                "give --kube-version at least twice: the version that runs, and the one to upgrade to"
            )
        for version in versions:
            if version not in VERSIONS:
                known = ", ".join(VERSIONS)
                raise UsageError(f"--kube-version {version}: there are no defaults of it; known: {known}")
        (value,) = values or [DEFAULT]
        setups = candidates_of([f"{value}@{version}" for version in versions], option=option)
        named = _named(value, option)

        def remake(gates: FeatureGates) -> Setup:
            return Setup.of(value, _configuration(named.file, named.provider, gates), named.profile)

        return cls(setups, remake)


def _named(value: str, option: str) -> NamedConfiguration:
    try:
        return NamedConfiguration.of(value)
    except UnknownConfigurationError as error:
        raise UsageError(f"{option} {value}: {error}") from None


def _candidate(label: str, named: NamedConfiguration, option: str) -> Setup:
    configuration = selected_configuration(named.file, named.provider, kube_version=named.version)
    try:
        return Setup.of(label, configuration, named.profile)
    except UnknownProfileError as error:
        raise UsageError(f"{option} {named.text}: {error}") from None
