"""Through the whole scheduler, with a clock that is moved by hand."""

from __future__ import annotations

from random import Random

from kschedfw_loadaware import (
    Load,
    LoadReport,
    LoadVariationRiskBalancing,
    MetricsSource,
    NodeLoad,
    StaticSource,
    TargetLoadPacking,
)

from kschedfw import (
    EnabledPlugin,
    InMemoryCluster,
    Pod,
    Profile,
    Registry,
    Scheduler,
    default_profile,
    make_node,
    make_pod,
)
from kschedfw.testing import FakeClock


class Stage:
    """Nodes `a`, `b` and `c` with ten CPUs each, and a scheduler for which one plugin outweighs all others."""

    def __init__(
        self, base: type[TargetLoadPacking | LoadVariationRiskBalancing], source: MetricsSource
    ) -> None:
        plugin = type("Measured", (base,), {"name": "Measured", "source": source})
        self.cluster = InMemoryCluster(
            make_node(name).capacity(cpu=10, memory="40Gi").build() for name in ("a", "b", "c")
        )
        self.clock = FakeClock(1000)
        registry = Registry()
        registry.register(plugin)
        default = default_profile()
        profile = Profile([*default.multi_point, EnabledPlugin("Measured", weight=100)], args=default.args)
        self.scheduler = Scheduler(
            self.cluster, [profile], registry=registry, clock=self.clock, random=Random(0)
        )
        self._made = 0

    def place(self, *, cpu: str = "1") -> str:
        """Where the next pod goes, with that CPU as its limit."""
        self._made += 1
        name = f"pod-{self._made}"
        self.cluster.add(make_pod(name).requests(cpu=cpu).limits(cpu=cpu).build())
        self.scheduler.run_until_idle()
        pod = self.cluster.get(Pod, f"default/{name}")
        assert pod is not None
        return pod.node_name


class Measured(MetricsSource):
    """What is measured from now on can be said."""

    def __init__(self, **means: float) -> None:
        self.means = means

    def read(self, now: float) -> LoadReport:
        return LoadReport(
            now - 900, now, {name: NodeLoad(Load(mean), Load(0)) for name, mean in self.means.items()}
        )


def test_pods_fill_the_fuller_node_up_to_the_target_before_others() -> None:
    source = StaticSource({"a": NodeLoad(Load(0)), "b": NodeLoad(Load(20)), "c": NodeLoad(Load(70))})
    stage = Stage(TargetLoadPacking, source)
    # Each takes 10 %: b is at its 40 % after two; then a, which isn't measured anew, up to 40 % as well.
    assert [stage.place() for _ in range(6)] == ["b", "b", "a", "a", "a", "a"]
    stage.scheduler.close()


def test_pods_that_were_measured_by_now_count_once() -> None:
    source = Measured(a=10, b=0, c=90)
    stage = Stage(TargetLoadPacking, source)
    assert [stage.place(cpu="2"), stage.place(cpu="1")] == ["a", "a"]
    # Two minutes later the pods are idle: a has 10 % as before, not 40 %.
    stage.clock.advance(120)
    assert stage.place(cpu="3") == "a"
    # And now it has, so there is no room below the target any more.
    assert stage.place(cpu="1") == "b"
    stage.scheduler.close()


def test_the_steadier_node_is_preferred_until_it_is_measured_otherwise() -> None:
    source = StaticSource(
        {
            "a": NodeLoad(Load(30, 30), Load(10)),
            "b": NodeLoad(Load(40, 2), Load(10)),
            "c": NodeLoad(Load(60), Load(10)),
        }
    )
    stage = Stage(LoadVariationRiskBalancing, source)
    assert stage.place() == "b"
    source.report = LoadReport(100, 1000, {**source.report.nodes, "a": NodeLoad(Load(30, 1), Load(10))})
    assert stage.place() == "b"  # nobody has looked yet
    stage.clock.advance(30)
    assert stage.place() == "a"
    stage.scheduler.close()
