"""The input that the commands of "what if" share: a cluster as a `WhatIf`, pods and options."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TypeAlias, TypeVar

import attrs
import click

from kschedfw import Node, Pod, SchedulerConfiguration, SchedulingError, WhatIf
from kschedfw.api import without_collections
from kschedfw.api.reading import STANDARD_INPUT, UnreadableError, only_document, read_at_most
from kschedfw.cli import (
    NO_NODES,
    NO_OBJECTS,
    ConfigurationChoice,
    ExitCode,
    Input,
    InputOptions,
    UsageError,
    complain,
    configuration_options,
    counted,
    failure_summary,
    input_options,
    json_option,
    labelled_progress_bar,
    no_progress_option,
    reading_bar,
    seed_option,
    tell,
    tell_failures,
    tell_notes,
    version_notes,
)
from kschedfw.cluster import missing_objects
from kschedfw.simulator import Failures
from kschedfw_advisor.cli.what_if_output import Background
from kschedfw_advisor.reports import Reports
from kschedfw_advisor.settling import settle

ignore_pending_option = click.option(
    "--ignore-pending",
    is_flag=True,
    help="Leave the cluster's pending pods out, instead of scheduling them first.",
)
delete_emptydir_data_option = click.option(
    "--delete-emptydir-data",
    is_flag=True,
    help="Evict pods with emptyDir volumes, too, whose data is lost by it.",
)
T = TypeVar("T")

LabelledProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@attrs.frozen
class Asked:
    """The cluster that a command asks about, with notes on it."""

    what_if: WhatIf
    background: Background
    scheduler_names: tuple[str, ...]
    """The scheduler names of the configuration's profiles."""
    namespace: str | None = None
    """The namespace that the answer is about; None for all."""


@attrs.frozen
class Question:
    """The options that questions about a cluster share, beside the argument CLUSTER."""

    given: InputOptions
    chosen: ConfigurationChoice
    seed: int
    as_json: bool
    show_progress: bool

    def progress_bar(self) -> AbstractContextManager[LabelledProgress | None]:
        """Return the progress bar of the answer's steps."""
        return labelled_progress_bar(enabled=self.show_progress)

    @contextmanager
    def about(self, cluster: Sequence[Path], *, namespaces: bool = False) -> Iterator[Asked]:
        """Yield the cluster of the arguments as a WhatIf. At the end of the block, report failures of plugins.

        `namespaces` says that the command has a use for a namespace of files. Print the answer within the block, and
        set the exit code after it.

        Raises:
            click.exceptions.Exit: a plugin failed.
        """
        configuration = self.chosen.load()
        given, shown = self.given, self.show_progress
        with _lasting(), reading_bar(enabled=shown and not given.live.is_wanted) as progress:
            loaded = given.read(cluster, progress=progress, show_progress=shown, namespaces=namespaces)
        with _asked(loaded, configuration, self.seed) as asked:
            yield asked


def question_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of questions about a cluster, as its parameter `question`."""

    @input_options
    @configuration_options
    @seed_option
    @json_option
    @no_progress_option
    @wraps(command)
    def gathering(
        *,
        given: InputOptions,
        chosen: ConfigurationChoice,
        seed: int,
        as_json: bool,
        no_progress: bool,
        **others: object,
    ) -> None:
        command(question=Question(given, chosen, seed, as_json, not no_progress), **others)

    return gathering


@contextmanager
def _asked(loaded: Input, configuration: SchedulerConfiguration, seed: int) -> Iterator[Asked]:
    tell(loaded.problems)
    if not loaded.cluster.list(Node) and not loaded.cluster.list(Pod):
        tell_notes(loaded)
        raise UsageError(f"nothing to ask about: {NO_OBJECTS}")
    notes = [*loaded.notes, *version_notes(loaded, configuration.gates)]
    background = Background(notes, missing_objects(loaded.cluster), reports_of(loaded))
    if not loaded.cluster.list(Node):
        # On standard error, which doesn't wrap the command in this text.
        tell([NO_NODES])
        background.notes.append("the input has no nodes")
    names = tuple(profile.scheduler_name for profile in configuration.profiles)
    failures = Failures()
    try:
        with failures:
            with _lasting():
                what_if = WhatIf(loaded.cluster, configuration, seed=seed)
            with what_if:
                yield Asked(what_if, background, names, loaded.namespace)
    except SchedulingError as error:
        tell_failures(failures)
        raise click.exceptions.Exit(complain(str(error), ExitCode.FAILED)) from None
    finally:
        gc.unfreeze()
    tell_failures(failures)
    if failures.count:
        raise click.exceptions.Exit(complain(failure_summary(failures), ExitCode.FAILED))


def reports_of(loaded: Input) -> Reports:
    """Return what controllers, kubelets and admission say in the input of pods that are missing or don't start."""
    return Reports(loaded.refused, loaded.without_pods, loaded.workloads, loaded.warning_events)


@contextmanager
def _lasting() -> Iterator[None]:
    """Exempt the objects made in the block from garbage collection, since they live as long as the command.

    Scanning the cluster and its copy takes a tenth of the time of `pending`.
    """
    with without_collections():
        yield
        gc.freeze()


def read_document(path: Path, most: int, noun: str, parse: Callable[[object], T]) -> T:
    """Read a file of YAML or JSON with one document, of at most so many bytes; `-` is the standard input.

    `parse` may raise an UnreadableError; the noun says what the document is.

    Raises:
        UsageError: the file can't be read, or what is in it is something else.
    """
    name = STANDARD_INPUT if str(path) == "-" else str(path)
    try:
        content, _ = only_document(read_at_most(path, most), most, noun=noun)
        return parse(content)
    except OSError as error:
        raise UsageError(f"{name}: can't be read: {error.strerror or error}") from None
    except UnreadableError as error:
        raise UsageError(f"{name}: {error}") from None


def schedule_pending(asked: Asked, *, ignore: bool, progress: LabelledProgress | None) -> None:
    """Give the cluster's pending pods their places for good, unless they are to be ignored; a note says so."""
    pending = asked.what_if.pending
    if ignore or not pending:
        if pending:
            asked.background.notes.append(f"{counted(len(pending), 'pending pod')} left out")
        return
    with asked.what_if.transaction() as trial:
        scheduling = None if progress is None else partial(progress, "scheduling")
        settled = settle(asked.what_if, trial, pending, preempt=True, progress=scheduling)
        trial.commit()
    placed, refused, evicted = map(len, (settled.placed, settled.refused, settled.evicted))
    note = f"pending pods were scheduled first (--ignore-pending leaves them out): {placed:,} found a place"
    if refused:
        note += f", {refused:,} found none (kschedfw pending says why)"
    if evicted:
        note += f", {evicted:,} were preempted"
    asked.background.notes.append(note)
