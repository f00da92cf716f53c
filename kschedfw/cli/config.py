"""`kschedfw config`: check, show and compare configurations."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
import click

from kschedfw.api.field_errors import FieldError, printable
from kschedfw.api.words import counted
from kschedfw.cli.configurations import feature_gates as gates_of
from kschedfw.cli.configurations import print_warnings, selected_configuration
from kschedfw.cli.construction import refused_profile
from kschedfw.cli.exits import ExitCode, complain, print_json
from kschedfw.cli.options import FILE, gates_option, json_option, kube_version_option, provider_option
from kschedfw.config import (
    ConfigurationError,
    FeatureGates,
    SchedulerConfiguration,
    load_configuration,
)
from kschedfw.config.effective import effective, plain, settings_of
from kschedfw.config.validation import V1
from kschedfw.framework.profile import EnabledPlugin, Profile
from kschedfw.framework.runtime.registry import Registry
from kschedfw.scheduler.setup import profiles_of

HELP = """Check, show and compare configurations: KubeSchedulerConfigurations, and Policies."""

CHECK_HELP = """Validate configurations, and print all problems.

\b
Exit codes:
  0  kube-scheduler would accept them (v1.36; for a Policy v1.20) but for
     fields that only kschedfw has, every plugin is installed and can be
     instantiated, and the profiles can decide on a pod
  1  one of them is invalid; standard output has a line for each problem
  2  a file can't be read
"""

SHOW_HELP = """Show the effective settings of a configuration, defaults included.

For every profile these are: the plugins of each extension point, in order, with the weight of scores, why the plugin is
enabled (default, multiPoint, explicit, Policy, provider), the distribution that it comes from, and, for a Policy, the
predicates and priorities that it implements; and the arguments with their defaults.

Without FILE and --algorithm-provider: kube-scheduler's defaults.

\b
Exit codes:
  0  done
  2  it is invalid or can't be read
"""

DIFF_HELP = """Compare the effective settings of two configurations.

A and B are files, or default for kube-scheduler's own. Profiles are matched by name; if both have only one, these two
are compared. Why a plugin is enabled makes
no difference.

\b
Exit codes:
  0  their settings are equal
  1  they differ
  2  one of them is invalid or can't be read
"""

REFUSED = DIFFERENT = 1
DEFAULT = Path("default")
"""Stands for kube-scheduler's own configuration, unless there is such a file."""
NAME_WIDTH = 38
ORIGIN_WIDTH = 12


@click.group("config", help=HELP)
def config() -> None:
    pass


@config.command("check", help=CHECK_HELP, short_help="Say what is wrong with configurations.")
@click.argument(
    "files",
    type=FILE,
    nargs=-1,
    required=True,
    metavar="FILE...",
    help="Configurations, YAML or JSON; - is the standard input.",
)
@gates_option
@kube_version_option
@json_option
def check(
    files: Sequence[Path],
    feature_gates: Sequence[str],
    kube_version: str | None,
    as_json: bool,
) -> None:
    gates = gates_of(feature_gates, kube_version)
    verdicts: list[FileVerdict] = []
    unreadable = False
    for file in files:
        try:
            verdict = _verdict(file, gates)
        except OSError as error:
            complain(f"{file}: {error.strerror or error}", ExitCode.BAD_INPUT)
            unreadable = True
            continue
        verdicts.append(verdict)
        if not as_json:
            verdict.tell()
    if as_json:
        print_json([verdict.to_json() for verdict in verdicts])
    if unreadable:
        raise click.exceptions.Exit(ExitCode.BAD_INPUT)
    if any(verdict.errors for verdict in verdicts):
        raise click.exceptions.Exit(REFUSED)


@config.command("show", help=SHOW_HELP, short_help="Show a configuration as it takes effect.")
@click.argument("file", type=FILE, required=False, metavar="[FILE]", help="A configuration, YAML or JSON.")
@provider_option
@gates_option
@kube_version_option
@json_option
def show(
    file: Path | None,
    algorithm_provider: str | None,
    feature_gates: Sequence[str],
    kube_version: str | None,
    as_json: bool,
) -> None:
    configuration = selected_configuration(file, algorithm_provider, feature_gates, kube_version)
    if as_json:
        print_json(effective(configuration))
    else:
        _print(_shown(configuration))


@config.command("diff", help=DIFF_HELP, short_help="Compare what two configurations do.")
@click.argument("first", type=FILE, metavar="A", help="A configuration, or default.")
@click.argument("second", type=FILE, metavar="B", help="Another one, or default.")
@gates_option
@kube_version_option
@json_option
def diff(
    first: Path,
    second: Path,
    feature_gates: Sequence[str],
    kube_version: str | None,
    as_json: bool,
) -> None:
    configurations = [
        selected_configuration(
            None if file == DEFAULT and not file.exists() else file,
            gates=feature_gates,
            kube_version=kube_version,
        )
        for file in (first, second)
    ]
    names = [[profile.scheduler_name for profile in each.profiles] for each in configurations]
    if len(names[0]) == len(names[1]) == 1:
        # One label for both, so that their values meet; their names are compared as a value.
        names[0] = names[1] = [" and ".join(dict.fromkeys(names[0] + names[1]))]
    labels = set(names[0]) & set(names[1])
    before, after = (
        dict(_effects(each, dict(zip(own, each.profiles, strict=True)), labels))
        for each, own in zip(configurations, names, strict=True)
    )
    differing = [path for path in {**before, **after} if before.get(path) != after.get(path)]
    if as_json:
        print_json([{"path": path, "a": before.get(path), "b": after.get(path)} for path in differing])
    else:
        _print(_differences(differing, before, after))
    if differing:
        raise click.exceptions.Exit(DIFFERENT)


@attrs.frozen
class FileVerdict:
    """The verdict on a file; `configuration` is None if it was refused."""

    file: str
    configuration: SchedulerConfiguration | None
    errors: Sequence[FieldError]
    warnings: tuple[str, ...]

    def tell(self) -> None:
        """Print the verdict: problems to stdout, warnings to stderr."""
        print_warnings(self.file, self.warnings)
        if self.errors:
            print(ConfigurationError(self.file, self.errors))
        elif self.configuration is not None:
            print(f"{self.file}: valid, with {counted(len(self.configuration.profiles), 'profile')}")

    def to_json(self) -> dict[str, object]:
        return {
            "file": self.file,
            "valid": not self.errors,
            "errors": [{"path": error.path, "message": error.message} for error in self.errors],
            "warnings": list(self.warnings),
        }


def _verdict(file: Path, gates: FeatureGates) -> FileVerdict:
    """Return the verdict on a file. Raises OSError if the file can't be read."""
    try:
        # Other commands read older versions, too: what such a file would do as v1 can be asked.
        configuration = load_configuration(file, gates=gates, versions=(V1,))
    except ConfigurationError as error:
        return FileVerdict(error.source, None, error.errors, error.warnings)
    registry = Registry()
    refused = [
        error
        for index, profile in enumerate(profiles_of(configuration))
        for error in refused_profile(profile, registry, f"profiles[{index}]")
    ]
    return FileVerdict(configuration.source, configuration, refused, configuration.warnings)


# --- Lines ---


def _print(lines: Iterable[str]) -> None:
    """Print lines whole: values of a file could otherwise break them, or move the cursor."""
    print("".join(f"{printable(line, len(line))}\n" for line in lines), end="")


def _differences(paths: Iterable[str], before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for path in paths:
        yield path
        for sign, effects in (("-", before), ("+", after)):
            if path in effects:
                yield f"  {sign} {effects[path]}"


def _shown(configuration: SchedulerConfiguration) -> Iterator[str]:
    yield ": ".join(filter(None, (configuration.source, configuration.api_version)))
    for path, value in _flat(settings_of(configuration)):
        yield f"{path}: {value}"
    for profile in configuration.profiles:
        yield ""
        yield f"profile {profile.scheduler_name}"
        if profile.percentage_of_nodes_to_score is not None:
            yield f"  percentageOfNodesToScore: {profile.percentage_of_nodes_to_score}"
        if profile.run_all_filters:
            yield "  runAllFilters: true"
        for point, plugins in profile.points.items():
            if plugins:
                yield f"  {point}"
                yield from map(_plugin, plugins)
        yield from _arguments(profile)


def _plugin(plugin: EnabledPlugin) -> str:
    name = f"{plugin.name} × {plugin.weight}" if plugin.weight else plugin.name
    source = f"(left out: {plugin.absence})" if plugin.absence else plugin.distribution or "this process"
    asked_by = f"  {', '.join(plugin.asked_by)}" if plugin.asked_by else ""
    return f"    {name:{NAME_WIDTH}}{plugin.origin:{ORIGIN_WIDTH}}{source}{asked_by}"


def _arguments(profile: Profile) -> Iterator[str]:
    lines = [
        f"    {name}.{path}: {value}"
        for name, args in profile.args.items()
        for path, value in _flat(plain(args))
    ]
    if lines:
        yield "  arguments"
        yield from lines


def _effects(
    configuration: SchedulerConfiguration,
    profiles: Mapping[str, Profile],
    comparable: Container[str],
) -> Iterator[tuple[str, str]]:
    """Yield all values of a configuration, by path; only the name of a profile that isn't comparable."""
    yield from _flat(settings_of(configuration))
    for label, profile in profiles.items():
        path = f"profiles[{label}]"
        if label not in comparable:
            yield path, "(the whole profile)"
            continue
        yield f"{path}.schedulerName", profile.scheduler_name
        yield f"{path}.percentageOfNodesToScore", json.dumps(profile.percentage_of_nodes_to_score)
        yield f"{path}.runAllFilters", json.dumps(profile.run_all_filters)
        for point, plugins in profile.points.items():
            names = (f"{each.name} × {each.weight}" if each.weight else each.name for each in plugins)
            yield f"{path}.{point}", ", ".join(names) or "(none)"
        for name, args in profile.args.items():
            for inner, value in _flat(plain(args)):
                yield f"{path}.{name}.{inner}", value


def _flat(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the values of nested objects by path; lists aren't split."""
    if isinstance(value, Mapping):
        for key, content in value.items():
            yield from _flat(content, f"{path}.{key}" if path else key)
    else:
        yield path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
