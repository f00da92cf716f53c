"""`/statusz` and `/flagz` (Kubernetes `k8s.io/apiserver/pkg/server/statusz` and `flagz`).

Text is for people. Programs request `application/json` or `application/yaml`, with the parameters
`;g=config.k8s.io;v=v1beta1;as=Statusz` (or `Flagz`). As in Kubernetes, the answer is 406 without these parameters and
for other types.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import attrs
import yaml

from kschedfw_kubernetes.serve.build_info import EMULATED, NAME, interpreter, own_version
from kschedfw_kubernetes.web.asgi import PLAIN_TEXT, Asked, Response, status_response

_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_DEPRECATED: Final = "v1alpha1"
_JSON, _YAML, _TEXT = "application/json", "application/yaml", "text/plain"
_TYPES: Final = (_JSON, _YAML, _TEXT)
"""The media types in Kubernetes' order of preference."""

_HEADER: Final = """
{name} {page}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for \
debugging purposes only.
"""


@attrs.frozen
class _Chosen:
    """A media type. `version` is that of the object; it is empty for text."""

    media_type: str
    version: str = ""


@attrs.frozen
class Status:
    """The contents of `/statusz`. `started` and `now` are seconds since the epoch; `notes` are further lines of its
    text."""

    started: float
    now: float
    paths: tuple[str, ...]
    notes: Mapping[str, str]

    @property
    def uptime(self) -> int:
        """Return the whole seconds since the start."""
        return max(0, int(self.now - self.started))


def statusz(asked: Asked, status: Status) -> Response:
    """Return the answer to a request for `/statusz`."""

    def fields() -> Mapping[str, Any]:
        return {
            "startTime": f"{datetime.fromtimestamp(int(status.started), UTC):%Y-%m-%dT%H:%M:%SZ}",
            "uptimeSeconds": status.uptime,
            "goVersion": "",
            "binaryVersion": own_version(),
            "emulationVersion": EMULATED,
            "paths": list(_folders(status.paths)),
        }

    return _answer(asked, "statusz", lambda: _status_text(status), fields)


def flagz(asked: Asked, flags: Mapping[str, str]) -> Response:
    """Return the answer to a request for `/flagz`; `flags` have no `--`."""

    def text() -> str:
        return "".join(f"{name}={value}\n" for name, value in sorted(flags.items()))

    return _answer(asked, "flagz", text, lambda: {"flags": dict(sorted(flags.items()))})


def _status_text(status: Status) -> str:
    minutes, seconds = divmod(status.uptime, 60)
    hours, minutes = divmod(minutes, 60)
    # Go's time.UnixDate, in local time as in Kubernetes.
    started = time.strftime("%a %b %e %H:%M:%S %Z %Y", time.localtime(status.started))
    facts = {
        "Started": started,
        "Up": f"{hours} hr {minutes:02d} min {seconds:02d} sec",
        "Python version": interpreter(),
        "Binary version": own_version(),
        "Emulation version": EMULATED,
        "Paths": " ".join(_folders(status.paths)),
        **status.notes,
    }
    return "".join(["\n", *(f"{name}: {value}\n" for name, value in facts.items())])


def _folders(paths: Iterable[str]) -> Iterator[str]:
    """Yield the first part of each path, sorted: `/metrics` also stands for the paths below it."""
    yield from sorted({f"/{path.split('/')[1]}" for path in paths})


def _answer(
    asked: Asked, page: str, text: Callable[[], str], fields: Callable[[], Mapping[str, Any]]
) -> Response:
    kind = page.capitalize()
    chosen = _Chosen(_TEXT) if not asked.accept.strip() else _negotiated(asked.accept, kind)
    if chosen is None:
        accepted = ", ".join(_TYPES)
        message = f"only the following media types are accepted: {accepted}"
        return status_response(406, "NotAcceptable", message)
    if chosen.media_type == _TEXT:
        return Response(200, (_HEADER.format(name=NAME, page=page) + text()).encode(), PLAIN_TEXT)
    content = {
        "kind": kind,
        "apiVersion": f"{_GROUP}/{chosen.version}",
        "metadata": {"name": NAME},
        **fields(),
    }
    warning = f'299 - "This version of the {page} endpoint is deprecated. Please use a newer version."'
    headers = ((b"warning", warning.encode()),) if chosen.version == _DEPRECATED else ()
    if chosen.media_type == _JSON:
        body = f"{json.dumps(content, separators=(',', ':'), ensure_ascii=False)}\n"
    else:
        body = yaml.safe_dump(content, allow_unicode=True)
    return Response(200, body.encode(), chosen.media_type, headers)


def _negotiated(accept: str, kind: str) -> _Chosen | None:
    """Return the best acceptable media type by the Accept header; None if none is acceptable."""
    clauses = sorted(_clauses(accept), key=lambda clause: -clause[0])
    for _, media_type, parameters in clauses:
        target = {name: parameters[name] for name in ("g", "v", "as") if name in parameters}
        wanted = target.get("g") == _GROUP and target.get("v") in _VERSIONS and target.get("as") == kind
        for offered in _TYPES:
            main = offered.partition("/")[0]
            if media_type not in ("*/*", f"{main}/*", offered):
                continue
            if offered == _TEXT and not target:
                return _Chosen(_TEXT)
            if offered != _TEXT and wanted:
                return _Chosen(offered, target["v"])
    return None


def _clauses(accept: str) -> Iterator[tuple[float, str, Mapping[str, str]]]:
    """Yield quality, media type and parameters of each clause."""
    for clause in accept.split(","):
        media_type, *given = (part.strip() for part in clause.split(";"))
        parameters = dict(_parameter(each) for each in given)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        yield quality, media_type.lower(), parameters


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip().lower(), value.strip().strip('"')
