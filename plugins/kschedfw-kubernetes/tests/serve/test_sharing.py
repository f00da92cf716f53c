"""Several active schedulers: which pods each takes, and that together they don't overcommit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kschedfw_apiserver import ApiServer
from kschedfw_kubernetes.claims.sharing import Share, ShareError
from serve.replicas import Replica, configuration

from kschedfw import Pod, make_node, make_pod
from kschedfw.testing.properties import examples


class TestShare:
    @settings(max_examples=examples(20))
    @given(st.text(min_size=1), st.integers(1, 9))
    def test_each_pod_is_in_one_share(self, uid: str, parts: int) -> None:
        pod = make_pod().uid(uid).build(check=False)
        assert sum(Share(part, parts).has(pod) for part in range(parts)) == 1

    @pytest.mark.parametrize("text", ["", "1", "2/2", "-1/2", "a/b", "1/0", "1/2/3"])
    def test_what_is_none(self, text: str) -> None:
        with pytest.raises(ShareError, match="is no share such as 0/3"):
            Share.parse(text)

    def test_what_is_one(self) -> None:
        assert Share.parse("1/3") == Share(1, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shares",
    [
        pytest.param(("0/2", "1/2"), id="by hash", marks=pytest.mark.nightly),
        pytest.param(("0/1", "0/1"), id="whoever comes first"),
    ],
)
def test_two_schedulers_nearly_fill_a_cluster(tmp_path: Path, shares: tuple[str, str]) -> None:
    with ApiServer() as server:
        for number in range(4):
            server.cluster.add(make_node(f"n{number}").capacity(cpu=4).build())
        for number in range(15):
            server.cluster.add(make_pod(f"p{number}").requests(cpu=1).build())
        with (
            _sharer(server, tmp_path / "one", "one", shares[0]) as one,
            _sharer(server, tmp_path / "two", "two", shares[1]) as two,
        ):
            two.wait_until_ready()  # before, a signal would kill it
            one.wait_until_ready().wait_for(lambda: all(pod.node_name for pod in server.cluster.list(Pod)))
            claims = [_metric(each, "kschedfw_claims_total") for each in (one, two)]
            assert (one.ends(), two.ends()) == (0, 0)
        assert sum(claims) >= 15
        load = Counter(pod.node_name for pod in server.cluster.list(Pod))
        assert max(load.values()) <= 4
        assert all("Claims" in each.log for each in (one, two))


def _metric(replica: Replica, name: str) -> float:
    text = replica.get("/metrics", replica.token).text
    return float(next(line for line in text.splitlines() if line.startswith(name)).rpartition(" ")[2])


def _sharer(server: ApiServer, folder: Path, name: str, share: str) -> Replica:
    """A scheduler with short backoffs: conflicts are many here, and nobody wants to wait for long."""
    folder.mkdir()
    config = configuration(server, folder, name, podMaxBackoffSeconds=1)
    return Replica(
        server, folder, name, f"--config={config}", "--shared-state", f"--shared-state-share={share}"
    )
