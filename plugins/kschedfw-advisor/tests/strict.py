"""Two exports with forty planted problems each (`FILES`), judged by whole sentences.

A problem is answered exactly if the first advice is the sentence that was written down before. It is answered rightly
also by a sentence that was written down as another one that helps. `python -m strict` prints the problems with the
first advice.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import attrs
import yaml
from blind import Manifest, Problem, as_list, cluster_of, make_node, objects_of, placed_pod, storage
from edits import edited
from kschedfw_advisor.cli.pending_output import to_json
from kschedfw_advisor.cli.what_if_output import Background
from kschedfw_advisor.pending import explain_pending
from kschedfw_advisor.reports import Reports

from kschedfw import WhatIf
from kschedfw.api import parse_manifests

FILES: Final = ("strict_problems.yaml", "fresh_problems.yaml")


@attrs.frozen
class Answer:
    """A problem, the sentence that answers it, and patterns of other whole sentences that help as well."""

    problem: Problem
    advice: str
    others: tuple[str, ...]

    def is_exact(self, first: str) -> bool:
        """Return whether the first advice is the sentence, word by word."""
        return first == self.advice

    def is_right(self, first: str) -> bool:
        """Return whether the first advice is the sentence, or another one that helps."""
        return self.is_exact(first) or any(re.fullmatch(other, first) for other in self.others)


class Yardstick:
    """An export of a file, and what `kschedfw pending --json` says of it."""

    def __init__(self, file: str) -> None:
        self.given: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name(file).read_text("utf-8"))
        self.answers = tuple(
            Answer(
                Problem(each["name"], "", "", each.get("kind", "Deployment"), each),
                each["advice"],
                tuple(each.get("or", ())),
            )
            for each in self.given["problems"]
        )

    def export(self) -> list[Manifest]:
        """Return the objects of the cluster, with those of all problems."""
        objects = [*self._nodes(), *self._running(), *self.given.get("objects", storage())]
        for answer in self.answers:
            objects += objects_of(answer.problem)
        return objects

    def _nodes(self) -> Iterator[Manifest]:
        for each in self.given["nodes"]:
            taints = [each["taint"]] if "taint" in each else []
            for name in each["names"]:
                yield make_node(
                    name,
                    "",
                    each["labels"],
                    each.get("offers"),
                    *taints,
                    cordoned=each.get("cordoned", False),
                )

    def _running(self) -> Iterator[Manifest]:
        for each in self.given["running"]:
            for node in each["nodes"]:
                kind = each.get("kind", "ReplicaSet")
                pod = placed_pod(each["app"], node, each["requests"], kind, port=each.get("port", 0))
                if "ends" in each:
                    pod["metadata"]["deletionTimestamp"] = each["ends"]
                pod["metadata"]["namespace"] = each.get("namespace", "shop")
                yield pod

    @cached_property
    def told(self) -> Mapping[str, Any]:
        """The answer of `kschedfw pending --json` for the export."""
        found = parse_manifests(as_list(self.export()))
        reports = Reports(found.admission.refused, found.without_pods, found.workloads, found.warning_events)
        return to_json(explain_pending(WhatIf(found), reports=reports), Background([]))

    def kind_of(self, problem: Problem) -> Mapping[str, Any] | None:
        """Return the pods of the problem in the answer; None if none is pending."""
        kinds = (kind for group in self.told["groups"] for kind in group["kinds"])
        return next((kind for kind in kinds if str(kind["workload"]).endswith(f"/{problem.name}")), None)

    def first_advice(self, problem: Problem) -> str:
        """Return the first remedy of the problem's workload, else the first finding about it; else an empty text."""
        kind = self.kind_of(problem)
        if kind is not None:
            helps = [", and ".join(remedy["changes"]) for remedy in kind["helps"]]
            return next(iter([*helps, *(str(each["text"]) for each in kind["findings"])]), "")
        for part in ("notCreated", "stuck", "idle"):
            for each in self.told[part]:
                if str(each["workload"]).endswith(f"/{problem.name}"):
                    return str(each["finding"]["text"])
        return ""

    def placed_after_first(self, problem: Problem) -> tuple[int, int] | None:
        """Return how many pods the first remedy says that it places, and how many a scheduler that starts with it does.

        None for a problem without a remedy.
        """
        kind = self.kind_of(problem)
        if kind is None or not kind["helps"]:
            return None
        remedy = kind["helps"][0]
        objects = edited(self.export(), remedy["edits"], kind["pods"])
        if remedy["actions"][0]["code"] == "await-ends":
            objects = [each for each in objects if "deletionTimestamp" not in each["metadata"]]
        cluster = cluster_of(objects)
        with cluster.transaction() as trial:
            wanted = [pod for pod in cluster.pending if pod.key in kind["pods"]]
            preempts = remedy["actions"][0]["code"] in {"prioritise", "may-preempt"}
            return remedy["placed"], len(trial.schedule(wanted, preempt=preempts).placed)


@cache
def yardstick_of(file: str) -> Yardstick:
    """Return the yardstick of a file, whose answer takes a second."""
    return Yardstick(file)


def main() -> None:
    """Print each problem with the first advice: exact, right or wrong."""
    for file in FILES:
        yardstick = Yardstick(file)
        count = {"exact": 0, "right": 0, "WRONG": 0}
        for each in yardstick.answers:
            first = yardstick.first_advice(each.problem)
            verdict = "exact" if each.is_exact(first) else "right" if each.is_right(first) else "WRONG"
            count[verdict] += 1
            placed = yardstick.placed_after_first(each.problem)
            sys.stdout.write(f"{each.problem.name:<10}{verdict:<7}{placed!s:<9}{first}\n")
        sys.stdout.write(f"{file}: {count}\n")


if __name__ == "__main__":
    main()
