"""Several extenders: in which order they are asked, and which one binds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from http_extender.servers import refused_url, scripted
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_kubernetes.http_extender import ExtenderError, HTTPExtender

from kschedfw import make_pod
from kschedfw.config import ExtenderConfigError
from kschedfw.config.extenders import ExtenderConfig, ExtenderManagedResource, ExtenderTLSConfig
from kschedfw.scheduler.extenders import bind_with_extenders, close_extenders, make_extenders, order_extenders

POD = make_pod("web").build()


@contextmanager
def made(*configs: ExtenderConfig) -> Iterator[tuple[HTTPExtender, ...]]:
    extenders = make_extenders(configs)
    with ExitStack() as stack:
        stack.callback(close_extenders, extenders)
        yield tuple(extender for extender in extenders if isinstance(extender, HTTPExtender))


class TestOrder:
    def test_ignorable_ones_come_last(self) -> None:
        configs = [
            ExtenderConfig(f"http://extender-{index}.example", ignorable=ignorable)
            for index, ignorable in enumerate([True, False, True, False])
        ]
        with made(*configs) as extenders:
            assert [extender.config for extender in extenders] == [configs[i] for i in (1, 3, 0, 2)]

    @given(st.lists(st.booleans(), max_size=8))
    def test_otherwise_the_order_stays(self, ignorable: list[bool]) -> None:
        class Fake:
            def __init__(self, index: int) -> None:
                self.index = index
                self.is_ignorable = ignorable[index]

        ordered = order_extenders(map(Fake, range(len(ignorable))))  # type: ignore[type-var]
        assert sorted(extender.index for extender in ordered) == list(range(len(ignorable)))
        assert list(ordered) == sorted(ordered, key=lambda extender: (extender.is_ignorable, extender.index))

    def test_none_are_none(self) -> None:
        assert make_extenders([]) == ()

    def test_what_cannot_go_together_is_refused(self) -> None:
        binder = ExtenderConfig("http://extender.example", bind_verb="bind")
        with pytest.raises(ExtenderConfigError, match="only one extender can implement bind"):
            make_extenders([binder, binder])

    def test_one_that_cannot_be_made_spoils_all(self, tmp_path: Path) -> None:
        broken = ExtenderTLSConfig(ca_file=str(tmp_path / "missing"))
        with pytest.raises(ExtenderConfigError, match="caFile"):
            make_extenders(
                [ExtenderConfig("http://a.example"), ExtenderConfig("https://b.example", tls_config=broken)]
            )


class TestBinding:
    gpu = (ExtenderManagedResource("example.com/gpu"),)

    def test_the_binder_binds(self) -> None:
        with (
            scripted({"/bind": "{}"}) as server,
            made(ExtenderConfig(refused_url()), ExtenderConfig(server.url, bind_verb="bind")) as extenders,
        ):
            assert bind_with_extenders(extenders, POD, "n")
            assert len(server.asked) == 1

    def test_without_a_binder_nobody_does(self) -> None:
        with made(ExtenderConfig(refused_url(), filter_verb="filter")) as extenders:
            assert not bind_with_extenders(extenders, POD, "n")
        assert not bind_with_extenders((), POD, "n")

    def test_a_binder_that_is_not_interested_does_not(self) -> None:
        config = ExtenderConfig(refused_url(), bind_verb="bind", managed_resources=self.gpu)
        with made(config) as extenders:
            assert not bind_with_extenders(extenders, POD, "n")
            with pytest.raises(ExtenderError):
                bind_with_extenders(extenders, make_pod().limits({"example.com/gpu": 1}).build(), "n")

    def test_a_failure_is_one(self) -> None:
        with (
            made(ExtenderConfig(refused_url(), bind_verb="bind")) as extenders,
            pytest.raises(ExtenderError, match="refused"),
        ):
            bind_with_extenders(extenders, POD, "n")

    def test_that_of_an_ignorable_one_leaves_it_to_the_plugins(self) -> None:
        with made(ExtenderConfig(refused_url(), bind_verb="bind", ignorable=True)) as extenders:
            assert not bind_with_extenders(extenders, POD, "n")
