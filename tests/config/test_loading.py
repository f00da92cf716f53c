"""What a KubeSchedulerConfiguration may say, what it means where it says nothing, and all that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw import ConfigurationError, FieldError, Plugin, hookimpl
from kschedfw.config import FeatureGates, parse_configuration
from kschedfw.config.extenders import ExtenderConfig
from kschedfw.plugins import DynamicResourcesArgs
from kschedfw.plugins.node_resources_fit import NodeResourcesFitArgs
from kschedfw.plugins.volume_binding import VolumeBindingArgs
from tests.config.documents import document, loaded, one_profile, plugin_with_hooks, refused

EXTENDER = {"urlPrefix": "http://extender:80"}


class TestDefaults:
    def test_an_empty_configuration_is_kube_schedulers_default(self) -> None:
        configuration = loaded(document())
        assert (configuration.parallelism, configuration.percentage_of_nodes_to_score) == (16, 0)
        assert (configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds) == (1, 10)
        (profile,) = configuration.profiles
        assert profile.scheduler_name == "default-scheduler"
        assert profile.percentage_of_nodes_to_score is None

    def test_null_and_empty_lists_are_the_same_as_nothing(self) -> None:
        empty = document(profiles=[], extenders=None, parallelism=None, leaderElection={"leaderElect": None})
        assert loaded(empty) == loaded(document())

    def test_zeros_stand_for_the_defaults_where_kubernetes_reads_them_so(self) -> None:
        given = document(
            leaderElection={"leaseDuration": "0s", "resourceName": ""},
            clientConnection={"qps": 0, "burst": 0, "contentType": ""},
        )
        assert loaded(given) == loaded(document())

    def test_a_single_profile_needs_no_name_and_several_do(self) -> None:
        assert loaded(document(profiles=[{}])).profiles[0].scheduler_name == "default-scheduler"
        assert refused(document(profiles=[{}, {"schedulerName": "b"}])) == [
            "profiles[0].schedulerName: Required value"
        ]
        assert refused(document(profiles=[{"schedulerName": ""}])) == [
            "profiles[0].schedulerName: Required value"
        ]

    def test_every_enabled_plugin_with_arguments_has_them(self) -> None:
        (profile,) = loaded(document()).profiles
        assert profile.args["NodeResourcesFit"] == NodeResourcesFitArgs()
        assert profile.args["VolumeBinding"] == VolumeBindingArgs()
        (without,) = loaded(
            one_profile(plugins={"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}})
        ).profiles
        assert "NodeResourcesFit" not in without.args


class TestVersions:
    @pytest.mark.parametrize(
        ("version", "until"), [("v1beta1", "1.23"), ("v1beta2", "1.28"), ("v1beta3", "1.29")]
    )
    def test_older_ones_are_read_as_v1_with_a_warning(self, version: str, until: str) -> None:
        configuration = loaded(document(f"kubescheduler.config.k8s.io/{version}"))
        assert configuration.profiles == loaded(document()).profiles
        assert configuration.warnings == (
            (
                f"kube-scheduler reads kubescheduler.config.k8s.io/{version} no longer since v{until}; "
                "it is read as v1, with v1's default plugins and weights"
            ),
        )

    @pytest.mark.parametrize("point", ["placementGenerate", "placementScore"])
    def test_lists_for_placements_are_known_since_v1_36(self, point: str) -> None:
        content = one_profile(plugins={point: {}})
        parse_configuration(content, gates=FeatureGates(version="1.36"))
        with pytest.raises(ConfigurationError) as caught:
            parse_configuration(content, gates=FeatureGates(version="1.35"))
        (error,) = caught.value.errors
        where = f'strict decoding error: unknown field "profiles[0].plugins.{point}"'
        assert str(error) == f"{where}; Kubernetes has it since v1.36"

    def test_the_list_for_groups_without_a_place_is_known_since_v1_37(self) -> None:
        content = one_profile(plugins={"podGroupPostFilter": {"disabled": [{"name": "DefaultPreemption"}]}})
        parse_configuration(content, gates=FeatureGates(version="1.37"))
        with pytest.raises(ConfigurationError, match=r"unknown field .*podGroupPostFilter"):
            parse_configuration(content, gates=FeatureGates(version="1.36"))

    @pytest.mark.parametrize("listed", ["enabled", "disabled"])
    def test_what_reading_says_of_a_plugin_can_not_be_written(self, listed: str) -> None:
        entry = {"name": "NodeName", "origin": 3, "askedBy": "me"}
        first, second = refused(one_profile(plugins={"filter": {listed: [entry]}}))
        where = f'strict decoding error: unknown field "profiles[0].plugins.filter.{listed}[0]'
        assert (first, second) == (
            f'{where}.origin"; known are: name, weight',
            f'{where}.askedBy"; known are: name, weight',
        )

    def test_no_version_has_a_list_for_placement_feasible(self) -> None:
        (error,) = refused(one_profile(plugins={"placementFeasible": {}}))
        assert "placementFeasible" in error

    def test_what_v1_does_not_have_any_more_is_refused_by_name(self) -> None:
        beta = document("kubescheduler.config.k8s.io/v1beta1", healthzBindAddress="0.0.0.0:10251")
        (error,) = refused(beta)
        assert error.startswith('strict decoding error: unknown field "healthzBindAddress"; known are: ')

    @pytest.mark.parametrize("version", ["kubescheduler.config.k8s.io/v2", "componentconfig/v1alpha1", "v1"])
    def test_others_are_refused(self, version: str) -> None:
        (error,) = refused(document(version))
        assert error.startswith(
            f'no kind "KubeSchedulerConfiguration" is registered for version "{version}"; supported are '
        )


class TestConfigMaps:
    """Configurations of clusters are ConfigMaps, which are mounted as files."""

    @staticmethod
    def config_map(**data: object) -> dict[str, Any]:
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}, "data": data}

    def test_the_only_key_is_read(self) -> None:
        text = json.dumps(document(parallelism=3))
        assert loaded(self.config_map(**{"scheduler.yaml": text})).parallelism == 3

    def test_what_is_wrong_in_it_is_told_with_the_key(self) -> None:
        text = json.dumps(document(parallelism=0))
        with pytest.raises(ConfigurationError) as error:
            loaded(self.config_map(**{"scheduler.yaml": text}))
        assert str(error.value).startswith("c.yaml: data[scheduler.yaml]: parallelism: Invalid value: 0")

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            ({}, "its keys: none"),
            ({"a": "", "b": ""}, "its keys: a, b"),
        ],
    )
    def test_of_several_it_is_said_which_there_are(self, data: dict[str, object], said: str) -> None:
        expected = "data: a ConfigMap must have a Policy in policy.cfg, or a configuration in the only key"
        assert refused(self.config_map(**data)) == [f"{expected}; {said}"]

    def test_a_key_that_is_no_text_is_refused(self) -> None:
        assert refused(self.config_map(a={})) == ["data.a: Invalid value: {}: must be a string"]


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"parallelism": 0}, "parallelism: Invalid value: 0: should be an integer value greater than zero"),
    ({"parallelism": 1 << 31}, "parallelism: Invalid value: 2147483648: must fit in 32 bits"),
    (
        {"percentageOfNodesToScore": 101},
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ),
    (
        {"profiles": [{"percentageOfNodesToScore": -1}]},
        "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
    ),
    (
        {"podInitialBackoffSeconds": 0},
        "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
    ),
    (
        {"podInitialBackoffSeconds": 20},
        "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
    ),
    (
        {"clientConnection": {"burst": -1}},
        "clientConnection.burst: Invalid value: -1: must be non-negative",
    ),
    (
        {"leaderElection": {"retryPeriod": "-1s"}},
        'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero',
    ),
    (
        {"leaderElection": {"leaseDuration": "5s"}},
        'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
    ),
    (
        {"leaderElection": {"retryPeriod": "20s"}},
        (
            'leaderElection.renewDeadline: Invalid value: "10s": must be greater than retryPeriod*JitterFactor, 24s'
        ),
    ),
    (
        {"leaderElection": {"leaseDuration": "30s", "renewDeadline": "24s", "retryPeriod": "20s"}},
        (
            'leaderElection.renewDeadline: Invalid value: "24s": must be greater than retryPeriod*JitterFactor, 24s'
        ),
    ),
    (
        {"leaderElection": {"resourceLock": "endpoints"}},
        'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
    ),
    (
        {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
        'profiles[1].schedulerName: Duplicate value: "a"',
    ),
    (
        {"extenders": [{**EXTENDER, "bindVerb": "bind"}] * 2},
        'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
    ),
    (
        {"extenders": [{**EXTENDER, "prioritizeVerb": "p"}]},
        "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
    ),
    (
        {"leaderElection": {"leaseDuration": 15}},
        "leaderElection.leaseDuration: Invalid value: 15: must be a duration such as 30s or 1m30s",
    ),
    ({"parallelism": "4"}, 'parallelism: Invalid value: "4": must be an integer'),
]


class TestSettings:
    @pytest.mark.parametrize(("fields", "error"), SETTINGS, ids=lambda value: str(value)[:40])
    def test_what_is_wrong_is_said_as_kube_scheduler_says_it(
        self, fields: dict[str, Any], error: str
    ) -> None:
        assert refused(document(**fields)) == [error]

    def test_without_leader_election_its_times_do_not_matter(self) -> None:
        loaded(document(leaderElection={"leaderElect": False, "leaseDuration": "1s"}))

    def test_everything_that_is_wrong_is_said_at_once(self) -> None:
        wrong = document(
            parallelism=-1,
            foo=1,
            profiles=[
                {
                    "plugins": {"score": {"enabled": [{"name": "Nope"}]}},
                    "pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}],
                }
            ],
        )
        assert [error.partition(": ")[0] for error in refused(wrong)] == [
            "strict decoding error",
            "parallelism",
            "profiles[0].plugins.score.enabled[0]",
            "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
        ]

    def test_times_connection_and_extenders_are_kept(self) -> None:
        configuration = loaded(
            document(
                leaderElection={"leaseDuration": "1m30s"},
                clientConnection={"kubeconfig": "/k", "qps": 12.5},
                extenders=[{**EXTENDER, "filterVerb": "f", "httpTimeout": "100ms", "enableHTTPS": True}],
            )
        )
        assert configuration.leader_election.lease_duration == 90
        assert (configuration.client_connection.kubeconfig, configuration.client_connection.qps) == (
            "/k",
            12.5,
        )
        assert configuration.extenders == (
            ExtenderConfig("http://extender:80", filter_verb="f", http_timeout=0.1, enable_https=True),
        )


@attrs.frozen
class RackArgs:
    label: str = "rack"

    def validate(self) -> Iterator[FieldError]:
        if not self.label:
            yield FieldError.required("label")


class Rack(Plugin[RackArgs]):
    name = "Rack"
    args_type = RackArgs

    @hookimpl
    def filter(self) -> None: ...


class Picky(Plugin[RackArgs]):
    name = "Picky"

    @attrs.frozen
    class Args:
        label: str

    args_type = Args

    @hookimpl
    def filter(self) -> None: ...


@attrs.frozen
class MixedArgs:
    label: bool | str = ""


class Mixed(Plugin[MixedArgs]):
    name = "Rack"
    args_type = MixedArgs

    @hookimpl
    def filter(self) -> None: ...


@attrs.frozen
class CarelessArgs:
    label: str = ""

    def validate(self) -> None: ...


class Careless(Plugin[CarelessArgs]):
    name = "Rack"
    args_type = CarelessArgs

    @hookimpl
    def filter(self) -> None: ...


def rack(args: dict[str, Any], **fields: Any) -> dict[str, Any]:
    enabled = {"filter": {"enabled": [{"name": "Rack"}]}}
    return one_profile(**{"plugins": enabled, **fields}, pluginConfig=[{"name": "Rack", "args": args}])


class TestArguments:
    def test_a_plugin_from_elsewhere_has_its_own(self) -> None:
        assert loaded(rack({"label": "row"}), Rack).profiles[0].args["Rack"] == RackArgs("row")
        assert loaded(rack({"label": "row"}), Rack).profiles[0].args["Rack"] == RackArgs("row")

    def test_they_are_read_strictly(self) -> None:
        assert refused(rack({"lable": "row"}), Rack) == [
            'strict decoding error: unknown field "profiles[0].pluginConfig[0].args.lable"; known are: label'
        ]
        assert refused(rack({"label": ""}), Rack) == [
            "profiles[0].pluginConfig[0].args.label: Required value"
        ]

    def test_they_may_say_whose_they_are_and_then_it_must_be_true(self) -> None:
        loaded(rack({"kind": "RackArgs", "apiVersion": "rack.example/v1"}), Rack)
        assert refused(rack({"kind": "RowArgs"}), Rack) == [
            (
                "profiles[0].pluginConfig[0]: args for plugin Rack were not of type "
                "RackArgs.kubescheduler.config.k8s.io, got RowArgs.kubescheduler.config.k8s.io"
            )
        ]
        (error,) = refused(rack({"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}), Rack)
        assert error.startswith("profiles[0].pluginConfig[0].args.apiVersion: Invalid value: ")

    def test_a_plugin_that_needs_some_says_so(self) -> None:
        (error,) = refused(one_profile(plugins={"filter": {"enabled": [{"name": "Picky"}]}}), Picky)
        assert error == "profiles[0].pluginConfig: Required value: plugin Picky: label: Required value"

    def test_a_plugin_whose_arguments_no_configuration_can_give_is_an_error_without_them_too(self) -> None:
        (error,) = refused(one_profile(plugins={"filter": {"enabled": [{"name": "Rack"}]}}), Mixed)
        assert error.startswith(
            "profiles[0].plugins.filter.enabled[0]: Invalid value: \"Rack\": plugin 'Rack': its args_type MixedArgs "
            "is unusable: label: bool | str can't be read; "
        )

    def test_a_plugin_that_fails_to_validate_them_is_named(self) -> None:
        enabled = one_profile(plugins={"filter": {"enabled": [{"name": "Rack"}]}})
        for content, path in ((rack({"label": "a"}), "pluginConfig[0].args"), (enabled, "pluginConfig")):
            (error,) = refused(content, Careless)
            assert error.startswith(
                f"profiles[0].{path}: plugin 'Rack': CarelessArgs.validate returned None; it must yield"
            )

    def test_those_of_a_plugin_that_nobody_has_and_nobody_enables_are_passed_over_with_a_warning(
        self,
    ) -> None:
        configuration = loaded(one_profile(pluginConfig=[{"name": "Nobody", "args": {"foo": 1}}]))
        assert configuration.profiles == loaded(document()).profiles
        (warning,) = configuration.warnings
        assert warning.startswith('profiles[0].pluginConfig[0]: plugin "Nobody"')

    def test_a_misspelt_plugin_is_told_with_the_one_that_may_be_meant(self) -> None:
        (warning,) = loaded(one_profile(pluginConfig=[{"name": "NodeResourceFit", "args": {}}])).warnings
        assert warning.endswith("its args are passed over; did you mean NodeResourcesFit?")

    def test_disabling_what_is_not_there_is_a_warning(self) -> None:
        """kube-scheduler takes it, and the plugin that was meant goes on scoring."""
        plugins = {
            "score": {"disabled": [{"name": "NodeName"}, {"name": "ImageLocalty"}]},
            "multiPoint": {"disabled": [{"name": "Whatever"}]},
            "filter": {"disabled": [{"name": "*"}], "enabled": [{"name": "Rack"}]},
        }
        configuration = loaded(one_profile(plugins=plugins), Rack)
        assert configuration.warnings == (
            'profiles[0].plugins.multiPoint.disabled[0]: there is no plugin "Whatever", so nothing is disabled',
            (
                'profiles[0].plugins.score.disabled[1]: there is no plugin "ImageLocalty", so nothing is disabled; '
                "did you mean ImageLocality?"
            ),
        )

    def test_those_of_a_disabled_plugin_are_checked(self) -> None:
        args = {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": -1}}
        disabled = {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}
        assert len(refused(one_profile(plugins=disabled, pluginConfig=[args]))) == 1

    def test_twice_the_same_plugin_is_refused(self) -> None:
        twice = [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": weight}} for weight in (1, 2)]
        assert refused(one_profile(pluginConfig=twice)) == [
            'profiles[0].pluginConfig[1]: Duplicate value: "InterPodAffinity"'
        ]

    def test_a_plugin_that_is_not_in_this_version_has_its_arguments_checked(self) -> None:
        def dynamic_resources(**args: Any) -> dict[str, Any]:
            return one_profile(
                plugins={"multiPoint": {"enabled": [{"name": "DynamicResources"}]}},
                pluginConfig=[{"name": "DynamicResources", "args": args}],
            )

        assert loaded(dynamic_resources(filterTimeout="7s")).profiles[0].args["DynamicResources"] == (
            DynamicResourcesArgs(7.0)
        )
        (error,) = refused(dynamic_resources(filterTimeout="-1s"))
        assert "must be zero or positive" in error

    def test_scoring_of_storage_is_behind_a_feature_gate(self) -> None:
        written = one_profile(
            pluginConfig=[{"name": "VolumeBinding", "args": {"shape": [{"utilization": 0, "score": 0}]}}]
        )
        (error,) = refused(written)
        assert "turn on the feature gate StorageCapacityScoring" in error


def enabling(point: str, *names: str, **fields: Any) -> dict[str, Any]:
    return one_profile(plugins={point: {"enabled": [{"name": name, **fields} for name in names]}})


class TestPlugins:
    def test_one_that_is_not_installed_is_named_with_profile_and_points(self) -> None:
        wanted = {point: {"enabled": [{"name": "Rack"}]} for point in ("score", "filter")}
        assert refused(document(profiles=[{"schedulerName": "racks", "plugins": wanted}])) == [
            (
                'profiles[0].plugins.filter.enabled[0]: Invalid value: "Rack": plugin "Rack" does not exist: '
                'no installed distribution offers it (profile "racks" wants it at filter, score)'
            )
        ]

    def test_a_misspelt_one_gets_a_hint(self) -> None:
        (error,) = refused(enabling("filter", "TaintTolerations"))
        assert "did you mean TaintToleration?" in error

    def test_one_without_a_hook_for_the_point_is_refused(self) -> None:
        assert refused(enabling("score", "NodeName")) == [
            (
                'profiles[0].plugins.score.enabled[0]: Invalid value: "NodeName": '
                'plugin "NodeName" does not extend score; its extension points: filter'
            )
        ]

    def test_the_same_twice_at_a_point_is_refused(self) -> None:
        for point in ("filter", "multiPoint"):
            assert refused(enabling(point, "NodeName", "NodeName")) == [
                f'profiles[0].plugins.{point}.enabled[1]: Duplicate value: "NodeName"'
            ]

    def test_one_that_v1_does_not_know_any_more_is_refused_as_such(self) -> None:
        assert refused(enabling("filter", "EBSLimits"))[0] == (
            'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
            '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")'
        )

    @pytest.mark.parametrize(
        ("weight", "why"), [(-1, "must not be negative"), (1 << 31, "must fit in 32 bits")]
    )
    def test_a_weight_is_a_small_number(self, weight: int, why: str) -> None:
        assert refused(enabling("score", "ImageLocality", weight=weight)) == [
            f"profiles[0].plugins.score.enabled[0].weight: Invalid value: {weight}: {why}"
        ]

    @pytest.mark.parametrize("point", ["queueSort", "bind"])
    def test_somebody_must_sort_and_somebody_bind(self, point: str) -> None:
        (error,) = refused(one_profile(plugins={point: {"disabled": [{"name": "*"}]}}))
        assert error.startswith(f"profiles[0].plugins.{point}: Required value: at least one ")
        assert error.endswith('plugin is needed for profile with scheduler name "default-scheduler"')

    def test_only_one_sorts(self) -> None:
        fifo = plugin_with_hooks("Fifo", "queue_sort")
        (error,) = refused(enabling("multiPoint", "Fifo"), fifo)
        assert error == (
            'profiles[0].plugins.queueSort: Invalid value: "PrioritySort, Fifo": only one queue sort plugin '
            'required for profile with scheduler name "default-scheduler", but got 2'
        )

    def test_all_profiles_sort_alike(self) -> None:
        fifo = plugin_with_hooks("Fifo", "queue_sort")
        own = {"enabled": [{"name": "Fifo"}], "disabled": [{"name": "*"}]}
        profiles = [{"schedulerName": "a"}, {"schedulerName": "b", "plugins": {"queueSort": own}}]
        (error,) = refused(document(profiles=profiles), fifo)
        assert error.startswith("profiles[1].plugins.queueSort: Invalid value: ")
        assert error.endswith("must be the same for all profiles")
        everywhere = {"multiPoint": {"enabled": [{"name": "Fifo"}], "disabled": [{"name": "PrioritySort"}]}}
        (error,) = refused(
            document(profiles=[profiles[0], {"schedulerName": "b", "plugins": everywhere}]), fifo
        )
        assert error == (
            'profiles[1].plugins.queueSort: Invalid value: "Fifo": must be the same for all profiles, '
            'first: "PrioritySort"'
        )

    def test_an_entry_without_hooks_at_all_is_no_trouble_in_multi_point(self) -> None:
        (profile,) = loaded(enabling("multiPoint", "Idle"), plugin_with_hooks("Idle")).profiles
        assert "Idle" not in {plugin.name for plugin in profile.listed}


ODD = st.recursive(
    st.sampled_from([None, True, 0, -1, 1 << 40, 1.5, "", "*", "x", "0s", "NodeName"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "args", "x"]), inner)
    ),
    max_leaves=4,
)
FIELDS = st.sampled_from([field for fields, _ in SETTINGS for field in fields] + ["clientConnection"])
PLACES = st.sampled_from(["multiPoint", "score", "queueSort", "enabled", "name"])


@given(st.dictionaries(FIELDS, ODD), st.dictionaries(PLACES, ODD), ODD, ODD)
def test_whatever_stands_in_it_is_either_read_or_refused(
    fields: dict[str, Any], plugins: dict[str, Any], config: object, args: object
) -> None:
    given_args = [config, {"name": "NodeResourcesFit", "args": args}]
    content = document(**{"profiles": [{"plugins": plugins, "pluginConfig": given_args}], **fields})
    with suppress(ConfigurationError):
        assert loaded(content).profiles


def test_feature_gates_are_refused_as_they_would_do_nothing() -> None:
    gates = FeatureGates({"DisablePreemption": True, "EvenPodsSpread": True})
    with pytest.raises(ConfigurationError) as caught:
        parse_configuration(document(parallelism=0), "file", gates=gates)
    why = "Forbidden: only Policies and algorithm providers heed it"
    assert [str(error) for error in caught.value.errors] == [
        f"featureGates.DisablePreemption: {why}; disable DefaultPreemption at postFilter instead",
        f"featureGates.EvenPodsSpread: {why}",
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
    ]
