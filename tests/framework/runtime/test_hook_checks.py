# mypy: disable-error-code="kschedfw"
# What mypy would say is said here at run time.
"""What is written about a hook's arguments and its result is held against the hookspec, before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from kschedfw import (
    ClusterEvent,
    CycleState,
    NodeInfo,
    NodeTable,
    Plugin,
    Pod,
    PreFilterResult,
    Reads,
    Status,
    Verdicts,
    hookimpl,
    make_node,
    make_pod,
)
from kschedfw.explain import Evidence
from kschedfw.framework.runtime.hook_checks import hook_problems
from kschedfw.testing import decide
from tests.framework.support import make_framework

if TYPE_CHECKING:
    from decimal import Decimal


class Right(Plugin):
    name = "Right"

    @hookimpl
    def pre_filter(self, nodes: Collection[NodeInfo], pod: object) -> PreFilterResult: ...  # type: ignore[empty-body]

    @hookimpl
    def filter(self, pod: Pod | None, node_info: Any) -> None: ...

    @hookimpl
    def filter_batch(self, nodes: NodeTable, rows: np.ndarray[Any, Any]) -> Verdicts: ...  # type: ignore[empty-body]

    @hookimpl
    def post_filter(self) -> tuple[None, Status]: ...  # type: ignore[empty-body]

    @hookimpl
    def score(self, state: CycleState) -> bool: ...  # type: ignore[empty-body]

    @hookimpl
    def score_batch(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...  # type: ignore[empty-body]

    @hookimpl
    def pre_score(self, nodes: "Iterable[NodeInfo]", pod):  # type: ignore[no-untyped-def]  # noqa: UP037
        ...

    @hookimpl
    def reserve(this, pod: Pod) -> Decimal: ...  # type: ignore[empty-body]  # noqa: N805  # can't be evaluated

    @staticmethod
    @hookimpl
    def events_to_register() -> list[ClusterEvent]:
        return []

    @classmethod
    @hookimpl
    def permit(cls, node_name: str) -> Status | None: ...


def test_what_fits_is_left_alone() -> None:
    assert list(hook_problems(Right)) == []
    assert list(make_framework(Right).plugins) == ["Right"]


class Wrong(Plugin):
    """Each method has the mistake that its docstring names."""

    name = "Wrong"

    @hookimpl
    def pre_filter(self, nodes: list[NodeInfo]) -> None:
        """its hook 'pre_filter' takes nodes as list[NodeInfo]; it is Sequence[NodeInfo]"""

    @hookimpl
    def filter(self, pod: NodeInfo, node_info: NodeInfo) -> Status | None:
        """its hook 'filter' takes pod as NodeInfo; it is Pod"""

    @hookimpl
    def score(self, node_info: NodeInfo) -> float:  # type: ignore[empty-body]
        """its hook 'score' returns float; it may return int | Status"""

    @hookimpl
    def permit(self) -> bool:  # type: ignore[empty-body]
        """its hook 'permit' returns bool; it may return Status | None"""

    @hookimpl
    def post_filter(self) -> str:  # type: ignore[empty-body]
        """its hook 'post_filter' returns str; it may return tuple[PostFilterResult | None, Status | None]"""

    @hookimpl
    def pre_score(self, nodes: Sequence[Pod]) -> None:
        """its hook 'pre_score' takes nodes as Sequence[Pod]; it is Sequence[NodeInfo]"""

    @hookimpl
    def reserve(pod: Pod, node_name: str) -> None:  # type: ignore[misc]  # noqa: N805
        """its hook 'reserve' has no self; write def reserve(self, pod, node_name)"""

    @hookimpl
    def unreserve() -> None:  # type: ignore[misc]
        """its hook 'unreserve' has no self; write def unreserve(self)"""

    @hookimpl
    def pre_enqueue(self, xyz: object) -> None:
        """its hook 'pre_enqueue' has no argument 'xyz' (it may take pod)"""

    @hookimpl
    def pre_bind(self, *, pod: Pod) -> None:
        """its hook 'pre_bind' takes pod by keyword only; hooks are called by position"""

    @hookimpl
    async def bind(self, pod: Pod) -> None:
        """its hook 'bind' is async, and nobody would await it; write def bind"""

    @hookimpl
    def post_bnd(self) -> None:
        """unknown hook 'post_bnd'; did you mean 'post_bind'?"""

    @hookimpl
    def events_to_register(self, pod: Pod) -> list[ClusterEvent]:  # type: ignore[empty-body]
        """its hook 'events_to_register' has no argument 'pod'; it takes none"""


def test_every_mistake_is_explained() -> None:
    expected = [method.__doc__ for method in vars(Wrong).values() if hasattr(method, "kschedfw_impl")]
    assert len(expected) == 13
    assert sorted(hook_problems(Wrong)) == sorted(map(str, expected))


def test_all_of_them_come_at_once_when_the_framework_is_made() -> None:
    with pytest.raises(Exception, match="plugin 'Wrong': ") as caught:
        make_framework(Wrong)
    assert all(problem in str(caught.value) for problem in hook_problems(Wrong))


def test_a_name_like_no_other_gets_the_list() -> None:
    class Odd(Plugin):
        name = "Odd"

        @hookimpl
        def xyz(self) -> None: ...

    (problem,) = hook_problems(Odd)
    assert problem.startswith("unknown hook 'xyz'; hooks are pre_enqueue, queue_sort, pre_filter, ")


class TestSignAndEvidence:
    """They are no hooks; like hooks, they take the arguments that they name."""

    def test_any_subset_of_arguments_is_passed(self) -> None:
        class Few(Plugin):
            name = "Few"
            reads = Reads.NODE
            signed: ClassVar[list[str]] = []

            def sign(self) -> str:
                self.signed.append("once")
                return "all alike"

            @hookimpl
            def filter(self, node_info: NodeInfo) -> Status | None:
                return None if node_info.name == "a" else Status.unschedulable("not a")

            def evidence(self, node_info: NodeInfo) -> list[Evidence]:
                return [Evidence("node a", node_info.name)]

        explanation = decide(make_pod("pod").build(), Few, nodes=[make_node(name).build() for name in "ab"])
        assert explanation.node == "a"
        assert explanation.of("b").evidence["Few"] == (Evidence("node a", "b"),)
        assert Few.signed != []

    @pytest.mark.parametrize(
        ("members", "told"),
        [
            (
                {"sign": lambda self, pd: pd},
                "its method 'sign' has no argument 'pd'; did you mean 'pod'? (it may take pod)",
            ),
            (
                {"evidence": lambda self, node: ()},
                (
                    "its method 'evidence' has no argument 'node'; did you mean 'node_info'? "
                    "(it may take state, pod, node_info)"
                ),
            ),
            ({"sign": lambda pod: pod}, "its method 'sign' has no self; write def <lambda>(self, pod)"),
        ],
    )
    def test_misspelt_argument_is_refused(self, members: dict[str, object], told: str) -> None:
        assert list(hook_problems(type("Odd", (Plugin,), {"name": "Odd", **members}))) == [told]

    def test_wrong_type_is_refused(self) -> None:
        class Odd(Plugin):
            name = "Odd"

            def sign(self, pod: Pod) -> list[str]:  # type: ignore[override]
                return [pod.name]

            def evidence(self, pod: NodeInfo) -> Evidence: ...  # type: ignore[empty-body]

        assert list(hook_problems(Odd)) == [
            "its method 'evidence' takes pod as NodeInfo; it is Pod",
            "its method 'evidence' returns Evidence; it may return Iterable[Evidence]",
            "its method 'sign' returns list[str]; it may return Hashable | None",
        ]
