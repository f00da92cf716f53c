"""Measures policies, plugins and configurations on the OpenB trace, by the protocol of Weng et al., USENIX ATC '23.

    python -m kschedfw_gpushare.openb --data DIR --seeds 42-51 --policy all
    python -m kschedfw_gpushare.openb --data DIR --seeds 42-51 --policy FGD --plugin MyPlugin --config profile.yaml

The trace's pods are shuffled, and copies of randomly drawn ones appended until they ask for 1.3 times the GPUs of the
cluster. They are scheduled one by one in that order; none leaves, and one that fits nowhere is dropped. What is
measured is how much of all GPUs is allocated as more and more arrives, and how much of what is idle is fragmented.

The nodes are shuffled, too, since their order decides between equally good ones (`fillInOrder`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

import attrs

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    KschedfwError,
    Node,
    Pod,
    Profile,
    Registry,
    Scheduler,
    SchedulerConfiguration,
    load_configuration,
    read_openb_nodes,
    read_openb_pods,
    scheduler_from_configuration,
)
from kschedfw.simulator import Failures
from kschedfw_gpushare.args import GpuShareArgs, Policy
from kschedfw_gpushare.demand import MILLI, demand_of
from kschedfw_gpushare.fragmentation import TypicalPod, typical_pods
from kschedfw_gpushare.plugin import GpuShare

ObjectT = TypeVar("ObjectT")

NODES = "openb_node_list_gpu_node.csv"
PODS = "openb_pod_list_default.csv"
GPU = "nvidia.com/gpu"
TUNE = 1.3
ARRIVED = (80, 90, 95, 100, 110, 120, 130)
"""Where the figures are taken: when the pods that have arrived ask for so many percent of the cluster's GPUs."""

PUBLISHED_NAMES: Mapping[str, str] = {
    Policy.RANDOM: "01-Random",
    Policy.DOT_PRODUCT: "02-DotProd",
    Policy.GPU_CLUSTERING: "03-GpuClustering",
    Policy.GPU_PACKING: "04-GpuPacking",
    Policy.BEST_FIT: "05-BestFit",
    Policy.FGD: "06-FGD",
}

PLUGIN_POLICY = Policy.BEST_FIT
"""How GpuShare picks devices, and rates if it is to, where another plugin takes the policy's place."""

INTERRUPTED = 130

Progress = Callable[[int, int], None]
MakeScheduler = Callable[[InMemoryCluster, Random], Scheduler]
"""What is measured: a scheduler that takes the trace's pods, which are those of `default-scheduler`."""


class TraceError(KschedfwError):
    """The trace, or what was published about it, isn't what it should be; names the file and what was expected."""


class FailedRunError(KschedfwError):
    """Plugins failed while the trace was scheduled, so that its figures would mean nothing; `failures` has them all."""

    def __init__(self, failures: Failures) -> None:
        super().__init__(f"plugins failed {failures.count:,} times, so there is no figure")
        self.failures = failures


@attrs.frozen
class Trace:
    """The nodes, the pods by name, and what stands for the pods' requests."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    typical: tuple[TypicalPod, ...]

    @classmethod
    def read(cls, nodes: Path, pods: Path) -> Trace:
        """Raises OpenbError or TraceError: a file can't be read, isn't that table, or the nodes have no GPUs."""
        by_name = sorted(_table_of("pods", pods, read_openb_pods), key=lambda pod: pod.name)
        all_nodes = tuple(_table_of("nodes", nodes, read_openb_nodes))
        trace = cls(all_nodes, tuple(by_name), typical_pods(by_name, GPU))
        if not trace.capacity:
            raise TraceError(
                f"{nodes}: expected OpenB's table of nodes, some of them with GPUs; none has any"
            )
        return trace

    @property
    def capacity(self) -> int:
        """All GPUs, in thousandths."""
        return (
            sum(node.status.allocatable[GPU].value() for node in self.nodes if GPU in node.status.allocatable)
            * MILLI
        )


def _table_of(what: str, path: Path, read: Callable[[Path], list[ObjectT]]) -> list[ObjectT]:
    try:
        return read(path)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}; expected OpenB's table of {what}") from error


@attrs.frozen
class Run:
    """What one seed came to: by percent arrived, the percentage of GPUs allocated, and of idle ones fragmented.

    The latter is empty where GpuShare doesn't keep the books of the devices.
    """

    seed: int
    pods: int
    placed: int
    seconds: float
    allocated: Mapping[int, float]
    fragmented: Mapping[int, float]


def tuned(trace: Trace, random: Random, tune: float = TUNE) -> list[Pod]:
    """The pods in the order in which they arrive: shuffled, with copies at the end or without some of them."""
    pods = list(trace.pods)
    random.shuffle(pods)
    asked, wanted = sum(map(_asked, pods)), tune * trace.capacity
    if asked > wanted:
        while asked > wanted:
            asked -= _asked(pods.pop(random.randrange(len(pods))))
        return pods
    for number in itertools.count() if asked else ():
        copy = random.choice(trace.pods)
        if asked + _asked(copy) > wanted:
            break
        asked += _asked(copy)
        name = f"{copy.name}-{number}"
        pods.append(copy.with_metadata(attrs.evolve(copy.metadata, name=name, uid="")))
    return pods


def with_policy(trace: Trace, policy: Policy) -> MakeScheduler:
    """The policy alone rates; of the default filters, the others have nothing to say about the trace's pods."""
    return _with_scores(EnabledPlugin("GpuShare", weight=1000), trace, policy)


def with_plugin(trace: Trace, name: str) -> MakeScheduler:
    """An installed plugin, with its default arguments, rates alone; GpuShare keeps the books and picks the devices."""
    return _with_scores(EnabledPlugin(name), trace, PLUGIN_POLICY)


def with_configuration(trace: Trace, configuration: SchedulerConfiguration) -> MakeScheduler:
    """All is as the configuration says. A GpuShare in it that isn't told the typical pods gets those of the trace."""
    configuration = attrs.evolve(
        configuration,
        profiles=tuple(
            attrs.evolve(each, args={name: _knowing(args, trace) for name, args in each.args.items()})
            for each in configuration.profiles
        ),
    )
    return lambda cluster, random: scheduler_from_configuration(
        configuration, cluster, registry=_registry(), random=random
    )


def _with_scores(rating: EnabledPlugin, trace: Trace, policy: Policy) -> MakeScheduler:
    plugins = dict.fromkeys(("PrioritySort", "NodeResourcesFit", "GpuShare", rating.name, "DefaultBinder"))
    profile = Profile(
        list(plugins),
        points={"score": [rating]},  # type: ignore[dict-item]
        args={
            "NodeResourcesFit": {"ignoredResources": [GPU]},
            "GpuShare": GpuShareArgs(policy=policy, typical_pods=trace.typical),
        },
        percentage_of_nodes_to_score=100,
    )
    return lambda cluster, random: Scheduler(cluster, [profile], registry=_registry(), random=random)


def _knowing(args: object, trace: Trace) -> object:
    if isinstance(args, GpuShareArgs) and not args.typical_pods:
        return attrs.evolve(args, typical_pods=trace.typical)
    return args


def _registry() -> Registry:
    registry = Registry()
    if "GpuShare" not in registry.names():
        registry.register(GpuShare)
    return registry


def replay(trace: Trace, make_scheduler: MakeScheduler, seed: int, progress: Progress | None = None) -> Run:
    """Schedule the trace once.

    Raises:
        KschedfwError: the scheduler can't be made.
        FailedRunError: plugins failed.
    """
    random = Random(seed)
    pods, capacity = tuned(trace, random), trace.capacity
    cluster = InMemoryCluster(random.sample(trace.nodes, len(trace.nodes)))
    scheduler = make_scheduler(cluster, random)
    books = scheduler.frameworks["default-scheduler"].plugins.get("GpuShare")
    arrived = used = placed = 0
    allocated: dict[int, list[float]] = {percent: [] for percent in ARRIVED}
    fragmented: dict[int, list[float]] = {percent: [] for percent in ARRIVED}
    start = time.perf_counter()
    with Failures() as failures:
        for number, pod in enumerate(pods):
            asked = _asked(pod)
            arrived += asked
            stored = cluster.add(pod)
            scheduler.schedule_one()
            present = cluster.get(Pod, stored.key)
            if present is not None and present.node_name:
                used += asked
                placed += 1
            else:
                cluster.delete(stored)
            percent = round(100 * arrived / capacity)
            if percent in allocated:
                scheduler.cache.update_snapshot(scheduler.snapshot)
                allocated[percent].append(100 * used / capacity)
                if isinstance(books, GpuShare):
                    fragmented[percent].append(100 * books.fragmented_share(scheduler.snapshot.table))
            if progress is not None:
                progress(number + 1, len(pods))
        seconds = time.perf_counter() - start
        scheduler.close()
    if failures.count:
        raise FailedRunError(failures)
    return Run(seed, len(pods), placed, round(seconds, 1), _means(allocated), _means(fragmented))


def _asked(pod: Pod) -> int:
    return demand_of(pod, GPU).total


def _means(samples: Mapping[int, Sequence[float]]) -> Mapping[int, float]:
    return {percent: round(statistics.fmean(values), 2) for percent, values in samples.items() if values}


# The command


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kschedfw_gpushare.openb",
        description=__doc__.split("\n")[0],
        epilog="Exit codes: 0 done; 1 a plugin failed, or the input is wrong; 2 bad usage; 130 interrupted.",
    )
    parser.add_argument("--data", type=Path, required=True, help="the directory with the trace's CSV files")
    parser.add_argument("--nodes", default=NODES, help="the nodes' file in it (%(default)s)")
    parser.add_argument("--pods", default=PODS, help="the pods' file in it (%(default)s)")
    parser.add_argument("--seeds", type=_seeds, default="42-51", help="such as 42-51 or 42,45 (%(default)s)")
    parser.add_argument(
        "--policy",
        action="append",
        choices=["all", *(each.value for each in Policy)],
        help="of GpuShare; again for another one (all, if neither plugins nor configurations are named)",
    )
    parser.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="an installed plugin whose score takes the policy's place; again for another one",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a KubeSchedulerConfiguration, for everything else; again for another one",
    )
    parser.add_argument("--json", action="store_true", help="all figures as JSON")
    options = parser.parse_args(arguments)
    try:
        trace = Trace.read(options.data / options.nodes, options.data / options.pods)
        published = _published(options.data / "anchors.json", Path(options.pods).stem)
        outcome = _measure(trace, _measured(trace, options), options.seeds)
    except (KschedfwError, OSError) as error:
        _tell(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        _tell("\rinterrupted; nothing was measured\n")
        return INTERRUPTED
    if options.json:
        every = {name: [attrs.asdict(run) for run in of_one] for name, of_one in outcome.runs.items()}
        sys.stdout.write(json.dumps(every) + "\n")
    elif outcome.runs:
        sys.stdout.writelines(f"{line}\n" for line in table(outcome.runs, published))
    if outcome.interrupted:
        done = ", ".join(f"{name}: {len(runs)}" for name, runs in outcome.runs.items()) or "none"
        _tell(f"\rinterrupted; seeds done, of {len(options.seeds)}: {done}\n")
        return INTERRUPTED
    if outcome.failed:
        _tell(f"error: plugins failed, so there are no figures for {', '.join(outcome.failed)}\n")
    return 1 if outcome.failed else 0


@attrs.frozen
class _Outcome:
    """The runs by the name of what was measured, without those names whose plugins failed."""

    runs: Mapping[str, Sequence[Run]]
    failed: Sequence[str]
    interrupted: bool


def _measure(trace: Trace, measured: Mapping[str, MakeScheduler], seeds: Sequence[int]) -> _Outcome:
    """All seeds of everything, until Ctrl-C; what fails isn't measured with further seeds."""
    runs: dict[str, list[Run]] = {name: [] for name in measured}
    failed: list[str] = []
    interrupted = False
    try:
        for seed in seeds:
            for name in [name for name in measured if name not in failed]:
                try:
                    run = replay(trace, measured[name], seed, _shown(name, seed))
                except FailedRunError as error:
                    failed.append(name)
                    _tell(f"\r{name} seed {seed}: {error}\n")
                    _tell("".join(f"{line}\n" for line in error.failures.lines()))
                else:
                    runs[name].append(run)
                    _tell(f"\r{name} seed {seed}: {_line(run)}\n")
    except KeyboardInterrupt:
        interrupted = True
    done = {name: of_one for name, of_one in runs.items() if of_one and name not in failed}
    return _Outcome(done, failed, interrupted)


def _measured(trace: Trace, options: argparse.Namespace) -> Mapping[str, MakeScheduler]:
    """What is to be measured by the name that it gets in the table; each can be made.

    Raises KschedfwError or OSError: one of them can't.
    """
    chosen = options.policy or ([] if options.plugin or options.config else ["all"])
    policies = tuple(map(Policy, PUBLISHED_NAMES)) if "all" in chosen else tuple(map(Policy, chosen))
    measured = {policy.value: with_policy(trace, policy) for policy in policies}
    for name in options.plugin:
        label = f"{name} ({PLUGIN_POLICY.value})" if name == GpuShare.name else name
        measured[label] = with_plugin(trace, name)
    names = [file.name for file in options.config]
    for file in options.config:
        is_ambiguous = names.count(file.name) > 1 or file.name in measured
        configured = with_configuration(trace, load_configuration(file))
        measured[str(file) if is_ambiguous else file.name] = configured
    for name, make_scheduler in measured.items():
        scheduler = make_scheduler(InMemoryCluster(), Random(0))
        if "default-scheduler" not in scheduler.frameworks:
            raise KschedfwError(f"{name}: has no profile default-scheduler, which the trace's pods want")
        scheduler.close()
    return measured


Published = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
"""By name of the policy, measure and percent arrived: mean, min and max."""


def table(runs: Mapping[str, Sequence[Run]], published: Published) -> Iterator[str]:
    """GPU allocation in percent as Markdown: means over the seeds, the range at the end, what was published."""
    yield "| policy | |" + "".join(f" {percent} % |" for percent in ARRIVED) + f" range at {ARRIVED[-1]} % |"
    yield "| --- | --- |" + " ---: |" * len(ARRIVED) + " --- |"
    for name, of_one in runs.items():
        ours = [[run.allocated[percent] for run in of_one if percent in run.allocated] for percent in ARRIVED]
        yield _row(name, "measured", map(_mean, ours), ours[-1])
        theirs = published.get(PUBLISHED_NAMES.get(name, ""), {}).get("alloc")
        if theirs is not None:
            last = theirs[str(ARRIVED[-1])]
            means = [f"{theirs[str(percent)]['mean']:.2f}" for percent in ARRIVED]
            yield _row("", "published", means, [last["min"], last["max"]])


def _row(name: str, what: str, means: Iterable[str], last: Sequence[float]) -> str:
    spread = f"{min(last):.2f}–{max(last):.2f}" if last else ""
    return f"| {name} | {what} |" + "".join(f" {mean} |" for mean in means) + f" {spread} |"


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.2f}" if values else ""


def _published(path: Path, workload: str) -> Published:
    if not path.exists():
        return {}
    try:
        workloads: Mapping[str, Published] = json.loads(path.read_text(encoding="utf-8"))["workloads"]
        return workloads.get(workload, {})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceError(
            f"{path}: expected the published figures, as JSON with `workloads`: {error}"
        ) from error


def _line(run: Run) -> str:
    last = run.allocated.get(ARRIVED[-1], 0.0)
    return f"{run.placed} of {run.pods} pods placed, {last:.2f} % of GPUs allocated, {run.seconds} s"


def _shown(name: str, seed: int) -> Progress | None:
    if not sys.stderr.isatty():
        return None

    def show(done: int, to_do: int) -> None:
        if done % 100 == 0:
            _tell(f"\r{name} seed {seed}: {done} of {to_do} pods")

    return show


def _tell(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _seeds(text: str) -> tuple[int, ...]:
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            these = range(int(first), int(last or first) + 1)
            if not these:
                raise ValueError
            seeds.extend(these)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected seeds such as 42-51 or 42,45, found {text!r}") from None
    return tuple(seeds)


if __name__ == "__main__":
    sys.exit(main())
