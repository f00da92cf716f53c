"""Policies are read as kube-scheduler v1.20 read them, and refused with everything that is wrong."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kschedfw_legacy import Policy, load_policy, parse_policy, policy_profile, provenance
from kschedfw_legacy.policy.tables import PREDICATES, PRIORITIES

from kschedfw.config import ConfigurationError
from kschedfw.config.extenders import ExtenderManagedResource


def read(**fields: Any) -> Policy:
    return parse_policy({"kind": "Policy", "apiVersion": "v1", **fields})


def refused(**fields: Any) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        read(**fields)
    return [str(error) for error in caught.value.errors]


def extender(**fields: Any) -> dict[str, Any]:
    return {"urlPrefix": "http://localhost:8888/", **fields}


class TestDocuments:
    @pytest.mark.parametrize(
        "text",
        [
            '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "HostName"}]}',
            "kind: Policy\napiVersion: v1\npredicates:\n- name: HostName\n",
            "kind: Policy\napiVersion: kubescheduler.config.k8s.io/v1\npredicates: [{name: HostName}]",
        ],
        ids=["json", "yaml", "with a group"],
    )
    def test_json_and_yaml_say_the_same(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "policy").write_text(text)
        policy = load_policy(tmp_path / "policy")
        assert policy == parse_policy(text) == read(predicates=[{"name": "HostName"}])

    def test_a_config_map_may_hold_it(self) -> None:
        text = json.dumps({"kind": "Policy", "apiVersion": "v1", "priorities": []})
        config_map = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"policy.cfg": text}}
        assert parse_policy(config_map) == read(priorities=[])

    def test_and_is_named_in_what_is_wrong_with_it(self) -> None:
        text = '{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "Warp"}]}'
        config_map = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"policy.cfg": text}}
        with pytest.raises(ConfigurationError) as caught:
            parse_policy(config_map, "cm.yaml")
        assert str(caught.value) == (
            'cm.yaml: data[policy.cfg]: predicates[0].name: Invalid value: "Warp": predicate type not found'
        )

    def test_a_config_map_without_one_is_refused(self) -> None:
        with pytest.raises(
            ConfigurationError, match=r"data\[policy.cfg\]: Required value: the text of a Policy"
        ):
            parse_policy({"kind": "ConfigMap", "apiVersion": "v1", "data": {"other": ""}})

    @pytest.mark.parametrize(
        ("kind", "version"),
        [
            ("Policy", "kubescheduler.config.k8s.io/vunknown"),
            ("KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/v1"),
        ],
    )
    def test_other_kinds_and_versions_are_refused(self, kind: str, version: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            parse_policy({"kind": kind, "apiVersion": version})
        assert str(caught.value) == (
            f'Policy: no kind "{kind}" is registered for version "{version}"; supported are Policy in v1 and '
            "kubescheduler.config.k8s.io/v1, and a ConfigMap with one"
        )

    def test_a_key_that_is_given_twice_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match='duplicate field "predicates"'):
            parse_policy('{"kind": "Policy", "apiVersion": "v1", "predicates": [], "predicates": []}')


class TestLists:
    def test_nothing_and_null_are_no_list_and_an_empty_list_is_one(self) -> None:
        assert (read().predicates, read().priorities) == (None, None)
        assert (read(predicates=None).predicates, read(predicates=[]).predicates) == (None, ())


class TestRules:
    def test_everything_that_is_wrong_is_told_at_once(self) -> None:
        problems = refused(
            predicates=[{"name": "PodFitsResource"}, {"name": "Mine", "argument": {}}],
            priorities=[{"name": "Mine", "weight": 1}, {"name": "EqualPriority", "weight": 0}],
            hardPodAffinitySymmetricWeight=101,
            extenders=[extender(prioritizeVerb="p"), extender(bindVerb="b"), extender(bindVerb="b")],
            builtin=True,
        )
        assert problems == [
            (
                'strict decoding error: unknown field "builtin"; known are: alwaysCheckAllPredicates, extenders, '
                "hardPodAffinitySymmetricWeight, predicates, priorities"
            ),
            (
                'predicates[0].name: Invalid value: "PodFitsResource": predicate type not found; '
                "did you mean 'PodFitsResources'?"
            ),
            "predicates[1].argument: exactly 1 predicate argument is required, not 0",
            'priorities[0].name: Invalid value: "Mine": priority type not found',
            (
                "priorities[1].weight: Invalid value: 0: priority EqualPriority should have a positive weight applied "
                "to it or it has overflown"
            ),
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
            "hardPodAffinitySymmetricWeight: Invalid value: 101: must be in the range 1-100, or 0 for the default",
        ]

    def test_wrong_types_and_unknown_fields_come_with_their_paths(self) -> None:
        presence = {"labels": "zone", "presence": "yes"}
        problems = refused(
            predicates=[{"name": "A", "argument": {"labelsPresence": presence}}, {"nam": "B"}],
            alwaysCheckAllPredicates=1,
        )
        assert sorted(problems) == [
            "alwaysCheckAllPredicates: Invalid value: 1: must be true or false",
            'predicates[0].argument.labelsPresence.labels: Invalid value: "zone": must be a list',
            'predicates[0].argument.labelsPresence.presence: Invalid value: "yes": must be true or false',
            'strict decoding error: unknown field "predicates[1].nam"; known are: argument, name',
        ]

    @pytest.mark.parametrize("weight", [-1, (1 << 63) // 10])
    def test_a_weight_is_positive_and_can_not_overflow(self, weight: int) -> None:
        (problem,) = refused(priorities=[{"name": "ImageLocalityPriority", "weight": weight}])
        assert problem.startswith(f"priorities[0].weight: Invalid value: {weight}: priority ImageLocalityPri")
        assert read(priorities=[{"name": "ImageLocalityPriority", "weight": (1 << 63) // 10 - 1}]).priorities

    def test_an_entry_has_one_argument(self) -> None:
        both = {"serviceAffinity": {"labels": ["a"]}, "labelsPresence": {"labels": ["a"]}}
        assert refused(predicates=[{"name": "Mine", "argument": both}]) == [
            "predicates[0].argument: exactly 1 predicate argument is required, not 2"
        ]

    def test_preferences_of_a_kind_have_one_weight(self) -> None:
        problems = refused(
            priorities=[
                {"name": "A", "weight": 1, "argument": {"labelPreference": {"label": "a"}}},
                {"name": "B", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "a"}}},
                {"name": "C", "weight": 2, "argument": {"labelPreference": {"label": "b"}}},
                {"name": "D", "weight": 3, "argument": {"serviceAntiAffinity": {"label": "b"}}},
            ]
        )
        assert problems == [
            "priorities[2].weight: Invalid value: 2: every labelPreference must have the same weight, and A has 1",
            (
                "priorities[3].weight: Invalid value: 3: every serviceAntiAffinity must have the same weight, "
                "and B has 2"
            ),
        ]

    def test_requested_to_capacity_ratio_is_declared_once(self) -> None:
        argument = {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 10}]}}
        entries = [{"name": name, "weight": 1, "argument": argument} for name in ("A", "B")]
        assert refused(priorities=entries) == [
            "priorities[1].argument.requestedToCapacityRatioArguments: only one priority can have it, and A has"
        ]


class TestExtenders:
    def test_their_keys_may_be_written_in_any_case(self) -> None:
        (config,) = read(
            extenders=[
                {
                    "UrlPrefix": "/prefix",
                    "BindVerb": "bind",
                    "enableHttps": True,
                    "tlsConfig": {"Insecure": True, "CAData": base64.b64encode(b"pem").decode()},
                    "managedResources": [{"Name": "example.com/foo", "ignoredbyscheduler": True}],
                }
            ]
        ).extenders
        assert (config.url_prefix, config.bind_verb, config.enable_https) == ("/prefix", "bind", True)
        assert config.tls_config is not None
        assert (config.tls_config.insecure, config.tls_config.ca_data) == (True, b"pem")
        assert config.managed_resources == (ExtenderManagedResource("example.com/foo", True),)

    def test_the_timeout_counts_nanoseconds_and_0_is_the_default(self) -> None:
        first, second = read(extenders=[extender(httpTimeout=2_500_000_000), extender()]).extenders
        assert (first.timeout, second.timeout) == (2.5, 5.0)

    def test_unknown_keys_are_passed_over_and_wrong_types_are_not(self) -> None:
        assert read(extenders=[extender(colour="red")]) == read(extenders=[extender()])
        assert refused(
            extenders=[extender(weight="1", httpTimeout="5s", tlsConfig={"caData": "§"}), "an extender"]
        ) == [
            'extenders[0].httpTimeout: Invalid value: "5s": must be a whole number, of nanoseconds',
            'extenders[0].weight: Invalid value: "1": must be an integer',
            'extenders[0].tlsConfig.caData: Invalid value: "…": must be data in base64',
            'extenders[1]: Invalid value: "an extender": must be an object',
        ]
        assert refused(extenders={}) == ["extenders: Invalid value: {}: must be a list"]

    def test_only_extended_resources_are_managed_and_each_by_one(self) -> None:
        managed = [{"name": "cpu"}, {"name": "example.com/a"}, {"name": "example.com/a"}]
        assert refused(extenders=[extender(managedResources=managed)]) == [
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
            (
                'extenders[0].managedResources[2].name: Invalid value: "example.com/a": duplicate extender managed '
                "resource name"
            ),
        ]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
LABELS = st.sampled_from([["zone"], [], "zone", None])
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "serviceAffinity": st.fixed_dictionaries({"labels": LABELS}) | ANYTHING,
        "labelsPresence": st.fixed_dictionaries({"labels": LABELS, "presence": st.booleans()}) | ANYTHING,
        "labelPreference": st.fixed_dictionaries({"label": st.text(max_size=3), "presence": st.booleans()}),
        "serviceAntiAffinity": st.fixed_dictionaries({"label": st.text(max_size=3)}),
        "requestedToCapacityRatioArguments": ANYTHING,
    },
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from([*PREDICATES, *PRIORITIES, "Mine"])},
        optional={"weight": st.integers(-1, 3) | ANYTHING, "argument": ARGUMENTS | ANYTHING},
    ),
    max_size=4,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "predicates": ENTRIES | ANYTHING,
        "priorities": ENTRIES | ANYTHING,
        "extenders": st.lists(
            st.dictionaries(st.sampled_from(["urlprefix", "tlsConfig", "HTTPTimeout"]), ANYTHING)
        ),
        "hardPodAffinitySymmetricWeight": SCALARS,
        "alwaysCheckAllPredicates": SCALARS,
    },
)


@given(FIELDS)
def test_whatever_is_written_there_is_a_profile_or_a_list_of_problems(fields: dict[str, Any]) -> None:
    try:
        made = policy_profile(read(**fields))
    except ConfigurationError as error:
        problems = str(error)
    else:
        problems = ""
        assert set(provenance(made)) == set(made.plugin_names)
        assert set(made.args) <= set(made.plugin_names)
    assert problems.startswith("Policy: ") or not problems
