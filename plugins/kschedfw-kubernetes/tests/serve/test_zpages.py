"""`/statusz` and `/flagz`: what they tell, and in which form."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_kubernetes.serve.zpages import Status, flagz, statusz
from kschedfw_kubernetes.web.asgi import Asked

STATUS = Status(
    1000.0, 1000.0 + 3 * 3600 + 125.9, ("/metrics", "/metrics/slis", "/livez"), {"Leader": "this one"}
)
FLAGS = {"v": "2", "config": "", "bind-address": "0.0.0.0"}
STATUSZ = "g=config.k8s.io;v=v1beta1;as=Statusz"


def asking(accept: str = "") -> Asked:
    return Asked(accept, {})


@pytest.mark.parametrize("accept", ["", "text/plain", "*/*", "text/*", "text/html, */*;q=0.1"])
def test_status_is_a_text_for_people_unless_something_else_is_asked_for(accept: str) -> None:
    response = statusz(asking(accept), STATUS)
    assert (response.status, response.content_type) == (200, "text/plain; charset=utf-8")
    header, _, lines = response.body.decode().partition("only.\n")
    assert header == (
        "\nkschedfw statusz\nWarning: This endpoint is not meant to be machine parseable, has no formatting "
        "compatibility guarantees and is for debugging purposes "
    )
    facts = dict(line.split(": ", 1) for line in lines.strip().splitlines())
    assert facts["Up"] == "3 hr 02 min 05 sec"
    assert facts["Emulation version"] == "1.36"
    assert facts["Paths"] == "/livez /metrics"
    assert facts["Leader"] == "this one"


def test_flags_are_sorted_lines() -> None:
    *_, first, second, third = flagz(asking(), FLAGS).body.decode().splitlines()
    assert [first, second, third] == ["bind-address=0.0.0.0", "config=", "v=2"]


def test_programs_get_objects_of_the_version_that_they_ask_for() -> None:
    response = statusz(asking(f"application/json;{STATUSZ}"), STATUS)
    assert response.content_type == "application/json"
    status = json.loads(response.body)
    assert (status["kind"], status["apiVersion"]) == ("Statusz", "config.k8s.io/v1beta1")
    assert status["metadata"] == {"name": "kschedfw"}
    assert (status["startTime"], status["uptimeSeconds"]) == ("1970-01-01T00:16:40Z", 10925)
    response = flagz(asking("application/yaml;g=config.k8s.io;v=v1beta1;as=Flagz"), FLAGS)
    assert response.content_type == "application/yaml"
    assert yaml.safe_load(response.body)["flags"] == FLAGS
    assert response.headers == ()


def test_the_old_version_comes_with_a_warning() -> None:
    response = flagz(asking("application/json;as=Flagz;v=v1alpha1;g=config.k8s.io"), FLAGS)
    assert json.loads(response.body)["apiVersion"] == "config.k8s.io/v1alpha1"
    assert dict(response.headers)[b"warning"].startswith(
        b'299 - "This version of the flagz endpoint is deprecated.'
    )


def test_what_is_preferred_most_is_given() -> None:
    accept = f"text/plain;q=0.5, application/yaml;q=0.9;{STATUSZ}, application/cbor;{STATUSZ}"
    assert statusz(asking(accept), STATUS).content_type == "application/yaml"


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/json;g=config.k8s.io;v=v1;as=Statusz",
        "application/json;g=config.k8s.io;v=v1beta1;as=Flagz",
        f"text/plain;{STATUSZ}",
        "application/vnd.kubernetes.protobuf",
    ],
)
def test_nothing_else_is_acceptable(accept: str) -> None:
    response = statusz(asking(accept), STATUS)
    assert response.status == 406
    refusal = json.loads(response.body)
    assert refusal["reason"] == "NotAcceptable"
    assert refusal["message"] == (
        "only the following media types are accepted: application/json, application/yaml, text/plain"
    )


@given(st.text())
def test_no_accept_header_breaks_it(accept: str) -> None:
    assert statusz(asking(accept), STATUS).status in (200, 406)
