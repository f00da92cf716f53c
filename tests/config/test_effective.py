"""An effective configuration as plain data, spelled as a configuration would spell it."""

from __future__ import annotations

import json

from kschedfw.config.effective import effective, plain
from kschedfw.config.extenders import ExtenderConfig, ExtenderTLSConfig
from kschedfw.plugins import DynamicResourcesArgs
from kschedfw.plugins.node_resources_fit import NodeResourcesFitArgs
from tests.config.documents import document, loaded, one_profile


def test_defaults_are_spelled_out_and_durations_as_text() -> None:
    assert plain(NodeResourcesFitArgs()) == {
        "scoringStrategy": {
            "type": "LeastAllocated",
            "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
        }
    }
    assert plain(DynamicResourcesArgs()) == {"filterTimeout": "10s", "bindingTimeout": "10m0s"}


def test_what_is_given_as_data_is_kept_secret() -> None:
    tls = ExtenderTLSConfig(key_data=b"key", cert_data=b"cert")
    shown = plain(ExtenderConfig("https://h", tls_config=tls))
    assert isinstance(shown, dict)
    assert shown["tlsConfig"] == {"insecure": False, "certData": "…", "keyData": "…"}


def test_a_set_is_a_sorted_list() -> None:
    assert plain({"racks": frozenset({"r3", "r1", "r2"})}) == {"racks": ["r1", "r2", "r3"]}


def test_read_again_it_means_the_same() -> None:
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    given = one_profile(
        pluginConfig=[
            {"name": "NodeAffinity", "args": {"addedAffinity": required}},
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
            {"name": "DynamicResources", "args": {"filterTimeout": "3s"}},
        ]
    )
    configuration = loaded(given)
    shown = effective(configuration)
    del shown["warnings"]
    profile: dict[str, dict[str, object]] = effective(configuration)["profiles"][0]  # type: ignore[index]
    again = {key: value for key, value in shown.items() if key != "profiles"}
    args = [{"name": name, "args": value} for name, value in profile["args"].items()]
    assert loaded({**document(), **again, "profiles": [{"pluginConfig": args}]}) == configuration


def test_effective_configuration_can_be_written_as_json() -> None:
    shown = json.loads(json.dumps(effective(loaded(document()))))
    assert shown["profiles"][0]["plugins"]["queueSort"][0]["origin"] == "default"
    assert "permit" not in shown["profiles"][0]["plugins"]
