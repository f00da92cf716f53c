"""Fixtures for tests of plugins and policies; pytest loads this wherever kschedfw is installed.

Whoever doesn't use them shouldn't notice: nothing is imported before a test asks for it, which is why this module is
beside the package and not in it.

* `kschedfw_clock`: a `FakeClock`.
* `kschedfw_registry`: the in-tree plugins, and the plugin classes that the marker names, which come first.
* `kschedfw_cluster`: an `InMemoryCluster`.
* `kschedfw_api_server`: an `ApiServer` that serves that cluster over HTTP.
* `kschedfw_framework`: a `Framework` for that cluster; its snapshot has the cluster's nodes and pods.
* `kschedfw_scheduler`: a `Scheduler` on that cluster. It works when it is told to (`run_until_idle`), and moves nothing
  but what the test moves.
* `kschedfw_command`: runs a command in this process.

`kschedfw_profiles = true` in pytest's configuration gives Hypothesis settings under which no verdict depends on speed
(`kschedfw.testing.properties`).

Files that end in `.kschedfw.yaml` are suites of declarative tests (`kschedfw test`), and collected, too.

The marker says what is in them:

    @pytest.mark.kschedfw(plugins=[Rack], args={"Rack": {"size": 3}}, objects=[make_node("a").build()])
    def test_rack(kschedfw_scheduler): ...

    @pytest.mark.kschedfw(configuration="scheduler.yaml", objects=[make_node("a").build()])
    def test_what_runs_in_production(kschedfw_scheduler): ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from kschedfw.api.meta import Named
    from kschedfw.cluster import InMemoryCluster
    from kschedfw.config import SchedulerConfiguration
    from kschedfw.framework.plugin import AnyPlugin
    from kschedfw.framework.profile import Profile
    from kschedfw.framework.runtime.framework import Framework
    from kschedfw.framework.runtime.registry import Registry
    from kschedfw.scheduler import Scheduler
    from kschedfw.testing.case_runner import Runner
    from kschedfw.testing.cases import Case
    from kschedfw.testing.clock import FakeClock
    from kschedfw.testing.commands import Command

_MARKER = (
    "kschedfw(plugins=(), profile=None, args=None, configuration=None, scheduler_name=None, objects=(), seed=0, "
    "entry_points=False): what kschedfw's fixtures hold: plugins (classes, or names of installed ones) beside those of "
    "the default profile, or a whole profile instead; args of plugins, by name; or a configuration (its file, beside "
    "the test's, or read already) with all its profiles and extenders, and which of its profiles kschedfw_framework "
    "has; objects of the cluster, or their manifests; the seed of all chance; whether plugins of other distributions "
    "are there, too"
)
_PROFILES = (
    "register the profiles default and nightly of Hypothesis: few examples that are the same each time, for nightly "
    "many new ones, and no limit of time"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("kschedfw_profiles", _PROFILES, type="bool", default=False)


# Hypothesis' own plugin loads the profile that --hypothesis-profile names when its turn comes.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if config.getini("kschedfw_profiles"):
        from kschedfw.testing.properties import register_profiles

        register_profiles()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Where a PluginContract's plugin isn't accepted, one test says so at length, and the others in a line."""
    bases = () if pyfuncitem.cls is None else pyfuncitem.cls.__mro__
    if pyfuncitem.name == _ACCEPTANCE or "PluginContract" not in [base.__name__ for base in bases]:
        return
    refusal = getattr(pyfuncitem.instance, "_refusal", None)
    if refusal is not None:
        pytest.fail(f"{refusal} (see {_ACCEPTANCE})", pytrace=False)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Suites of declarative tests."""
    if not file_path.name.endswith(_SUITES):
        return None
    return _SuiteFile.from_parent(parent, path=file_path)


# `kschedfw.testing.cases.SUFFIXES`, which takes a while to import.
_SUITES = (".kschedfw.yaml", ".kschedfw.yml")


class _SuiteFile(pytest.File):
    """A suite, whose cases are run one by one and share what they read."""

    def collect(self) -> Iterator[pytest.Item]:
        from kschedfw.testing.case_runner import Runner
        from kschedfw.testing.cases import CaseError, read_cases

        try:
            cases = read_cases(self.path)
        except CaseError as error:
            raise self.CollectError(str(error)) from None
        runner = Runner()
        for case in cases:
            yield _CaseItem.from_parent(self, name=case.name, case=case, runner=runner)


class _CaseItem(pytest.Item):
    """A case; it fails with the list of what is otherwise than expected."""

    def __init__(self, *, case: Case, runner: Runner, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._case = case
        self._runner = runner

    def runtest(self) -> None:
        from kschedfw.testing.case_runner import shown_problems
        from kschedfw.testing.cases import CaseError

        try:
            problems = self._runner.problems(self._case)
        except CaseError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        if problems:
            where = f"{self._case.file}:{self._case.line}: {self._case.name}"
            pytest.fail(f"{where}\n{shown_problems(problems)}", pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._case.line - 1, self.name


_ACCEPTANCE = "test_hooks_and_arguments_are_accepted"


class _Options:
    """The arguments of a test's marker."""

    def __init__(
        self,
        *,
        plugins: Iterable[type[AnyPlugin] | str] = (),
        profile: Profile | None = None,
        args: Mapping[str, object] | None = None,
        configuration: SchedulerConfiguration | Path | str | None = None,
        scheduler_name: str | None = None,
        objects: Iterable[Named | Mapping[str, object]] = (),
        seed: int = 0,
        entry_points: bool = False,
    ) -> None:
        self.plugins = _listed("plugins", plugins)
        self.profile = profile
        self.args = args or {}
        self.configuration = configuration
        self.scheduler_name = scheduler_name
        self.objects = _listed("objects", objects)
        self.seed = seed
        self.entry_points = entry_points

    @property
    def problem(self) -> str:
        """Why what it says can't be meant; empty if it can."""
        if self.configuration is None:
            if self.scheduler_name is not None:
                return "scheduler_name is for a configuration's profiles"
            if self.profile is not None and self.args:
                return "a profile says its args itself: Profile([…], args={…})"
            return ""
        if self.profile is not None or self.args or any(isinstance(each, str) for each in self.plugins):
            return "with a configuration there is no profile, no args and no name in plugins: it says all that itself"
        return ""

    @property
    def names(self) -> list[str]:
        return [plugin if isinstance(plugin, str) else plugin.name for plugin in self.plugins]

    @property
    def random(self) -> Random:
        from random import Random

        return Random(self.seed)


def _listed(argument: str, given: object) -> tuple[Any, ...]:
    """Return what is given as a tuple. A single thing is refused: a text or a manifest would be taken apart."""
    if isinstance(given, Iterable) and not isinstance(given, str | Mapping):
        return tuple(given)
    found = getattr(given, "__name__", type(given).__name__)
    _refuse(f"{argument}: expected a list, found {found}; write {argument}=[…]")


def _refuse(why: str) -> NoReturn:
    """End the test with one line, without what was raised before."""
    raise pytest.fail.Exception(f"pytest.mark.kschedfw: {why}", pytrace=False) from None


def _remedy(problem: str, options: _Options) -> str:
    blocked = "is blocked in this registry" in problem and not options.entry_points
    return "; for plugins of installed distributions give the marker entry_points=True" if blocked else ""


@pytest.fixture
def _kschedfw_options(request: pytest.FixtureRequest) -> _Options:
    marker = request.node.get_closest_marker("kschedfw")
    if marker is None:
        return _Options()
    if marker.args:
        _refuse("it takes keywords only: plugins=[…], objects=[…]")
    try:
        options = _Options(**marker.kwargs)
    except TypeError as error:
        _refuse(f"{str(error).partition(') ')[2]}; it is {_MARKER}")
    if options.problem:
        _refuse(options.problem)
    return options


@pytest.fixture
def _kschedfw_configuration(
    request: pytest.FixtureRequest, _kschedfw_options: _Options, kschedfw_registry: Registry
) -> SchedulerConfiguration | None:
    """The marker's configuration; threads would only make tests slower."""
    given = _kschedfw_options.configuration
    if given is None:
        return None
    from pathlib import Path

    import attrs

    from kschedfw.api.errors import KschedfwError
    from kschedfw.testing.configured import read_configuration

    path = request.path.parent / given if isinstance(given, str | Path) else given
    try:
        return attrs.evolve(read_configuration(path, kschedfw_registry), parallelism=1)
    except TypeError as error:
        _refuse(str(error))
    except KschedfwError as error:
        _refuse(f"configuration {given}: {error}{_remedy(str(error), _kschedfw_options)}")
    except OSError as error:
        _refuse(f"configuration {given}: {error} (a relative path starts from the test's own file)")


@pytest.fixture
def kschedfw_clock() -> FakeClock:
    """A clock that stands still until the test moves it: `kschedfw_clock.advance(seconds)`."""
    from kschedfw.testing.clock import FakeClock

    return FakeClock()


@pytest.fixture
def kschedfw_registry(_kschedfw_options: _Options) -> Registry:
    """The in-tree plugins, and the marker's classes; those of other distributions with `entry_points=True`."""
    from kschedfw.framework.runtime.registry import Registry
    from kschedfw.testing.configured import wrong_args

    registry = Registry()
    for plugin in _kschedfw_options.plugins:
        if not isinstance(plugin, str):
            registry.register(plugin, replace=True)
    if not _kschedfw_options.entry_points:
        for name in registry.names():
            distribution = registry.distribution(name)
            # None: a class of the test's. DynamicResources of kschedfw-devices belongs to the default profile.
            if distribution is not None and not distribution.startswith(("kschedfw ", "kschedfw-devices ")):
                registry.block(name)
    if problem := wrong_args(_kschedfw_options.args, registry, _kschedfw_options.names):
        _refuse(f"{problem}{_remedy(problem, _kschedfw_options)}")
    return registry


@pytest.fixture
def kschedfw_cluster(_kschedfw_options: _Options) -> InMemoryCluster:
    """A cluster with the marker's `objects`."""
    from kschedfw.api.errors import KschedfwError
    from kschedfw.cluster import InMemoryCluster
    from kschedfw.testing.manifest_reader import ManifestReader

    try:
        return InMemoryCluster(ManifestReader(lenient=False).objects(_kschedfw_options.objects))
    except (KschedfwError, TypeError) as error:
        _refuse(f"objects: {error}")


@pytest.fixture
def _kschedfw_profile(
    _kschedfw_options: _Options, _kschedfw_configuration: SchedulerConfiguration | None
) -> Profile:
    from kschedfw.config import default_profile
    from kschedfw.framework.errors import ProfileError
    from kschedfw.framework.profile import EnabledPlugin, Profile
    from kschedfw.testing.configured import profile_of

    options, default = _kschedfw_options, default_profile()
    if _kschedfw_configuration is not None:
        try:
            return profile_of(_kschedfw_configuration, options.scheduler_name)
        except ProfileError as error:
            _refuse(str(error))
    if options.profile is not None:
        return options.profile
    added = [EnabledPlugin(name) for name in options.names if name not in default.plugin_names]
    return Profile([*default.multi_point, *added], args=options.args)


@pytest.fixture
def kschedfw_framework(
    _kschedfw_options: _Options,
    _kschedfw_configuration: SchedulerConfiguration | None,
    _kschedfw_profile: Profile,
    kschedfw_registry: Registry,
    kschedfw_cluster: InMemoryCluster,
    kschedfw_clock: FakeClock,
) -> Iterator[Framework]:
    """The profile's framework; its snapshot holds the cluster as it is when the test begins.

    Of a configuration it is the first profile's, unless the marker names another, with the configuration's extenders.
    """
    from kschedfw.api.node import Node
    from kschedfw.api.pod import Pod
    from kschedfw.framework.nodes.snapshot import Snapshot
    from kschedfw.framework.parallelizer import Parallelizer
    from kschedfw.framework.parts import Parts
    from kschedfw.framework.runtime.framework import Framework
    from kschedfw.scheduler.extenders import close_extenders, make_extenders, order_extenders

    configured = () if _kschedfw_configuration is None else _kschedfw_configuration.extenders
    extenders = make_extenders(configured)
    framework = Framework(
        kschedfw_registry,
        _kschedfw_profile,
        Parts(
            kschedfw_cluster,
            snapshot=Snapshot.of(kschedfw_cluster.list(Node), kschedfw_cluster.list(Pod)),
            clock=kschedfw_clock,
            random=_kschedfw_options.random,
            parallelizer=Parallelizer(1),
            extenders=order_extenders(extenders),
        ),
    )
    yield framework
    framework.close()
    close_extenders(extenders)


@pytest.fixture
def kschedfw_scheduler(
    _kschedfw_options: _Options,
    _kschedfw_configuration: SchedulerConfiguration | None,
    _kschedfw_profile: Profile,
    kschedfw_registry: Registry,
    kschedfw_cluster: InMemoryCluster,
    kschedfw_clock: FakeClock,
) -> Iterator[Scheduler]:
    """A scheduler with the profile, or all of the configuration, on the cluster, the test's thread and its clock."""
    from kschedfw.scheduler import Scheduler
    from kschedfw.scheduler.setup import scheduler_from_configuration

    if _kschedfw_configuration is None:
        scheduler = Scheduler(
            kschedfw_cluster,
            [_kschedfw_profile],
            registry=kschedfw_registry,
            clock=kschedfw_clock,
            random=_kschedfw_options.random,
        )
    else:
        scheduler = scheduler_from_configuration(
            _kschedfw_configuration,
            kschedfw_cluster,
            registry=kschedfw_registry,
            clock=kschedfw_clock,
            random=_kschedfw_options.random,
        )
    yield scheduler
    scheduler.close()


@pytest.fixture
def kschedfw_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `kschedfw` in this process, 100 columns wide: `kschedfw_command("simulate", path).out`."""
    from kschedfw.cli import app
    from kschedfw.testing.commands import CommandResult

    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments: object) -> CommandResult:
        code = app.run([str(each) for each in arguments])
        captured = capsys.readouterr()
        return CommandResult(code, captured.out, captured.err)

    return run
