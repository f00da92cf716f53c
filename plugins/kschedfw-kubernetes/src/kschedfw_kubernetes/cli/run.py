"""`kschedfw run`: runs the scheduler of a cluster."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import click

from kschedfw import SchedulerConfiguration, SystemClock, format_duration
from kschedfw.api import FieldErrors, how_to_install
from kschedfw.api.reading import read_duration
from kschedfw.cli import (
    FILE,
    ExitCode,
    IntRange,
    UsageError,
    complain,
    gates_option,
    kube_version_option,
    selected_configuration,
)
from kschedfw.config import BOOLEANS, overridden, written

if TYPE_CHECKING:
    from kschedfw_kubernetes.cluster import Client
    from kschedfw_kubernetes.serve.access import Access
    from kschedfw_kubernetes.serve.client_metrics import RestClientMetrics
    from kschedfw_kubernetes.serve.shared_cluster import Sharing


_REVIEW_QPS, _REVIEW_BURST = 200.0, 400
"""The rate limit for reviews of callers, in requests per second and at once, as in kube-scheduler."""

_BOOLEAN = "true|false"
"""The metavar of flags that Go has as booleans."""
_LOOK_UP_SECONDS = 10.0
"""Seconds that reading the client CAs from the API server may take."""

RUN_HELP = """Schedule the pods of a cluster, as kube-scheduler does.

The configuration is a KubeSchedulerConfiguration; its leaderElection and clientConnection say how leaders are elected
and how the API server is reached. Without --config, kube-scheduler's defaults. In a pod, the API server and the
credentials of its service account are found by themselves; elsewhere give clientConnection.kubeconfig, --kubeconfig or
--master.

Flags have the names that they have in kube-scheduler. As there, those of leader election take the place of what the
configuration says, and --kubeconfig, --kube-api-qps and --kube-api-burst count only without --config.

SIGTERM or Ctrl-C: no new scheduling cycles; binding cycles end, events are sent, the lease is given up. A second signal
ends it at once. SIGUSR2 writes how cache and cluster differ to the log, then cache and queue.

\b
Exit codes:
  0    ended by SIGTERM or Ctrl-C
  1    the lease was lost, scheduling broke off, or the extra run isn't
       installed
  2    bad usage or a bad configuration, or the address is taken
  70   a bug in kschedfw
  130  ended at once by a second Ctrl-C
  142  ended by an alarm: it was paused beyond its lease
  143  ended at once by a second SIGTERM
"""


def _duration(text: str) -> float:
    try:
        return read_duration(text, float)
    except FieldErrors:
        raise click.BadParameter(f"{text!r} is no duration such as 15s or 1m30s") from None


def _verbosity(text: str | int) -> int:
    given = str(text).removeprefix("=")  # Go accepts flags in the form -v=2, too.
    if not given.isdecimal():
        raise click.BadParameter(f"{given!r} is no number such as 2")
    return int(given)


def _sharing(namespace: str | None, share: str | None) -> Sharing:
    """Return the way in which active schedulers share a cluster, by claims."""
    # Few schedulers share a cluster: all others start without this package.
    from kschedfw_kubernetes.claims.sharing import Claims, Share, ShareError

    try:
        return Claims(namespace or "kube-system", Share.parse(share or "0/1"))
    except ShareError as error:
        raise UsageError(f"--shared-state-share: {error}") from None


def _boolean(flag: str, text: str) -> bool:
    if text not in BOOLEANS:
        raise UsageError(f"{flag}={text}: must be true or false")
    return BOOLEANS[text]


class _GoFlags(click.Command):
    """A command with Go's boolean flags, which may stand alone for true: `--profiling` for `--profiling=true`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        standing_alone = {
            flag for parameter in self.params if parameter.metavar == _BOOLEAN for flag in parameter.opts
        }
        whole = [
            f"{given}=true" if given in standing_alone and after not in BOOLEANS else given
            for given, after in pairwise([*args, ""])
        ]
        return super().parse_args(ctx, whole)


@click.command("run", cls=_GoFlags, help=RUN_HELP)
@click.pass_context
@click.option("--config", type=FILE, metavar="FILE", help="A KubeSchedulerConfiguration or a Policy.")
@gates_option
@kube_version_option
@click.option(
    "--write-config-to",
    type=FILE,
    metavar="FILE",
    help="Write the effective configuration there as a document, and end; - prints it.",
)
@click.option("--dry-run", is_flag=True, help="Decide and log, but write nothing to the cluster.")
@click.option("--kubeconfig", metavar="FILE", help="How to reach the API server, and as whom.")
@click.option("--master", metavar="URL", help="The API server, in place of the kubeconfig's.")
@click.option("--kube-api-qps", type=float, metavar="N", help="Requests to the API server in a second.")
@click.option("--kube-api-burst", type=int, metavar="N", help="How many requests may be sent at once.")
@click.option(
    "--leader-elect",
    metavar=_BOOLEAN,
    help="Whether only one of several replicas schedules at a time; default true.",
)
@click.option(
    "--leader-elect-lease-duration",
    type=_duration,
    metavar="DURATION",
    help="How long others wait for a leader to renew; default 15s.",
)
@click.option(
    "--leader-elect-renew-deadline",
    type=_duration,
    metavar="DURATION",
    help="How long a leader tries to renew; default 10s.",
)
@click.option(
    "--leader-elect-retry-period",
    type=_duration,
    metavar="DURATION",
    help="The time between attempts to take or renew the lease; default 2s.",
)
@click.option(
    "--leader-elect-resource-lock", metavar="KIND", help="The kind of lock: leases is the only one."
)
@click.option(
    "--leader-elect-resource-name", metavar="NAME", help="The lease's name; default kube-scheduler."
)
@click.option(
    "--leader-elect-resource-namespace",
    metavar="NAMESPACE",
    help="The lease's namespace; default kube-system.",
)
@click.option(
    "--shared-state",
    is_flag=True,
    help="Schedule beside other active schedulers with this flag: each claims a place before it binds a pod. "
    "No leader is elected.",
)
@click.option(
    "--shared-state-share",
    metavar="I/N",
    help="Schedule the pods of part I (from 0) of N. Default: 0/1, all pods; whoever claims a pod first has it.",
)
@click.option(
    "--shared-state-namespace", metavar="NAMESPACE", help="Where the claims are kept; default kube-system."
)
@click.option(
    "--bind-address", default="0.0.0.0", metavar="ADDRESS", help="Where health, metrics and so on are served."
)
@click.option(
    "--secure-port",
    type=IntRange(0, 65535),
    default=10259,
    metavar="N",
    help="The https port of health, metrics and so on; 0: none.",
)
@click.option(
    "--tls-cert-file", type=FILE, metavar="FILE", help="The certificate (PEM). Default: a self-signed one."
)
@click.option(
    "--tls-private-key-file", type=FILE, metavar="FILE", help="The certificate's private key (PEM)."
)
@click.option(
    "--cert-dir",
    type=FILE,
    metavar="DIRECTORY",
    help="Where a self-signed certificate is kept for the next time.",
)
@click.option(
    "--authentication-kubeconfig",
    type=FILE,
    metavar="FILE",
    help="The API server that says who a caller is. Default: the one of the scheduler.",
)
@click.option(
    "--authorization-kubeconfig",
    type=FILE,
    metavar="FILE",
    help="The API server that says what a caller may do. Default: the one of the scheduler.",
)
@click.option(
    "--authorization-always-allow-paths",
    default="/healthz,/readyz,/livez",
    metavar="PATH,...",
    help="Paths that need no permission.",
)
@click.option(
    "--authentication-skip-lookup",
    metavar=_BOOLEAN,
    help="Don't read from the cluster which authorities sign the certificates of callers; default false.",
)
@click.option(
    "--client-ca-file",
    type=FILE,
    metavar="FILE",
    help="The authorities that sign the certificates of users (PEM). Default: those that the cluster names.",
)
@click.option(
    "--requestheader-client-ca-file",
    type=FILE,
    metavar="FILE",
    help="The authorities that sign the certificates of proxies (PEM), which send requests for users.",
)
@click.option(
    "--requestheader-allowed-names",
    default="",
    show_default=False,
    metavar="NAME,...",
    help="The common names that certificates of proxies may have. Default: any.",
)
@click.option(
    "--requestheader-username-headers",
    default="x-remote-user",
    metavar="HEADER,...",
    help="The headers in which a proxy sends the user's name.",
)
@click.option(
    "--requestheader-uid-headers",
    default="",
    show_default=False,
    metavar="HEADER,...",
    help="The headers in which a proxy sends the user's uid.",
)
@click.option(
    "--requestheader-group-headers",
    default="x-remote-group",
    metavar="HEADER,...",
    help="The headers in which a proxy sends the user's groups.",
)
@click.option(
    "--requestheader-extra-headers-prefix",
    default="x-remote-extra-",
    metavar="PREFIX,...",
    help="Prefixes of the headers in which a proxy sends more about the user.",
)
@click.option(
    "--tls-min-version",
    default="",
    show_default=False,
    metavar="VERSION",
    help="VersionTLS10 to VersionTLS13; default VersionTLS12.",
)
@click.option(
    "--tls-cipher-suites",
    default="",
    show_default=False,
    metavar="NAME,...",
    help="Cipher suites up to TLS 1.2, by Go's names. Default: OpenSSL's.",
)
@click.option(
    "--profiling",
    default="false",
    metavar=_BOOLEAN,
    help="Whether there are profiles under /debug/pprof.",
)
@click.option("--disabled-metrics", multiple=True, metavar="NAME,...", help="Metrics that aren't exposed.")
@click.option(
    "--recorder",
    multiple=True,
    metavar="NAME,...",
    help="More recorders of metrics, by the names that installed distributions give them.",
)
@click.option(
    "--show-hidden-metrics-for-version",
    default="",
    show_default=False,
    metavar="VERSION",
    help="1.35, which changes nothing: no metric is hidden.",
)
@click.option(
    "--loop-timeout",
    type=_duration,
    metavar="DURATION",
    help="After how long without a round of the scheduling loop /healthz fails. "
    "Default: 20s, and the timeouts of extenders.",
)
@click.option(
    "--v", "-v", type=_verbosity, default=0, metavar="N", help="How much to log: 2 decisions, 4 details."
)
@click.option(
    "--vmodule",
    default="",
    show_default=False,
    metavar="PATTERN=N,...",
    help="How much to log for modules whose file names match; with --logging-format text only.",
)
@click.option(
    "--logging-format", default="text", metavar="text|json", help="What a line of the log looks like."
)
def run(
    context: click.Context,
    config: Path | None,
    feature_gates: Sequence[str],
    kube_version: str | None,
    write_config_to: Path | None,
    dry_run: bool,
    kubeconfig: str | None,
    master: str | None,
    kube_api_qps: float | None,
    kube_api_burst: int | None,
    leader_elect: str | None,
    leader_elect_lease_duration: float | None,
    leader_elect_renew_deadline: float | None,
    leader_elect_retry_period: float | None,
    leader_elect_resource_lock: str | None,
    leader_elect_resource_name: str | None,
    leader_elect_resource_namespace: str | None,
    shared_state: bool,
    shared_state_share: str | None,
    shared_state_namespace: str | None,
    bind_address: str,
    secure_port: int,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    cert_dir: Path | None,
    authentication_kubeconfig: Path | None,
    authorization_kubeconfig: Path | None,
    authorization_always_allow_paths: str,
    authentication_skip_lookup: str | None,
    client_ca_file: Path | None,
    requestheader_client_ca_file: Path | None,
    requestheader_allowed_names: str,
    requestheader_username_headers: str,
    requestheader_uid_headers: str,
    requestheader_group_headers: str,
    requestheader_extra_headers_prefix: str,
    tls_min_version: str,
    tls_cipher_suites: str,
    profiling: str,
    disabled_metrics: Sequence[str],
    recorder: Sequence[str],
    show_hidden_metrics_for_version: str,
    loop_timeout: float | None,
    v: int,
    vmodule: str,
    logging_format: str,
) -> None:
    # Before anything is changed: `/flagz` shows the values as they were given.
    shown_flags = _flags(context)
    configuration = selected_configuration(config, None, feature_gates, kube_version)
    connection = {"kubeconfig": kubeconfig, "qps": kube_api_qps, "burst": kube_api_burst}
    if config is not None and (ignored := [name for name, value in connection.items() if value is not None]):
        flags = ", ".join(
            "--kubeconfig" if name == "kubeconfig" else f"--kube-api-{name}" for name in ignored
        )
        print(f"kschedfw: warning: {flags}: passed over, since there is a --config", file=sys.stderr)
        connection = {}
    election = {
        "leader_elect": None if leader_elect is None else _boolean("--leader-elect", leader_elect),
        "lease_duration": leader_elect_lease_duration,
        "renew_deadline": leader_elect_renew_deadline,
        "retry_period": leader_elect_retry_period,
        "resource_lock": leader_elect_resource_lock,
        "resource_name": leader_elect_resource_name,
        "resource_namespace": leader_elect_resource_namespace,
    }
    if shared_state:
        if leader_elect is not None and _boolean("--leader-elect", leader_elect):
            raise UsageError("--shared-state and --leader-elect=true: either several schedule, or one leader")
        election["leader_elect"] = False
    elif shared_state_share is not None or shared_state_namespace is not None:
        raise UsageError("--shared-state-share and --shared-state-namespace need --shared-state")
    configuration = overridden(
        configuration,
        leader_election=attrs.evolve(configuration.leader_election, **_given(election)),
        client_connection=attrs.evolve(configuration.client_connection, **_given(connection)),
    )
    if write_config_to is not None:
        _write(configuration, write_config_to)
        return
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file belong together")
    try:
        # Imported here, since other commands don't need this module, nor the extra that it needs.
        from kschedfw_kubernetes.serve.certificates import TlsSettings
        from kschedfw_kubernetes.serve.client_metrics import RestClientMetrics
        from kschedfw_kubernetes.serve.logs import LoggingFormat, ModuleVerbosity, set_up_logging
        from kschedfw_kubernetes.serve.process import SchedulerProcess, ServingOptions
        from kschedfw_kubernetes.serve.recorders import made_recorders

        if secure_port:
            # A process without endpoints needs none of their libraries: cryptography, asyncio and uvicorn.
            import kschedfw_kubernetes.serve.server  # noqa: F401  # to see whether they are installed
            from kschedfw_kubernetes.serve.client_certificates import (
                Authorities,
                ClientCertificates,
                FrontProxy,
                read_bundle,
            )
    except ModuleNotFoundError:
        needs = f"run needs the extra run: {how_to_install('kschedfw-kubernetes', 'run')}"
        raise click.exceptions.Exit(complain(needs, ExitCode.NOTHING_TO_DO)) from None
    if logging_format not in set(LoggingFormat):
        raise UsageError(f"--logging-format {logging_format}: there are {' and '.join(LoggingFormat)}")
    try:
        modules = ModuleVerbosity.parse(vmodule)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if modules and logging_format != LoggingFormat.TEXT:
        raise UsageError(f"--vmodule needs --logging-format text, not {logging_format}")
    if show_hidden_metrics_for_version not in ("", "1.35"):
        raise UsageError(
            f"--show-hidden-metrics-for-version {show_hidden_metrics_for_version}: must be 1.35, the version before"
        )
    authorities = None
    if secure_port:
        authorities = Authorities(
            () if client_ca_file is None else read_bundle("--client-ca-file", client_ca_file),
            None
            if requestheader_client_ca_file is None
            else FrontProxy(
                read_bundle("--requestheader-client-ca-file", requestheader_client_ca_file),
                _listed(requestheader_allowed_names),
                *(
                    _listed(headers.lower())
                    for headers in (
                        requestheader_username_headers,
                        requestheader_uid_headers,
                        requestheader_group_headers,
                        requestheader_extra_headers_prefix,
                    )
                ),
            ),
        )
    skip_lookup = _boolean("--authentication-skip-lookup", authentication_skip_lookup or "false")
    tls = TlsSettings.parse(tls_min_version, tls_cipher_suites)
    has_profiles = _boolean("--profiling", profiling)
    # After all other flags have been checked, so that bad usage is one line and not a log.
    set_up_logging(v, LoggingFormat(logging_format), modules=modules)
    sharing = _sharing(shared_state_namespace, shared_state_share) if shared_state else None
    requests = RestClientMetrics(SystemClock())
    client = _client(configuration, master, requests)
    options = ServingOptions(
        bind_address=bind_address,
        secure_port=secure_port,
        tls_cert_file=tls_cert_file,
        tls_private_key_file=tls_private_key_file,
        cert_dir=cert_dir,
        always_allow_paths=_listed(authorization_always_allow_paths),
        loop_seconds=loop_timeout,
        dry_run=dry_run,
        sharing=sharing,
        tls=tls,
        flags=shown_flags,
        profiling=has_profiles,
        disabled_metrics=[name for given in disabled_metrics for name in _listed(given)],
        recorders=made_recorders([name for given in recorder for name in _listed(given)]),
    )
    authentication = _reviewer(client, authentication_kubeconfig, requests)
    access = _access(authentication, _reviewer(client, authorization_kubeconfig, requests))
    look_up = None if skip_lookup else partial(_authentication_data, authentication)
    callers = None if authorities is None else ClientCertificates(authorities, look_up)
    process = SchedulerProcess(configuration, client, access, options, callers=callers, requests=requests)
    _end(process.run())


def _listed(text: str) -> tuple[str, ...]:
    """Return the parts between commas, without empty ones."""
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _flags(context: click.Context) -> dict[str, str]:
    """Return every flag's value, as Go prints it, by its name without `--`. A flag without a default is empty."""
    flags = {}
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        name = max(parameter.opts, key=len).removeprefix("--")
        match value:
            case None:
                flags[name] = ""
            case bool():
                flags[name] = str(value).lower()
            case list() | tuple():
                flags[name] = ",".join(map(str, value))
            case float() if getattr(parameter, "metavar", "") == "DURATION":
                flags[name] = format_duration(value)
            case _:
                flags[name] = str(value)
    return flags


def _given(fields: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _write(configuration: SchedulerConfiguration, file: Path) -> None:
    text = json.dumps(written(configuration), indent=2, ensure_ascii=False)
    if str(file) == "-":
        print(text)
        return
    file.touch(mode=0o600)  # Only the owner may read the file, since it may contain passwords of extenders.
    file.write_text(f"{text}\n")


def _client(configuration: SchedulerConfiguration, master: str | None, requests: RestClientMetrics) -> Client:
    from kschedfw_kubernetes.cluster import connect

    connection = configuration.client_connection
    if not (connection.kubeconfig or master or os.environ.get("KUBERNETES_SERVICE_HOST")):
        raise UsageError(
            "no API server is known: this is not a pod, so give clientConnection.kubeconfig, --kubeconfig or --master"
        )
    return connect(
        connection.kubeconfig or None,
        master=master,
        qps=connection.qps,
        burst=connection.burst,
        user_agent="kschedfw-scheduler",
        metrics=requests,
    )


def _reviewer(client: Client, kubeconfig: Path | None, requests: RestClientMetrics) -> Client:
    """Return a client for access reviews, which bypasses the scheduler's rate limit and the fence of its lease."""
    if kubeconfig is None:
        return client.with_own_rate(_REVIEW_QPS, _REVIEW_BURST, is_fenced=False)
    from kschedfw_kubernetes.cluster import Client
    from kschedfw_kubernetes.cluster.kubeconfig import load_connection

    return Client(
        load_connection(kubeconfig),
        qps=_REVIEW_QPS,
        burst=_REVIEW_BURST,
        user_agent="kschedfw-scheduler",
        metrics=requests,
    )


def _access(authentication: Client, authorization: Client) -> Access:
    from kschedfw_kubernetes.serve.access import Access

    return Access(
        partial(authentication.write, "POST"),
        partial(authorization.write, "POST"),
        authentication.clock.monotonic,
    )


def _authentication_data(authentication: Client) -> Mapping[str, str]:
    """Return the data of the ConfigMap that has the client CAs."""
    from kschedfw_kubernetes.serve.client_certificates import CONFIG_MAP

    return authentication.get_once(CONFIG_MAP, _LOOK_UP_SECONDS).get("data") or {}


def _end(code: int) -> NoReturn:
    """End the process without waiting for plugins or binding cycles that have exceeded their timeouts."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)
