"""How to reach the API server, as kubectl finds it out."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kschedfw.kubernetes import connect
from kschedfw.kubernetes.errors import ConnectionConfigError, KubernetesError
from kschedfw.kubernetes.kubeconfig import load_connection


def config(name: str, server: str, user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, **cluster}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}],
    }


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_the_current_context_says_server_user_and_namespace(tmp_path: Path) -> None:
    path = written(tmp_path / "config", config("a", "https://a:6443/", {"token": "secret"}))
    found = load_connection(path)
    assert (found.server, found.user.token, found.namespace) == ("https://a:6443", "secret", "ns-a")
    assert "secret" not in repr(found)


def test_another_context_may_be_chosen(tmp_path: Path) -> None:
    both = config("a", "https://a")
    other = config("b", "https://b")
    for section in ("clusters", "users", "contexts"):
        both[section] += other[section]
    assert load_connection(written(tmp_path / "config", both), "b").server == "https://b"


def test_of_several_files_the_first_that_says_something_counts(tmp_path: Path) -> None:
    first = written(tmp_path / "first", {**config("a", "https://first"), "current-context": ""})
    second = config("a", "https://second")
    second["clusters"].append({"name": "c", "cluster": {"server": "https://c"}})
    environment = {"KUBECONFIG": os.pathsep.join([str(first), str(written(tmp_path / "second", second))])}
    assert load_connection(environment=environment).server == "https://first"


def test_files_of_the_list_that_arent_there_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "config", config("a", "https://a"))
    environment = {"KUBECONFIG": os.pathsep.join([str(tmp_path / "none"), str(path)])}
    assert load_connection(environment=environment).server == "https://a"


def test_without_a_list_it_is_the_file_at_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube" / "config", config("a", "https://a"))
    assert load_connection(environment={"HOME": str(tmp_path)}).server == "https://a"


def test_paths_are_relative_to_their_file(tmp_path: Path) -> None:
    content = config(
        "a", "https://a", {"tokenFile": "t", "client-key": "k"}, **{"certificate-authority": "ca"}
    )
    found = load_connection(written(tmp_path / "config", content))
    assert found.user.token_file == str(tmp_path / "t")
    assert found.user.client_key == str(tmp_path / "k")
    assert found.cluster.certificate_authority == str(tmp_path / "ca")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("./bin/login", "bin/login"),
        ("../login", "../login"),
        ("/usr/bin/login", "/usr/bin/login"),
        ("login", None),
    ],
)
def test_relative_commands_are_relative_to_their_file_and_names_are_looked_up(
    tmp_path: Path, command: str, expected: str | None
) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": command}
    found = load_connection(written(tmp_path / "config", config("a", "https://a", {"exec": plugin})))
    assert found.user.exec is not None
    assert found.user.exec.command == (command if expected is None else str(tmp_path / expected))


def test_a_pod_uses_its_service_account(tmp_path: Path) -> None:
    written(tmp_path / "token", "t")
    written(tmp_path / "namespace", "mine\n")
    environment = {"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = load_connection(environment=environment, service_account=tmp_path)
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "mine")
    assert found.user.token_file == str(tmp_path / "token")


def test_the_master_takes_the_place_of_the_servers_address(tmp_path: Path) -> None:
    path = written(tmp_path / "config", config("a", "https://a", {"token": "t"}))
    found = load_connection(path, master="https://other:1")
    assert (found.server, found.user.token) == ("https://other:1", "t")
    assert load_connection(master="http://x:1", environment={"HOME": "/nowhere"}).server == "http://x:1"


BOMB = "\n".join(
    [
        "a0: &a0 [x, x, x, x, x, x, x, x, x, x]",
        *(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 10)),
        "users: [{name: u, user: {auth-provider: {config: *a9}}}]",
    ]
)
"""A kilobyte of aliases that stands for ten billion values."""


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("clusters: [", "is not valid YAML"),
        ("just text", "is no kubeconfig"),
        ("clusters: 5", "is no kubeconfig"),
        ("clusters: []\n" + "#" * (4 << 20), "is larger than 4194304 bytes"),
        (BOMB, "excessive aliasing"),
        ("{}", "has no current-context; say which with --context: none"),
        ({**config("a", "https://a"), "current-context": "b"}, "no context is named 'b'; there is a"),
        ({**config("a", "https://a"), "clusters": []}, "names the cluster 'a'; there is none"),
        ({**config("a", "https://a"), "users": []}, "names the user 'a'; there is none"),
        (
            config("a", "https://a\r\nX: y"),
            r"must be an address such as https://10.0.0.1:6443, not 'https://a\r\nX: y'",
        ),
        (config("a", "https://a/b c"), "must be an address"),
        (config("a", "a:6443"), "must be an address such as https://10.0.0.1:6443, not 'a:6443'"),
        (
            config("a", "https://a", {"auth-provider": {"name": "gcp"}}),
            "was removed from Kubernetes in v1.26",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_name(tmp_path: Path, content: object, why: str) -> None:
    path = written(tmp_path / "config", content)
    with pytest.raises(ConnectionConfigError) as caught:
        load_connection(path)
    assert str(path) in str(caught.value)
    assert why in str(caught.value)


def test_without_any_of_that_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConnectionConfigError, match="give a kubeconfig"):
        load_connection(environment={"HOME": str(tmp_path)})
    with pytest.raises(ConnectionConfigError, match="can't be read"):
        load_connection(tmp_path / "none")


@pytest.mark.parametrize("user", ["name:pass:word", "token"])
@pytest.mark.parametrize("scheme", ["https://", "http://"])
def test_passwords_in_the_address_are_not_told(tmp_path: Path, scheme: str, user: str) -> None:
    server = f"{scheme}{user}@localhost:1"
    path = written(tmp_path / "config", config("a", server))
    told = [
        repr(load_connection(path)),
        load_connection(master=server, environment={"HOME": "/nowhere"}).source,
    ]
    with (
        connect(path) as client,
        pytest.raises(KubernetesError, match=f"{scheme}localhost:1: can't") as caught,
    ):
        client.get_once("/version", 5.0)
    assert user not in f"{caught.value}{told}"


@pytest.mark.parametrize(
    "server", ["user:s3cret@host:1", "http://user:s3cret/@host:1", "https://user:s3cret@[::1"]
)
def test_passwords_in_an_address_that_is_none_are_not_told(tmp_path: Path, server: str) -> None:
    with pytest.raises(ConnectionConfigError, match="must be an address") as caught:
        load_connection(written(tmp_path / "config", config("a", server)))
    assert "s3cret" not in str(caught.value)
