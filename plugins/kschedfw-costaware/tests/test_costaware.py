"""CostAware, extension point by extension point."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from kschedfw_costaware import MAX_HOURLY_PRICE, CostAware, CostAwareArgs, InstancePrice

from kschedfw import KschedfwError, Node, Pod, QueueingHint, Status, make_node, make_pod
from kschedfw.testing import FrameworkHarness

PRICES = CostAwareArgs(
    prices=(InstancePrice("small", "0.10"), InstancePrice("large", "0.80"), InstancePrice("old", "0.40"))
)


def node(name: str, instance_type: str | None, cpu: int, memory: str) -> Node:
    builder = make_node(name).capacity(cpu=cpu, memory=memory)
    if instance_type is not None:
        builder.labels({"node.kubernetes.io/instance-type": instance_type})
    return builder.build()


NODES = [
    node("small", "small", 2, "8Gi"),
    node("large", "large", 32, "128Gi"),
    node("old", "old", 4, "8Gi"),
    node("unpriced", "new-and-shiny", 64, "256Gi"),
    node("unlabelled", None, 64, "256Gi"),
]


def harness(args: object = PRICES, nodes: list[Node] = NODES) -> FrameworkHarness:
    return FrameworkHarness(CostAware, nodes=nodes, args={"CostAware": args})


def pod(limit: str | None = None, **requests: str) -> Pod:
    builder = make_pod().requests(requests)
    if limit is not None:
        builder.annotations({MAX_HOURLY_PRICE: limit})
    return builder.build()


def verdicts(statuses: Mapping[str, Status]) -> dict[str, str]:
    return {name: status.message for name, status in statuses.items()}


def test_scores_are_shares_of_the_cheapest() -> None:
    # One of 2, 32 and 4 CPUs: 0.05, 0.025 and 0.1 an hour.
    assert harness().score(pod(cpu="1")) == {
        "small": 50,
        "large": 100,
        "old": 25,
        "unpriced": 0,
        "unlabelled": 0,
    }


def test_the_larger_share_counts() -> None:
    # 4 of 8, 128 and 8 GiB: 0.05, 0.025 and 0.2 an hour; the CPU share is smaller everywhere.
    scores = harness().score(pod(cpu="100m", memory="4Gi"))
    assert (scores["small"], scores["large"], scores["old"]) == (50, 100, 12)


def test_free_nodes_come_before_all_others() -> None:
    args = CostAwareArgs(prices=(InstancePrice("small", "0"), InstancePrice("large", "0.01")))
    scores = harness(args).score(pod(cpu="1"))
    assert (scores["small"], scores["large"], scores["old"]) == (100, 0, 0)


def test_no_price_is_known_at_all() -> None:
    assert harness(nodes=NODES[3:]).score(pod(cpu="1")) == {"unpriced": 0, "unlabelled": 0}


def test_a_price_for_an_empty_label_is_not_one_for_nodes_without_the_label() -> None:
    nodes = [node("empty", "", 2, "8Gi"), node("unlabelled", None, 2, "8Gi")]
    stage = harness(CostAwareArgs(prices=(InstancePrice("", "0.10"),)), nodes)
    assert stage.score(pod(cpu="1")) == {"empty": 100, "unlabelled": 0}
    assert verdicts(stage.filter(pod("1", cpu="1"))) == {
        "empty": "",
        "unlabelled": "node(s) had no known price",
    }


def test_a_pod_without_requests_is_not_scored() -> None:
    assert set(harness().score(pod()).values()) == {0}


def test_filter_by_the_pods_limit() -> None:
    assert verdicts(harness().filter(pod("0.05", cpu="1"))) == {
        "small": "",
        "large": "",
        "old": "node(s) were more expensive than the pod allows",
        "unpriced": "node(s) had no known price",
        "unlabelled": "node(s) had no known price",
    }


def test_without_a_limit_every_node_will_do() -> None:
    assert all(status.is_success for status in harness().filter(pod(cpu="1")).values())


def test_a_limit_is_met_exactly() -> None:
    thirds = [node("three", "three", 3, "8Gi")]
    args = CostAwareArgs(prices=(InstancePrice("three", "0.3"),))
    assert harness(args, thirds).filter(pod("0.1", cpu="1"))["three"].is_success
    assert not harness(args, thirds).filter(pod("0.099999999", cpu="1"))["three"].is_success


@pytest.mark.parametrize("text", ["cheap", "-1", "NaN", "", "1e9"])
def test_a_limit_that_is_no_price_fits_nowhere(text: str) -> None:
    _, status = harness().pre_filter(pod(text, cpu="1"))
    assert status.is_rejected
    assert status.message == (
        f"annotation {MAX_HOURLY_PRICE}: must be a decimal number from 0 to 1000000, not {text!r}"
    )


def test_a_nodes_own_label() -> None:
    nodes = [
        make_node("spot").capacity(cpu=4, memory="8Gi").labels({"example.com/price-class": "spot"}).build()
    ]
    args = {"priceLabel": "example.com/price-class", "prices": [{"value": "spot", "hourlyPrice": "0.02"}]}
    assert harness(args, nodes).filter(pod("0.01", cpu="2"))["spot"].is_success


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "prices: Required value"),
        (
            {"prices": [{"value": "small", "hourlyPrice": "dear"}]},
            'prices[0].hourlyPrice: Invalid value: "dear"',
        ),
        ({"prices": [{"value": "small", "hourlyPrice": 0.1}]}, "prices[0].hourlyPrice"),
        (
            {"prices": [{"value": "small", "hourlyPrice": "1"}] * 2},
            'prices[1].value: Duplicate value: "small"',
        ),
        ({"price": []}, 'unknown field "price"'),
        ({"prices": [{"value": "a", "hourlyPrice": "1"}], "priceLabel": ""}, "priceLabel: Required value"),
    ],
)
def test_wrong_arguments(args: object, text: str) -> None:
    with pytest.raises(KschedfwError) as raised:
        harness(args)
    assert str(raised.value).startswith("CostAware: ")
    assert text in str(raised.value)


def hints(
    kind: str, pending: Pod, old: object | None, new: object | None, args: object = PRICES
) -> QueueingHint:
    events = harness(args).framework.events_to_register()["CostAware"]
    (event,) = (event for event in events if event.resource == kind)
    assert event.hint is not None
    return event.hint(pending, old, new)


def test_a_node_is_worth_a_retry_once_it_is_affordable() -> None:
    waiting = pod("0.05", cpu="1")
    small, old, unlabelled = NODES[0], NODES[2], NODES[4]
    assert hints("Node", waiting, None, small) is QueueingHint.QUEUE
    assert hints("Node", waiting, unlabelled, small) is QueueingHint.QUEUE
    assert hints("Node", waiting, small, small) is QueueingHint.SKIP
    assert hints("Node", waiting, None, old) is QueueingHint.SKIP
    assert hints("Node", waiting, small, None) is QueueingHint.SKIP
    assert hints("Node", pod("cheap", cpu="1"), None, small) is QueueingHint.SKIP


def test_a_node_without_the_label_is_not_worth_a_retry_for_the_price_of_an_empty_one() -> None:
    args = CostAwareArgs(prices=(InstancePrice("", "0.10"),))
    empty, unlabelled = node("n", "", 2, "8Gi"), node("n", None, 2, "8Gi")
    assert hints("Node", pod("1", cpu="1"), unlabelled, empty, args) is QueueingHint.QUEUE
    assert hints("Node", pod("1", cpu="1"), None, unlabelled, args) is QueueingHint.SKIP


def test_the_pods_own_change_is_worth_a_retry() -> None:
    before, after = pod("0.01", cpu="1"), pod("0.05", cpu="1")
    assert hints("Pod", before, before, after) is QueueingHint.QUEUE
    another = make_pod().uid("another").node("small").build()
    assert hints("Pod", before, another, None) is QueueingHint.SKIP
