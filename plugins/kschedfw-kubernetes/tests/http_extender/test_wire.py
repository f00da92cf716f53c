"""Bodies against the literal JSON that kube-scheduler writes and reads (extender/v1, Go's names of fields)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kschedfw_kubernetes.http_extender.go_json import Json, WireError
from kschedfw_kubernetes.http_extender.wire import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    FilterResult,
    FullVictims,
    HostPriorityList,
    Identity,
    MetaVictims,
    node_identity,
)

POD = Json(b'{"metadata":{"name":"p"}}')
NODE = Json(b'{"metadata":{"name":"n"}}')

# Each pair: the value, and what Go's json.Marshal makes of the type.
BODIES: list[tuple[Any, str]] = [
    (
        ExtenderArgs(POD, nodes=[NODE]),
        '{"Pod":{"metadata":{"name":"p"}},"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n"}}]},"NodeNames":null}',
    ),
    (
        ExtenderArgs(POD, node_names=("n", "m")),
        '{"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":["n","m"]}',
    ),
    (
        FilterResult(node_names=("n",), failed={"m": "too hot"}, failed_and_unresolvable={"o": "gone"}),
        (
            '{"Nodes":null,"NodeNames":["n"],"FailedNodes":{"m":"too hot"},'
            '"FailedAndUnresolvableNodes":{"o":"gone"},"Error":""}'
        ),
    ),
    (
        FilterResult(nodes=[NODE]),
        (
            '{"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n"}}]},"NodeNames":null,"FailedNodes":{},'
            '"FailedAndUnresolvableNodes":{},"Error":""}'
        ),
    ),
    (
        FilterResult(error="broken"),
        '{"Nodes":null,"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":"broken"}',
    ),
    (HostPriorityList((("n", 10), ("m", 0))), '[{"Host":"n","Score":10},{"Host":"m","Score":0}]'),
    (
        ExtenderPreemptionArgs(POD, victims={"n": FullVictims((POD,), 1)}),
        (
            '{"Pod":{"metadata":{"name":"p"}},'
            '"NodeNameToVictims":{"n":{"Pods":[{"metadata":{"name":"p"}}],"NumPDBViolations":1}},'
            '"NodeNameToMetaVictims":null}'
        ),
    ),
    (
        ExtenderPreemptionArgs(POD, meta_victims={"n": MetaVictims(("u1", "u2"))}),
        (
            '{"Pod":{"metadata":{"name":"p"}},"NodeNameToVictims":null,'
            '"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"u1"},{"UID":"u2"}],"NumPDBViolations":0}}}'
        ),
    ),
    (
        ExtenderPreemptionResult({"n": MetaVictims(("u1",), 2)}),
        '{"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":"u1"}],"NumPDBViolations":2}}}',
    ),
]


@pytest.mark.parametrize(("value", "text"), BODIES)
def test_writes_what_go_writes(value: Any, text: str) -> None:
    assert value.write() == text.encode()


@pytest.mark.parametrize(("value", "text"), BODIES)
def test_reads_what_it_writes(value: Any, text: str) -> None:
    assert type(value).read(text.encode()) == value


@pytest.mark.parametrize(("value", "text"), BODIES)
def test_reads_names_in_any_case(value: Any, text: str) -> None:
    """As extenders write them that still have the JSON tags of older releases, such as `nodenames`."""

    def lowered(content: Any) -> Any:
        if isinstance(content, list):
            return [lowered(item) for item in content]
        if isinstance(content, dict):
            return {key.lower(): lowered(item) for key, item in content.items()}
        return content

    spelt = json.dumps(lowered(json.loads(text)), separators=(",", ":"))
    assert type(value).read(spelt.encode()) == value


def test_binding() -> None:
    args = ExtenderBindingArgs("p", "default", "u1", "n")
    assert args.write() == b'{"PodName":"p","PodNamespace":"default","PodUID":"u1","Node":"n"}'
    assert ExtenderBindingResult.read(b'{"Error":""}') == ExtenderBindingResult()
    assert ExtenderBindingResult.read(b'{"error":"no"}') == ExtenderBindingResult("no")


@pytest.mark.parametrize(
    "kind", [FilterResult, HostPriorityList, ExtenderPreemptionResult, ExtenderBindingResult]
)
def test_null_is_an_empty_answer(kind: Any) -> None:
    assert kind.read(b"null") == (
        kind(()) if kind is HostPriorityList else kind({}) if kind is ExtenderPreemptionResult else kind()
    )


@pytest.mark.parametrize("kind", [ExtenderArgs, ExtenderPreemptionArgs])
def test_a_question_needs_a_pod(kind: Any) -> None:
    with pytest.raises(WireError, match=r"^Pod: is missing$"):
        kind.read(b'{"Pod":null}')


@pytest.mark.parametrize(
    ("kind", "text", "path"),
    [
        (ExtenderArgs, '{"Pod":{},"Nodes":[]}', "Nodes: must be an object"),
        (ExtenderArgs, '{"Pod":{},"Nodes":{"items":{}}}', "Nodes.items: must be a list"),
        (ExtenderArgs, '{"Pod":{},"NodeNames":"n"}', "NodeNames: must be a list"),
        (FilterResult, "[]", "ExtenderFilterResult: must be an object"),
        (FilterResult, '{"FailedNodes":["n"]}', "FailedNodes: must be an object"),
        (FilterResult, '{"Error":{}}', "Error: must be a string"),
        (HostPriorityList, "{}", "HostPriorityList: must be a list"),
        (HostPriorityList, '[{"Host":"n","Score":"9"}]', "HostPriorityList[0].Score: must be an integer"),
        (
            ExtenderPreemptionResult,
            '{"NodeNameToMetaVictims":{"n":{"Pods":[{"UID":1}]}}}',
            "NodeNameToMetaVictims[n].Pods[0].UID: must be a string",
        ),
    ],
)
def test_errors_name_the_field(kind: Any, text: str, path: str) -> None:
    with pytest.raises(WireError) as caught:
        kind.read(text.encode())
    assert str(caught.value).startswith(path)


@pytest.mark.parametrize(
    ("node", "identity"),
    [
        ('{"metadata":{"name":"n","uid":"u"},"status":{"images":[]}}', Identity("n", "u")),
        ('{"Metadata":{"NAME":"n"}}', Identity("n", "")),
        ('{"metadata":{"name":"\\ud800"}}', Identity("\ud800", "")),
        ('{"metadata":null}', Identity("", "")),
        ("{}", Identity("", "")),
        ("null", Identity("", "")),
    ],
)
def test_which_node_it_is(node: str, identity: Identity) -> None:
    assert node_identity(Json(node.encode()), "it") == identity


def test_a_name_is_a_string() -> None:
    with pytest.raises(WireError, match=r"^it\.metadata\.name: must be a string, not '1'"):
        node_identity(Json(b'{"metadata":{"name":1}}'), "it")


def test_whole_objects_stay_as_they_were_sent() -> None:
    """To the byte: space, order and numbers that nothing here could write again."""
    node = b'{ "b":1.50, "a":1e2, "metadata":{"name":"\\u006e"} }'
    args = ExtenderArgs.read(b'{"Pod":{},"Nodes":{"items":[' + node + b"]}}")
    assert args.nodes is not None
    assert [bytes(each) for each in args.nodes] == [node]
    assert node in FilterResult(nodes=args.nodes).write()
