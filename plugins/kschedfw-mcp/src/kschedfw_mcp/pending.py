"""Answers to agents about `kschedfw pending`: a summary of all workloads, or everything about one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kschedfw_mcp.questions import QuestionError

_BESIDE: Final = ("preempted", "elsewhere", "disagreements", "notCreated", "stuck", "missing", "notes")
"""Fields beside the pending pods."""
_NAMED: Final = 10


def summaries_of(content: Any, *, namespace: str, workload: str) -> dict[str, Any]:
    """Return each kind of pending pods with why, and its first remedy without edits.

    Raises:
        QuestionError: no pending pods are of this namespace or workload.
    """
    kinds = [
        (reasons, kind)
        for reasons, kind in _kinds(content)
        if (not namespace or _namespace(kind) == namespace) and (not workload or _is_called(kind, workload))
    ]
    if not kinds and (namespace or workload):
        raise QuestionError(f"no pending pods of {workload or namespace}; {_there_is(content)}")
    is_all = not (namespace or workload)
    beside = {key: content[key] for key in _BESIDE if content.get(key)} if is_all else {}
    return {
        "pending": sum(len(kind["pods"]) for _, kind in kinds),
        "kinds": [_summary(reasons, kind) for reasons, kind in kinds],
        **beside,
    }


def kinds_of(content: Any, name: str) -> dict[str, Any]:
    """Return everything about the kinds of pending pods of a workload, or about the kind of a pod.

    Raises:
        QuestionError: no pending pods are of this name.
    """
    kinds = [{"reasons": reasons, **kind} for reasons, kind in _kinds(content) if _is_called(kind, name)]
    if not kinds:
        raise QuestionError(f"no pending pods of {name}; {_there_is(content)}")
    return {"kinds": kinds}


def _kinds(content: Any) -> Iterator[tuple[list[str], dict[str, Any]]]:
    for group in content["groups"]:
        for kind in group["kinds"]:
            yield group["reasons"], kind


def _summary(reasons: list[str], kind: dict[str, Any]) -> dict[str, Any]:
    # Whatever else the command says of a kind, such as its codes, is told, too.
    rest = {key: value for key, value in kind.items() if key not in ("helps", "pods", "message", "recorded")}
    first = kind["helps"][0] if kind["helps"] else None
    remedy = (
        None
        if first is None
        else {key: value for key, value in first.items() if key not in ("edits", "nodes")}
    )
    return {
        **rest,
        "reasons": reasons,
        "pods": len(kind["pods"]),
        "firstPod": kind["pods"][0],
        "firstRemedy": remedy,
        "otherRemedies": max(len(kind["helps"]) - 1, 0),
    }


def _namespace(kind: dict[str, Any]) -> str:
    return str(kind["pods"][0].partition("/")[0])


def _is_called(kind: dict[str, Any], name: str) -> bool:
    """Return whether the kind is of this workload (`Deployment shop/web`, `shop/web`, `web`), or has such a pod."""
    workload = kind["workload"] or ""
    key = workload.rpartition(" ")[2]
    names = {workload, key, key.partition("/")[2]} - {""}
    if name in names:
        return True
    return any(name in (pod, pod.partition("/")[2]) for pod in kind["pods"])


def _there_is(content: Any) -> str:
    names = list(dict.fromkeys(kind["workload"] or kind["pods"][0] for _, kind in _kinds(content)))
    if not names:
        return "no pod is pending without a place"
    rest = len(names) - _NAMED
    return f"pending are {', '.join(names[:_NAMED])}{f' and {rest} more' if rest > 0 else ''}"
