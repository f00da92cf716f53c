"""What holds on both sides of an extender call, whatever the other side says: an answer, or one short error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any, Final

from extender_server.asgi import send
from kschedfw_kubernetes.extender_server import ExtenderApp
from kschedfw_kubernetes.http_extender import ExtenderError, HTTPExtender

from kschedfw import InMemoryCluster, Profile, make_node, make_pod
from kschedfw.config.extenders import ExtenderConfig
from kschedfw.framework.extender import ExtenderFilterResult, Victims
from kschedfw.framework.nodes.node_info import NodeInfo
from tests.hostile.mutations import json_of, mutated
from tests.hostile.trial import check_shown

_NODES: Final = [make_node(name).uid(name).capacity(cpu=4, memory="8Gi").build() for name in ("a", "b")]
_INFOS: Final = [NodeInfo.of(each) for each in _NODES]
_VICTIM: Final = make_pod("victim").uid("victim").requests(cpu="3").node("a").build()
_POD: Final = make_pod("web").uid("web").requests(cpu="2").build()
_SERVED: Final = ("NodeResourcesFit", "NodeAffinity", "TaintToleration", "InterPodAffinity", "ImageLocality")

_ITEMS: Final = [
    {
        "metadata": {"name": name, "uid": name, "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "unschedulable": False},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    for name in ("a", "b")
]
_SENT: Final = {
    "metadata": {"name": "web", "namespace": "default", "uid": "web", "labels": {"app": "web"}},
    "spec": {
        "containers": [{"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "2"}}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "priority": 5,
    },
}

_ANSWERS: Final[Mapping[str, Any]] = {
    "filter": {
        "Nodes": {"items": [{"metadata": {"name": "a", "uid": "a"}}]},
        "NodeNames": ["a"],
        "FailedNodes": {"b": "too small"},
        "FailedAndUnresolvableNodes": {"c": "no GPU"},
        "Error": "",
    },
    "prioritize": [{"Host": "a", "Score": 3}, {"Host": "b", "Score": 10}],
    "preempt": {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "victim"}], "NumPDBViolations": 1}}},
    "bind": {"Error": ""},
}
_REQUESTS: Final[Mapping[str, Sequence[Any]]] = {
    "/filter": ({"Pod": _SENT, "Nodes": {"items": _ITEMS}}, {"Pod": _SENT, "NodeNames": ["a", "b"]}),
    "/prioritize": ({"Pod": _SENT, "Nodes": {"items": _ITEMS}}, {"Pod": _SENT, "NodeNames": ["a", "b"]}),
    "/preempt": (
        {"Pod": _SENT, "NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "victim"}], "NumPDBViolations": 0}}},
        {"Pod": _SENT, "NodeNameToVictims": {"a": {"Pods": [_SENT], "NumPDBViolations": 0}}},
    ),
}


def try_answer(random: Random) -> None:
    """An extender answers with something that was changed: that is taken, or an error that can be shown."""
    verb = random.choice(sorted(_ANSWERS))
    answer = _changed(_ANSWERS[verb], random)
    config = ExtenderConfig(
        "http://extender.example",
        filter_verb="filter",
        prioritize_verb="prioritize",
        preempt_verb="preempt",
        bind_verb="bind",
        weight=1,
        node_cache_capable=random.random() < 0.5,
    )
    with HTTPExtender(config) as extender:
        extender._transport.post = lambda verb, body: answer  # type: ignore[method-assign]  # the network's part
        ask: dict[str, Callable[[], object]] = {
            "filter": lambda: extender.filter(_POD, _INFOS),
            "prioritize": lambda: extender.prioritize(_POD, _INFOS),
            "preempt": lambda: extender.process_preemption(_POD, {"a": Victims((_VICTIM,), 0)}),
            "bind": lambda: extender.bind(_POD, "a"),
        }
        try:
            result = ask[verb]()
        except ExtenderError as error:
            check_shown(str(error))
        else:
            if isinstance(result, ExtenderFilterResult):
                for reason in (*result.failed.values(), *result.failed_and_unresolvable.values()):
                    check_shown(reason)


def try_request(random: Random) -> None:
    """A request that was changed is answered, or refused by one line that can be shown; no plugin fails."""
    path = random.choice(sorted(_REQUESTS))
    body = _changed(random.choice(_REQUESTS[path]), random)
    reply = send(_app(), "POST", path, body, headers=[(b"host", b"localhost")])
    if reply is None:  # it took so long that the client is looked for, and this one never waits
        return
    assert reply.status in (200, 400, 413), (reply.status, reply.text[:2000])
    if reply.status == 200:
        answer = reply.json
        assert path != "/filter" or not answer["Error"], answer["Error"][:2000]
    else:
        check_shown(reply.text)
        assert reply.text.count("\n") == 1


@cache
def _app() -> ExtenderApp:
    return ExtenderApp(Profile(_SERVED), cluster=InMemoryCluster([*_NODES, _VICTIM]))


def _changed(content: object, random: Random) -> bytes:
    body = json_of(mutated(content, random)).encode()
    if random.random() < 0.1:
        at = random.randrange(len(body))
        body = (
            body[:at] + random.choice((b"", b"\xff", b"\x00", b"[" * 100_000, b"9" * 10_000)) + body[at + 1 :]
        )
    return body[:2_000_000]
