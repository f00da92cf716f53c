"""Files of node groups, and the kinds of nodes that a cluster has."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from kschedfw_advisor.node_groups import MOST_NODES, NodeGroup, NodeGroupError, node_shapes, read_node_groups
from small_clusters import node

from kschedfw import make_node

ALLOCATABLE = "status: {allocatable: {cpu: 4, pods: 10}}"
GROUP = f"name: a, template: {{{ALLOCATABLE}}}"


def priced(price: str) -> str:
    """The manifest of a node with this price."""
    metadata = f"{{name: big, annotations: {{kschedfw/price: {price}}}}}"
    return f"{{apiVersion: v1, kind: Node, metadata: {metadata}, {ALLOCATABLE}}}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "groups.yaml"


def read(file: Path, text: str) -> tuple[NodeGroup, ...]:
    file.write_text(text, encoding="utf-8")
    return read_node_groups([file])


def test_a_node_is_a_group_of_its_name_with_the_price_in_its_annotation(file: Path) -> None:
    (group,) = read(file, priced("'0.25'"))
    assert (group.name, group.price, group.min, group.max) == ("big", Decimal("0.25"), 0, MOST_NODES)
    assert group.template.status.allocatable["cpu"].value() == 4


def test_a_mapping_may_say_more_and_its_price_takes_precedence(file: Path) -> None:
    text = f"""
name: gpu
min: 1
max: 3
price: 3.20
selector: {{pool: gpu}}
template:
  metadata: {{labels: {{pool: gpu}}, annotations: {{kschedfw/price: "9"}}}}
  {ALLOCATABLE}
---
name: second
template: {{{ALLOCATABLE}}}
"""
    group, second = read(file, text)
    assert (group.name, group.min, group.max, group.price) == ("gpu", 1, 3, Decimal("3.2"))
    assert group.template.name == "gpu"
    assert group.size([make_node("a").labels(pool="gpu").build(), make_node("b").build()]) == 1
    assert (second.price, second.size([make_node("a").build()])) == (None, 0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty; expected a Node, or name and template"),
        ("- a", 'document 1: Invalid value: ["a"]: expected a Node, or name and template'),
        ("name: a", "document 1: template: Required value: the Node that new nodes are like"),
        (f"template: {{{ALLOCATABLE}}}", "document 1: name: Required value"),
        ("{" + GROUP + ", prize: 3}", 'unknown field "prize"; known are: max, min, name'),
        ("{" + GROUP + ", price: cheap}", 'price: Invalid value: "cheap": must be a number'),
        ("{" + GROUP + ", price: -1}", 'price: Invalid value: "-1.0": must be a decimal number'),
        ("{" + GROUP + ", min: 3, max: 2}", "max: Invalid value: 2: must be 3 or more, as min is"),
        ("{" + GROUP + ", max: 0}", "max: Invalid value: 0: must be between 1 and"),
        ("{" + GROUP + ", max: many}", 'max: Invalid value: "many": must be an integer'),
        ("{name: a, template: {status: {allocatable: {cpu: 4}}}}", "template.status.allocatable.pods: Required value"),
        ("{name: a, template: {status: {allocatble: {}}}}", 'unknown field "template.status.allocatble"; did you mean'),
        ("{name: a, template: {status: {allocatable: {cpu: x, pods: 1}}}}", "template.status.allocatable.cpu: Invalid"),
        ("{name: a, template: {kind: Pod, apiVersion: v1}}", 'template.kind: Invalid value: "Pod": expected a Node'),
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}}", 'kind: Invalid value: "Pod": expected a Node'),
        ("name: [", "document 1: is not valid YAML"),
        ("name: {{ .Values.name }}", "contains template syntax ({{ … }}) that has not been rendered"),
        ("{" + GROUP + "}\n---\n{" + GROUP + "}", 'name: Duplicate value: "a"'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_with_file_document_and_field(file: Path, text: str, problem: str) -> None:
    with pytest.raises(NodeGroupError) as caught:
        read(file, text)
    (told,) = caught.value.problems
    assert told.startswith(f"{file}: ")
    assert problem in told


def test_all_problems_are_told_at_once(file: Path, tmp_path: Path) -> None:
    file.write_text("name: a\n---\nname: b\n", encoding="utf-8")
    with pytest.raises(NodeGroupError) as caught:
        read_node_groups([file, tmp_path / "none.yaml"])
    assert len(caught.value.problems) == 3
    assert str(caught.value).endswith("none.yaml: can't be read: No such file or directory")


def test_a_price_in_an_annotation_that_is_none_is_refused(file: Path) -> None:
    with pytest.raises(
        NodeGroupError, match=r'metadata.annotations\[kschedfw/price\]: Invalid value: "free"'
    ):
        read(file, priced("free"))


class TestShapes:
    """Nodes that a new node may be like."""

    def test_nodes_that_differ_in_name_and_state_alone_are_of_a_kind(self) -> None:
        worse = node("b").unschedulable().taint("node.kubernetes.io/not-ready").build()
        (shape,) = node_shapes([node("a").image("x", size=1).build(), worse])
        assert shape.name == "a"
        assert not shape.template.spec.unschedulable
        assert not shape.template.spec.taints
        assert not shape.template.status.images

    def test_the_most_frequent_kind_comes_first(self) -> None:
        few, many = node("few").taint("gpu").build(), [node(name, cpu=8).build() for name in ("m1", "m2")]
        assert [shape.name for shape in node_shapes([few, *many])] == ["m1", "few"]
