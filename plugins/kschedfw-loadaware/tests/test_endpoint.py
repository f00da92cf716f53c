"""Which addresses are asked, and what is shown of them and of tokens."""

from __future__ import annotations

import pytest
from kschedfw_loadaware import Endpoint, LoadWatcherSource, MetricProvider, MetricsError, TargetLoadPacking
from tests.hostile_server import TOKEN

from kschedfw import KschedfwError
from kschedfw.testing import FrameworkHarness


class TestAddresses:
    @pytest.mark.parametrize(
        "address",
        [
            "file:///etc/passwd",
            "ftp://host/",
            "load-watcher:2020",
            "/etc/passwd",
            "http://",
            "http:///path",
            "http://host:99999",
            "http://[::1",
            "http://host?query",
            "",
        ],
    )
    def test_that_arent_http_are_refused_at_once(self, address: str) -> None:
        with pytest.raises(MetricsError):
            Endpoint(address)

    def test_a_password_in_one_is_refused_and_not_shown(self) -> None:
        address = f"http://user:{TOKEN}@host:99999/"
        with pytest.raises(MetricsError) as raised:
            Endpoint(address)
        assert TOKEN not in str(raised.value)
        args = {"TargetLoadPacking": {"watcherAddress": f"http://user:{TOKEN}@host/"}}
        with pytest.raises(
            KschedfwError, match=r"watcherAddress: .*: must be without user and password"
        ) as refused:
            FrameworkHarness(TargetLoadPacking, args=args)
        assert TOKEN not in str(refused.value)

    def test_an_overlong_host_is_an_error_of_the_same_kind(self) -> None:
        with pytest.raises(MetricsError):
            Endpoint("http://" + "a" * 300).get("/")


def test_the_token_is_masked_wherever_it_could_be_printed() -> None:
    for holder in (
        Endpoint("http://a", TOKEN),
        MetricProvider(token=TOKEN),
        LoadWatcherSource(Endpoint("http://a", TOKEN)),
    ):
        assert TOKEN not in repr(holder)
        assert "'***'" in repr(holder)
    assert "'***'" not in repr(Endpoint("http://a"))
    with pytest.raises(MetricsError) as raised:
        Endpoint("http://a", f"{TOKEN}\r\nX: y")
    assert TOKEN not in str(raised.value)
