"""What an extender's configuration may be, alone and with others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedfw.config import ExtenderConfigError
from kschedfw.config.effective import plain
from kschedfw.config.extenders import (
    DEFAULT_TIMEOUT,
    ExtenderConfig,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    check_extenders,
    ignored_resources,
    with_ignored_resources,
    without_password,
)
from kschedfw.framework.profile import Profile
from kschedfw.plugins.node_resources_fit import NodeResourcesFitArgs

URL = "http://extender.example:8888/scheduler"
GPU = ExtenderManagedResource("example.com/gpu", ignored_by_scheduler=True)
FPGA = ExtenderManagedResource("example.com/fpga")


def errors(*configs: ExtenderConfig) -> list[str]:
    try:
        check_extenders(configs)
    except ExtenderConfigError as error:
        return str(error).split("; ")
    return []


class TestOne:
    def test_a_url_is_enough(self) -> None:
        assert errors(ExtenderConfig(URL)) == []

    @pytest.mark.parametrize(
        "url",
        [
            "extender:8888",
            "ftp://host",
            "http://",
            "http://h:port",
            "http://[::1",
            f"http://{64 * 'a'}.example",
        ],
    )
    def test_the_url_needs_scheme_and_host(self, url: str) -> None:
        (error,) = errors(ExtenderConfig(url))
        assert error == (
            f'extenders[0].urlPrefix: Invalid value: "{url}": must be an http or https URL with a host'
        )

    @pytest.mark.parametrize("url", ["", "http://h", "https://h/a/b/", "http://[::1]:80", "http://u:p@h"])
    def test_urls_that_will_do(self, url: str) -> None:
        assert errors(ExtenderConfig(url)) == []

    @given(st.integers(max_value=0))
    def test_priorities_need_a_positive_weight(self, weight: int) -> None:
        assert errors(ExtenderConfig(URL, weight=weight)) == []
        (error,) = errors(ExtenderConfig(URL, prioritize_verb="prioritize", weight=weight))
        assert (
            error
            == f"extenders[0].weight: Invalid value: {weight}: must have a positive weight applied to it"
        )

    def test_the_timeout_is_five_seconds_unless_it_says_otherwise(self) -> None:
        assert DEFAULT_TIMEOUT == 5.0
        assert ExtenderConfig(URL).timeout == 5.0
        assert ExtenderConfig(URL, http_timeout=0).timeout == 5.0
        assert ExtenderConfig(URL, http_timeout=0.1).timeout == 0.1
        assert errors(ExtenderConfig(URL, http_timeout=-1)) == [
            'extenders[0].httpTimeout: Invalid value: "-1s": must not be negative'
        ]

    @pytest.mark.parametrize("name", ["cpu", "kubernetes.io/gpu", "gpu"])
    def test_managed_resources_are_extended_ones(self, name: str) -> None:
        assert errors(ExtenderConfig(URL, managed_resources=(ExtenderManagedResource(name),))) == [
            f'extenders[0].managedResources[0].name: Invalid value: "{name}": is an invalid extended resource name'
        ]

    def test_names_of_resources_are_names(self) -> None:
        (error,) = errors(ExtenderConfig(URL, managed_resources=(FPGA, ExtenderManagedResource("a/b/c"))))
        assert error.startswith(
            'extenders[0].managedResources[1].name: Invalid value: "a/b/c": a valid label key'
        )

    def test_insecure_and_a_ca_contradict_each_other(self) -> None:
        (error,) = errors(ExtenderConfig(URL, tls_config=ExtenderTLSConfig(insecure=True, ca_data=b"x")))
        assert error.startswith("extenders[0].tlsConfig.insecure: ")

    def test_certificate_and_key_belong_together(self) -> None:
        cert = ExtenderTLSConfig(cert_file="c")
        key = ExtenderTLSConfig(key_data=b"k")
        assert errors(ExtenderConfig(URL, tls_config=cert), ExtenderConfig(URL, tls_config=key)) == [
            "extenders[0].tlsConfig.keyFile: Required value: a client certificate and its key belong together",
            "extenders[1].tlsConfig.certFile: Required value: a client certificate and its key belong together",
        ]

    def test_a_password_is_shown_nowhere(self) -> None:
        config = ExtenderConfig("http://user:secret@h/a")
        assert "secret" not in repr(config)
        assert plain(config) == plain(ExtenderConfig("http://user:xxxxx@h/a"))
        (error,) = errors(ExtenderConfig("http://user:secret/word@h"))  # not escaped, so the host is "user"
        assert error.startswith('extenders[0].urlPrefix: Invalid value: "http://user:xxxxx@h": must be')

    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("http://h:80/a@b", "http://h:80/a@b"),
            ("http://h/a:b@c", "http://h/a:b@c"),
            ("http://user@h", "http://user@h"),
            ("http://[::1]:80/a:b@c", "http://[::1]:80/a:b@c"),
            ("http://user:p@ss@h:1/a", "http://user:xxxxx@h:1/a"),
            ("http://user:p#?/w@h", "http://user:xxxxx@h"),
            ("user:pw@h", "user:xxxxx@h"),
            ("", ""),
        ],
    )
    def test_url_is_shown_without_its_password(self, url: str, shown: str) -> None:
        assert without_password(url) == shown

    def test_keys_are_not_shown(self) -> None:
        assert "secret" not in repr(ExtenderTLSConfig(key_data=b"secret"))


class TestSeveral:
    def test_only_one_may_bind(self) -> None:
        binder = ExtenderConfig(URL, bind_verb="bind")
        assert errors(binder, ExtenderConfig(URL)) == []
        assert errors(binder, binder) == [
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind'
        ]

    def test_a_resource_is_managed_once(self) -> None:
        one = ExtenderConfig(URL, managed_resources=(GPU,))
        other = ExtenderConfig(URL, managed_resources=(FPGA, GPU))
        assert errors(one, other) == [
            (
                'extenders[1].managedResources[1].name: Invalid value: "example.com/gpu": '
                "duplicate extender managed resource name"
            )
        ]

    def test_everything_wrong_is_told_at_once(self) -> None:
        broken = ExtenderConfig("nowhere", prioritize_verb="p", bind_verb="b")
        assert len(errors(broken, broken)) == 5


class TestIgnoredResources:
    """NodeResourcesFit leaves to extenders what only they look after."""

    configs = (
        ExtenderConfig(URL, managed_resources=(FPGA, GPU)),
        ExtenderConfig(URL, managed_resources=(ExtenderManagedResource("example.com/nic", True),)),
    )

    def test_are_collected_from_all_extenders(self) -> None:
        assert ignored_resources(self.configs) == ("example.com/gpu", "example.com/nic")

    def test_without_any_the_profile_stays_as_it_is(self) -> None:
        profile = Profile(["NodeResourcesFit"])
        assert with_ignored_resources(profile, [ExtenderConfig(URL, managed_resources=(FPGA,))]) is profile

    def test_take_the_place_of_what_the_profile_says(self) -> None:
        given = {"ignoredResources": ["example.com/old"], "ignoredResourceGroups": ["example.org"]}
        profile = Profile(["NodeResourcesFit"], args={"NodeResourcesFit": given, "Other": {}})
        assert with_ignored_resources(profile, self.configs).args == {
            "NodeResourcesFit": {
                "ignoredResources": ["example.com/gpu", "example.com/nic"],
                "ignoredResourceGroups": ["example.org"],
            },
            "Other": {},
        }

    def test_may_be_the_only_arguments(self) -> None:
        assert with_ignored_resources(Profile(["NodeResourcesFit"]), self.configs).args == {
            "NodeResourcesFit": {"ignoredResources": ["example.com/gpu", "example.com/nic"]}
        }

    def test_go_into_arguments_that_are_read_already(self) -> None:
        given = NodeResourcesFitArgs(ignored_resource_groups=("example.org",))
        profile = Profile(["NodeResourcesFit"], args={"NodeResourcesFit": given})
        assert with_ignored_resources(profile, self.configs).args["NodeResourcesFit"] == NodeResourcesFitArgs(
            ignored_resources=("example.com/gpu", "example.com/nic"), ignored_resource_groups=("example.org",)
        )
