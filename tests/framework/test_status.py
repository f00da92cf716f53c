"""A status: the code, the reasons, who gave it, and the exception behind it."""

from __future__ import annotations

import math

import pytest

from kschedfw import Code, Status
from kschedfw.framework.nodes.snapshot import NodeNotFoundError
from kschedfw.framework.status import PluginFailure


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (Code.SUCCESS, "Success"),
        (Code.ERROR, "Error"),
        (Code.UNSCHEDULABLE, "Unschedulable"),
        (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "UnschedulableAndUnresolvable"),
        (Code.WAIT, "Wait"),
        (Code.SKIP, "Skip"),
        (Code.PENDING, "Pending"),
    ],
)
def test_codes_have_kube_schedulers_names(code: Code, text: str) -> None:
    assert str(code) == text


def test_codes_have_kube_schedulers_numbers() -> None:
    assert [code.value for code in Code] == list(range(7))


def test_success_is_the_default_and_always_the_same_object() -> None:
    assert Status().is_success
    assert Status.success() == Status()
    assert Status.success() is Status.success()
    assert Status.skip() is Status.skip()


@pytest.mark.parametrize(
    ("status", "rejected"),
    [
        (Status.success(), False),
        (Status.from_error("no"), False),
        (Status.unschedulable("no"), True),
        (Status.unresolvable("no"), True),
        (Status.pending("no"), True),
        (Status.wait(1), False),
        (Status.skip(), False),
    ],
)
def test_unschedulable_unresolvable_and_pending_are_rejections(status: Status, rejected: bool) -> None:
    assert status.is_rejected is rejected
    assert status.is_success is (status.code is Code.SUCCESS)
    assert status.is_skip is (status.code is Code.SKIP)
    assert status.is_wait is (status.code is Code.WAIT)


def test_the_message_joins_all_reasons() -> None:
    assert Status.unschedulable("Insufficient cpu", "Insufficient memory").message == (
        "Insufficient cpu, Insufficient memory"
    )
    assert Status.success().message == ""


def test_wait_carries_a_timeout_and_nothing_else_does() -> None:
    assert Status.wait(2.5, "quorum") == Status(Code.WAIT, ("quorum",), timeout=2.5)
    assert Status.unschedulable("no").timeout is None


class TestErrors:
    def test_an_exceptions_text_is_the_reason_and_the_exception_is_kept(self) -> None:
        error = ValueError("no such disk")
        status = Status.from_error(error)
        assert status.code is Code.ERROR
        assert status.reasons == ("ValueError: no such disk",)
        assert status.as_error() is error

    @pytest.mark.parametrize("error", [PluginFailure("no such disk"), NodeNotFoundError("no such disk")])
    def test_kschedfws_own_exceptions_are_made_to_be_read_alone(self, error: Exception) -> None:
        assert Status.from_error(error).message == "no such disk"

    def test_an_exception_without_text_shows_its_type(self) -> None:
        assert Status.from_error(TimeoutError()).message == "TimeoutError"

    def test_a_text_will_do(self) -> None:
        status = Status.from_error("no such disk")
        assert status.message == "no such disk"
        assert isinstance(status.error, PluginFailure)
        assert str(status.error) == "no such disk"

    def test_a_status_without_exception_becomes_one_with_its_message(self) -> None:
        error = Status.unschedulable("a", "b").as_error()
        assert isinstance(error, PluginFailure)
        assert str(error) == "a, b"

    def test_a_status_without_any_reason_at_least_says_its_code(self) -> None:
        assert str(Status.skip().as_error()) == "Skip"
        assert (
            Status.unresolvable().prefixed("asking Rack", "Rack").message
            == "asking Rack: UnschedulableAndUnresolvable"
        )

    def test_a_prefix_names_the_plugin_and_keeps_the_cause(self) -> None:
        cause = ValueError("no such disk")
        status = Status.from_error(cause).prefixed('running Reserve plugin "Disk"', "Disk")
        assert status.code is Code.ERROR
        assert status.plugin == "Disk"
        assert status.message == 'running Reserve plugin "Disk": ValueError: no such disk'
        assert status.error is not None
        assert status.error.__cause__ is cause
        assert str(status.error) == status.message

    def test_two_statuses_with_different_exceptions_may_be_equal(self) -> None:
        assert Status.from_error(ValueError("x")) == Status.from_error(ValueError("x"))


def test_with_plugin_changes_nothing_but_the_plugin() -> None:
    status = Status.wait(3, "reason")
    named = status.with_plugin("Rack")
    assert named.plugin == "Rack"
    assert named.with_plugin("") == status
    assert status.plugin == ""


@pytest.mark.parametrize("timeout", [0, -1.0, math.nan, "10"])
def test_a_wait_that_would_end_at_once_is_refused(timeout: float) -> None:
    with pytest.raises(
        ValueError, match=r"timeout: expected seconds above 0, found .*; Status.unschedulable"
    ):
        Status.wait(timeout)


def test_arguments_of_a_status_are_checked_when_it_is_made() -> None:
    with pytest.raises(TypeError, match=r"code: expected a Code, found 'too hot'"):
        Status("too hot")  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"reasons: expected several texts, found one: 'too hot'; write \('too hot',\)"
    ):
        Status(Code.UNSCHEDULABLE, "too hot")
    with pytest.raises(TypeError, match=r"reasons: expected texts, found 3"):
        Status.unschedulable(3)  # type: ignore[arg-type]
