"""The chart's alerts and dashboard: when alerts fire, that `run` exports what is asked for, and a runbook for each."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from kschedfw_apiserver import ApiServer
from serve.replicas import Replica, add_nodes, add_pod

from kschedfw.testing.waiting import PATIENCE

REPOSITORY = Path(__file__).parents[2]
CHART = REPOSITORY / "deploy" / "charts" / "kschedfw"
ALERTS = CHART / "alerts.yaml"
GROUPS: list[dict[str, Any]] = yaml.safe_load(ALERTS.read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
NAMES = {rule["alert"] for rule in RULES if "alert" in rule}
DASHBOARD: dict[str, Any] = json.loads((CHART / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
RUNBOOKS = REPOSITORY / "docs" / "runbooks"
PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="NOT TESTED: there is no promtool (Debian: prometheus), so no alert is evaluated"
)

# Nothing is wrong: a pod a second, bound within 10 ms, on two replicas of which one leads.
HEALTHY: dict[str, str] = {
    'up{job="kschedfw",instance="a"}': "1+0",
    'leader_election_master_status{job="kschedfw",instance="a",name="kschedfw"}': "1+0",
    'leader_election_master_status{job="kschedfw",instance="b",name="kschedfw"}': "0+0",
    'kubernetes_healthcheck{job="kschedfw",instance="a",type="livez",name="scheduling-loop"}': "1+0",
    'kubernetes_healthcheck{job="kschedfw",instance="a",type="readyz",name="informer-sync"}': "1+0",
    'process_start_time_seconds{job="kschedfw",instance="a"}': "1000+0",
    'scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kschedfw",attempts="1",le="0.01"}': "0+60",
    'scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kschedfw",attempts="1",le="5.12"}': "0+60",
    'scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kschedfw",attempts="1",le="40.96"}': "0+60",
    'scheduler_pod_scheduling_sli_duration_seconds_bucket{job="kschedfw",attempts="1",le="+Inf"}': "0+60",
    'scheduler_pod_scheduling_sli_duration_seconds_count{job="kschedfw",attempts="1"}': "0+60",
    'scheduler_schedule_attempts_total{job="kschedfw",result="scheduled",profile="p"}': "0+60",
    'scheduler_pending_pods{job="kschedfw",instance="a",queue="active"}': "3+0",
    'scheduler_pending_pods{job="kschedfw",instance="a",queue="backoff"}': "5+0",
    'scheduler_pending_pods{job="kschedfw",instance="a",queue="unschedulable"}': "0+0",
    'scheduler_pending_pods{job="kschedfw",instance="a",queue="gated"}': "0+0",
    'scheduler_pod_scheduled_after_flush_total{job="kschedfw",instance="a"}': "0+0",
    'kschedfw_claims_total{job="kschedfw",instance="a"}': "0+60",
    'kschedfw_claim_conflicts_total{job="kschedfw",instance="a",reason="room"}': "0+1",
    'kschedfw_unreadable_objects{job="kschedfw",instance="a",kind="pods"}': "0+0",
    'rest_client_requests_total{job="kschedfw",instance="a",code="200",method="GET",host="h"}': "0+600",
    'rest_client_rate_limiter_duration_seconds_bucket{job="kschedfw",verb="POST",host="h",le="0.005"}': "0+60",
    'rest_client_rate_limiter_duration_seconds_bucket{job="kschedfw",verb="POST",host="h",le="2"}': "0+60",
    'rest_client_rate_limiter_duration_seconds_bucket{job="kschedfw",verb="POST",host="h",le="+Inf"}': "0+60",
}


@attrs.frozen
class Case:
    """Series that differ from `HEALTHY`, by a beginning of theirs, and which alerts fire when."""

    name: str
    differing: Mapping[str, str]
    firing: frozenset[tuple[str, str]] = frozenset()
    """Names and severities."""
    at: int = 20
    """Minutes after the beginning."""

    @property
    def series(self) -> dict[str, str]:
        found = dict(HEALTHY)
        for beginning, values in self.differing.items():
            same = [each for each in HEALTHY if each.startswith(beginning)]
            found |= dict.fromkeys(same or [beginning], values)
        return {each: values for each, values in found.items() if values}


def fires(name: str, severity: str = "warning") -> frozenset[tuple[str, str]]:
    return frozenset({(name, severity)})


LATE = "scheduler_pod_scheduling_sli_duration_seconds_bucket"
IN_TIME = (
    f'{LATE}{{job="kschedfw",attempts="1",le="0.01"}}',
    f'{LATE}{{job="kschedfw",attempts="1",le="5.12"}}',
)
ERRORS = 'scheduler_schedule_attempts_total{job="kschedfw",result="error",profile="p"}'
QUEUE = 'scheduler_pending_pods{job="kschedfw",instance="a",queue='
ANSWERS = 'rest_client_requests_total{job="kschedfw",instance="a",code='
CASES = [
    Case("nothing fires while all is well", {}, at=26 * 60),
    Case(
        "another scheduler's metrics don't count",
        {'leader_election_master_status{job="kube-scheduler",name="kube-scheduler"}': "0+0"},
    ),
    Case("no replica answers", {"up": "0+0"}, fires("KschedfwDown", "critical")),
    Case("no replica is known to Prometheus", {"up": ""}, fires("KschedfwDown", "critical")),
    Case(
        "nobody leads",
        {'leader_election_master_status{job="kschedfw",instance="a"': "0+0"},
        fires("KschedfwNoLeader", "critical"),
    ),
    Case("active schedulers have no leader", {"leader_election_master_status": ""}),
    Case(
        "the loop hangs",
        {'kubernetes_healthcheck{job="kschedfw",instance="a",type="livez"': "0+0"},
        fires("KschedfwLoopHangs", "critical"),
    ),
    Case(
        "a kind can't be listed",
        {'kubernetes_healthcheck{job="kschedfw",instance="a",type="readyz"': "0+0"},
        fires("KschedfwNotReady"),
    ),
    Case(
        "a replica isn't ready for a moment",
        {'kubernetes_healthcheck{job="kschedfw",instance="a",type="readyz"': "1x10 0x2 1x30"},
        at=13,
    ),
    Case(
        "three starts in an hour",
        {"process_start_time_seconds": "1x9 2x9 3x9 4x30"},
        fires("KschedfwRestarts"),
        40,
    ),
    Case("two starts in an hour", {"process_start_time_seconds": "1x9 2x9 3x30"}, at=40),
    Case(
        "a twentieth of the pods is late",
        dict.fromkeys(IN_TIME, "0+57"),
        fires("KschedfwPodsSlow"),
        40,
    ),
    Case(
        "a tenth of the pods is late for hours",
        dict.fromkeys(IN_TIME, "0+54"),
        fires("KschedfwPodsSlow") | fires("KschedfwBindingBudgetBurns"),
        7 * 60,
    ),
    Case(
        "a fifth of the pods is late",
        dict.fromkeys(IN_TIME, "0+48"),
        fires("KschedfwPodsSlow")
        | fires("KschedfwBindingBudgetBurns")
        | fires("KschedfwBindingBudgetBurns", "critical"),
        2 * 60,
    ),
    Case("a thousandth of the attempts fails", {ERRORS: "0+0.06"}, at=7 * 60),
    Case("a hundredth of the attempts fails", {ERRORS: "0+0.6"}, fires("KschedfwErrorBudgetBurns"), 7 * 60),
    Case(
        "a twentieth of the attempts fails",
        {ERRORS: "0+3"},
        fires("KschedfwErrorBudgetBurns") | fires("KschedfwErrorBudgetBurns", "critical"),
        2 * 60,
    ),
    Case("many pods are ready to be tried", {f'{QUEUE}"active"': "500+0"}, fires("KschedfwQueueGrows")),
    Case("many pods wait for their backoff", {f'{QUEUE}"backoff"': "500+0"}, fires("KschedfwQueueGrows")),
    Case("a burst of pods is worked off", {f'{QUEUE}"active"': "0x5 500x10 0x30"}, at=14),
    Case(
        "a pod fits nowhere for an hour",
        {f'{QUEUE}"unschedulable"': "1+0"},
        fires("KschedfwPodsUnschedulable", "info"),
        61,
    ),
    Case("a pod fits nowhere for half an hour", {f'{QUEUE}"unschedulable"': "1+0"}, at=30),
    Case("a pod is gated for a day", {f'{QUEUE}"gated"': "1+0"}, fires("KschedfwPodsGated", "info"), 25 * 60),
    Case(
        "pods are placed by trying again",
        {"scheduler_pod_scheduled_after_flush_total": "0+1"},
        fires("KschedfwMissedEvents"),
    ),
    Case(
        "a third of the claims meets a conflict",
        {"kschedfw_claim_conflicts_total": "0+20"},
        fires("KschedfwClaimConflicts"),
        40,
    ),
    Case(
        "an object can't be read",
        {"kschedfw_unreadable_objects": "1+0"},
        fires("KschedfwUnreadableObjects"),
    ),
    Case(
        "a tenth of the requests meets a server error",
        {f'{ANSWERS}"503",method="GET",host="h"}}': "0+66"},
        fires("KschedfwServerErrors"),
    ),
    Case(
        "a tenth of the requests gets no answer",
        {f'{ANSWERS}"<error>",method="GET",host="h"}}': "0+66"},
        fires("KschedfwServerErrors"),
    ),
    Case(
        "the API server throttles",
        {f'{ANSWERS}"429",method="GET",host="h"}}': "0+12"},
        fires("KschedfwThrottled"),
    ),
    Case(
        "requests wait for the own rate limit",
        {
            'rest_client_rate_limiter_duration_seconds_bucket{job="kschedfw",verb="POST",host="h",le="0.005"}': "0+3"
        },
        fires("KschedfwRateLimited"),
    ),
]


def promtool(*arguments: str) -> str:
    assert PROMTOOL is not None
    command = [PROMTOOL, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
@pytest.mark.nightly  # CI's job of the chart runs it, too
@pytest.mark.slow
class TestPromtool:
    def test_it_finds_no_fault_in_the_rules(self) -> None:
        assert f"SUCCESS: {len(RULES)} rules found" in promtool("check", "rules", str(ALERTS))

    def test_these_alerts_fire_and_no_others(self, tmp_path: Path) -> None:
        """All cases in one process: to start takes promtool longer than most of them."""
        files = [self._file(case, tmp_path / f"{index}.yaml") for index, case in enumerate(CASES)]
        said = promtool("test", "rules", *map(str, files))
        assert said.count("SUCCESS") == len(CASES), said

    def _file(self, case: Case, file: Path) -> Path:
        # A day of minutes takes promtool four seconds. The shortest rates are over five minutes.
        step = 1 if case.at < 60 else 2 if case.at < 10 * 60 else 15
        expected = [
            {"labels": f'{{alertname="{name}", severity="{severity}"}}', "value": 1}
            for name, severity in case.firing
        ]
        series = [
            # A constant and a straight line go on for all the time; what has steps says itself for how long.
            {"series": each, "values": values if "x" in values else f"{values}x{case.at // step}"}
            for each, values in case.series.items()
        ]
        firing = {
            "expr": 'max by (alertname, severity) (ALERTS{alertstate="firing"})',
            "eval_time": f"{case.at}m",
            "exp_samples": expected,
        }
        tested = {
            "name": case.name,
            "interval": f"{step}m",
            "input_series": series,
            "promql_expr_test": [firing],
        }
        interval = {"evaluation_interval": f"{step}m"}
        file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], **interval, "tests": [tested]}))
        return file


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    assert {name for case in CASES for name, _ in case.firing} == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_an_alert_has_a_runbook_that_says_what_it_means_what_to_look_at_and_what_to_do(name: str) -> None:
    rules = [rule for rule in RULES if rule.get("alert") == name]
    assert {rule["annotations"]["runbook_url"] for rule in rules} == {f"runbooks/{name}.html"}
    lines = (RUNBOOKS / f"{name}.md").read_text().splitlines()
    assert lines[0] == f"# {name}"
    headings = [line for line in lines if line.startswith("## ")]
    assert headings == ["## What it means", "## What to look at", "## What to do"]
    page = (REPOSITORY / "docs" / "alerts.md").read_text()
    severities = " and ".join(rule["labels"]["severity"] for rule in rules)
    assert f"| [{name}](runbooks/{name}.md) | {severities} |" in page


def test_no_runbook_is_left_from_an_alert_that_is_gone() -> None:
    assert {each.stem for each in RUNBOOKS.glob("*.md")} == NAMES


def test_panels_have_a_title_a_unit_and_a_sentence_each() -> None:
    for panel in PANELS:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
    identities = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(identities) == len(set(identities))
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in DASHBOARD["panels"]}
    assert len(places) == len(DASHBOARD["panels"])


QUERIES = [(rule.get("alert") or rule["record"], rule["expr"]) for rule in RULES]
QUERIES += [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]
QUERIES += [("the list of schedulers", DASHBOARD["templating"]["list"][1]["query"]["query"])]


@attrs.frozen
class Selected:
    """A metric in a query with the labels that its selector names."""

    name: str
    labels: frozenset[str]


def selected(query: str) -> Iterator[Selected]:
    for name, inside in re.findall(r"\b([a-z_]+)\{(.*?)\}", query):
        yield Selected(name, frozenset(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", inside)) - {"job"})


@pytest.mark.parametrize(
    ("where", "query"), QUERIES, ids=[f"{index} {name}" for index, (name, _) in enumerate(QUERIES)]
)
def test_a_query_is_about_this_scheduler_alone(where: str, query: str) -> None:
    # Recorded ratios have a colon in their names, and are about this scheduler by their own queries.
    names = re.findall(
        r"\b(?:up\b|(?:scheduler|rest_client|kubernetes|process|leader_election|kschedfw)_)[a-z_]*", query
    )
    assert names == [each.name for each in selected(query)]
    if where == "the list of schedulers":
        assert '{git_version=~".*kschedfw.*"}' in query
    else:
        jobs = re.findall(r'job="(\S*?)"', query)
        assert len(jobs) == len(names)
        assert set(jobs) <= {"kschedfw", "$job"}
        assert names or any(each in query for each in RECORDED)


def schedule_until_all_was_recorded(server: ApiServer, replica: Replica) -> None:
    """Let it place and refuse pods until series with labels have values, and ask for its health."""
    numbers = itertools.count()

    def recorded() -> bool:
        add_pod(server, f"{replica.name}-{next(numbers)}")
        text = replica.get("/metrics", replica.token).text
        # Single plugins are timed in a sample of the cycles.
        return (
            'result="unschedulable"' in text and "scheduler_plugin_execution_duration_seconds_bucket" in text
        )

    replica.wait_for(recorded)
    assert replica.get("/readyz").status == 200
    assert replica.get("/livez").status == 200


@pytest.mark.slow
def test_run_exports_every_metric_and_label_that_is_asked_for(tmp_path: Path) -> None:
    with ApiServer() as server:
        add_nodes(server)
        add_pod(server, "too-large", cpu="100")
        exposed = ""
        # With a leader, then with claims: a process has either.
        for name, arguments in (("leader", ()), ("active", ("--shared-state",))):
            with Replica(server, tmp_path, name, *arguments) as replica:
                schedule_until_all_was_recorded(server, replica)
                for path in ("/metrics", "/metrics/slis"):
                    exposed += replica.get(path, replica.token).text
    samples: dict[str, set[frozenset[str]]] = {}
    for metric, labels in re.findall(r"^(\w+)(?:\{(.*)\})? \S+$", exposed, re.MULTILINE):
        samples.setdefault(metric, set()).add(frozenset(re.findall(r'(\w+)="', labels)))
    asked = {each for _, query in QUERIES for each in selected(query) if each.name != "up"}
    assert len(asked) > 25
    missing = [
        each for each in asked if not any(each.labels <= labels for labels in samples.get(each.name, ()))
    ]
    assert missing == []
    grouped = {
        label for _, query in QUERIES for by in re.findall(r"by \((.*?)\)", query) for label in by.split(", ")
    }
    assert grouped - {"instance"} <= {
        label for sets in samples.values() for labels in sets for label in labels
    }
    # Else the objective's ratio would be empty.
    assert 'scheduler_pod_scheduling_sli_duration_seconds_bucket{attempts="1",le="5.12"}' in exposed
