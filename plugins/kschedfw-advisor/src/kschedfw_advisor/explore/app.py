"""The ASGI application behind the page: a typed JSON interface to a workbench, and the page's files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from functools import partial
from importlib.resources import files
from time import monotonic
from typing import Annotated, Final, TypeAlias, TypeVar

import msgspec
import yaml
from kschedfw_lab.pages import STYLES, asset, decision_matrix, environment, group_matrix
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from kschedfw import KschedfwError
from kschedfw.api import to_manifest
from kschedfw_advisor.explore.advice import advice_of, emptied_of
from kschedfw_advisor.explore.changes import Change
from kschedfw_advisor.explore.follow import Follower, Reading
from kschedfw_advisor.explore.simulations import Asked, Simulations
from kschedfw_advisor.explore.state import state_of
from kschedfw_advisor.explore.work import CancelledError, Job
from kschedfw_advisor.explore.workbench import Workbench
from kschedfw_advisor.reports import NO_REPORTS, Reports

MOST_BYTES: Final = 4 << 20
"""The largest body of a request, in bytes."""
READ_SECONDS: Final = 10.0
"""Seconds that receiving a request's body may take."""
MOST_WAITING: Final = 16
"""The most requests that may wait or be worked on; further ones are refused."""
SIMULATION_SECONDS: Final = 120.0
"""Seconds that simulations may take together. After that they end early, and the page says so."""

MODULES: Final = (
    "address.js",
    "answer.js",
    "cards.js",
    "chart.js",
    "cluster.js",
    "columns.js",
    "decision.js",
    "dom.js",
    "explore.js",
    "format.js",
    "forms.js",
    "group.js",
    "keys.js",
    "map_layout.js",
    "map_marks.js",
    "map_view.js",
    "matrix.js",
    "news.js",
    "node_actions.js",
    "node_map.js",
    "pod_groups.js",
    "replay.js",
    "run.js",
    "search.js",
    "server.js",
    "splitter.js",
    "time_panel.js",
    "tried.js",
    "what_if.js",
    "windowed.js",
)
"""The modules of the page."""

ICON: Final = "icon.svg"

PAGE_STYLES: Final = (*STYLES, "what_if.css")
"""The style sheets of the page, in their order."""

_LOG = logging.getLogger("kschedfw.advisor.explore")

Some: TypeAlias = Annotated[tuple[Change, ...], msgspec.Meta(max_length=1000)]
BodyT = TypeVar("BodyT", bound=msgspec.Struct)


class Changes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    changes: Some = ()


class AskedPod(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pod: str
    changes: Some = ()


class AskedGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    group: str
    changes: Some = ()


class AskedNode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    node: str
    changes: Some = ()


class News(msgspec.Struct, frozen=True):
    """The state of the server: which reading of the cluster it has, what it works on, and what went wrong."""

    revision: int
    work: Job | None
    problem: str


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The empty body of requests whose address says everything."""


class _RefusedError(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ExploreApp:
    """The page of a workbench, for whoever can reach it; see `Guarded`.

    | request | answer |
    | --- | --- |
    | `GET /` | the page |
    | `GET /static/NAME` | its style sheets and modules |
    | `GET /api/state` | State: the cluster after the kept changes |
    | `POST /api/try` Changes | State: with these changes, too, and what moves |
    | `POST /api/keep` Changes, `POST /api/undo`, `POST /api/redo` | State |
    | `POST /api/explain` AskedPod | DecisionMatrix |
    | `POST /api/explain-group` AskedGroup | GroupMatrix |
    | `POST /api/advice` Changes | Advice: why pods wait, and what would help them; null if cancelled |
    | `POST /api/emptied` AskedNode | Emptied |
    | `GET /api/news` | News, at once, whatever is worked on |
    | `POST /api/cancel` | the same; ends what is worked on |
    | `GET /api/configurations` | labels for `Asked.runs` |
    | `POST /api/replay` Asked | Replay |
    | `GET /api/configuration.yaml`, `GET /api/manifests.yaml` | the result, to be downloaded |

    A request that can't be fulfilled gets a status other than 200 and one line of text. Requests are worked on one at a
    time, on a thread of the application's own. `what` is the title of the page: what is explored. `notes` and
    `reports` are of the reading of the cluster; the answer has them.
    """

    def __init__(
        self,
        bench: Workbench,
        simulations: Simulations,
        what: str,
        notes: Sequence[str] = (),
        reports: Reports = NO_REPORTS,
    ) -> None:
        self._bench = bench
        self._notes, self._reports = notes, reports
        self._simulations = simulations
        self._work = bench.work
        self._follower: Follower | None = None
        self._problem = ""
        self._page = (
            environment("kschedfw_advisor.explore")
            .get_template("explore.html")
            .render(what=what, styles=PAGE_STYLES, modules=MODULES)
        )
        # One thread, since the workbench isn't thread-safe.
        self._executor = ThreadPoolExecutor(1, "kschedfw-explore")
        self._waiting = 0
        self._closed = False
        self.asgi = Starlette(
            routes=[
                Route("/", self._index),
                Route("/static/{name}", self._static),
                Route("/api/state", self._state),
                Route("/api/try", self._asking(Changes, self._try), methods=["POST"]),
                Route("/api/keep", self._asking(Changes, self._keep), methods=["POST"]),
                Route("/api/undo", self._asking(Nothing, self._undo), methods=["POST"]),
                Route("/api/redo", self._asking(Nothing, self._redo), methods=["POST"]),
                Route("/api/explain", self._asking(AskedPod, self._explain), methods=["POST"]),
                Route("/api/explain-group", self._asking(AskedGroup, self._explain_group), methods=["POST"]),
                Route("/api/advice", self._asking(Changes, self._advice), methods=["POST"]),
                Route("/api/emptied", self._asking(AskedNode, self._emptied), methods=["POST"]),
                Route("/api/news", self._news),
                Route("/api/cancel", self._cancel, methods=["POST"]),
                Route("/api/replay", self._asking(Asked, self._replay), methods=["POST"]),
                Route("/api/configurations", self._configurations),
                Route("/api/configuration.yaml", self._configuration),
                Route("/api/manifests.yaml", self._manifests),
            ],
            middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)],
            lifespan=self._lifespan,
        )

    def follow(self, read: Callable[[], Reading], first: Reading, seconds: float) -> None:
        """Read the cluster every so many seconds while the application runs, and show it as it is then."""
        self._follower = Follower(read, self._take, self._tell, first, seconds)

    def _take(self, reading: Reading) -> None:
        # On the application's thread, between two requests. The follower's thread waits.
        self._executor.submit(self._replace, reading).result()

    def _replace(self, reading: Reading) -> None:
        self._bench.replace(reading.cluster)
        self._reports = reading.reports

    def _tell(self, problem: str) -> None:
        self._problem = problem

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        if self._follower is not None:
            self._follower.start()
        yield
        self._closed = True
        if self._follower is not None:
            self._follower.end()
        self._executor.shutdown(cancel_futures=True)
        self._bench.close()

    # --- the page ---

    async def _index(self, _: Request) -> Response:
        return Response(self._page, media_type="text/html")

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name in MODULES:
            return Response(page_file(name), media_type="text/javascript")
        if name == ICON:
            return Response(page_file(name), media_type="image/svg+xml")
        if name in PAGE_STYLES:
            return Response(page_file(name), media_type="text/css")
        return _text(404, "there is no such file")

    # --- reading ---

    async def _state(self, _: Request) -> Response:
        return await self._worked(lambda: _json(state_of(self._bench)))

    async def _configurations(self, _: Request) -> Response:
        return _json(self._simulations.labels)

    async def _configuration(self, _: Request) -> Response:
        return await self._worked(
            lambda: _download("configuration.yaml", yaml.safe_dump(self._bench.document(), sort_keys=False))
        )

    async def _manifests(self, _: Request) -> Response:
        def write() -> Response:
            manifests = map(to_manifest, self._bench.objects())
            text = yaml.dump_all(manifests, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
            return _download("manifests.yaml", text)

        return await self._worked(write)

    # --- asking and changing, on the application's thread ---

    def _try(self, asked: Changes) -> Response:
        return _json(state_of(self._bench, asked.changes))

    def _keep(self, asked: Changes) -> Response:
        self._bench.keep(asked.changes)
        return _json(state_of(self._bench))

    def _undo(self, _: Nothing) -> Response:
        self._bench.undo()
        return _json(state_of(self._bench))

    def _redo(self, _: Nothing) -> Response:
        self._bench.redo()
        return _json(state_of(self._bench))

    def _explain(self, asked: AskedPod) -> Response:
        return _json(decision_matrix(self._bench.explain(asked.pod, (*self._bench.kept, *asked.changes))))

    def _explain_group(self, asked: AskedGroup) -> Response:
        return _json(
            group_matrix(self._bench.explain_group(asked.group, (*self._bench.kept, *asked.changes)))
        )

    def _advice(self, asked: Changes) -> Response:
        try:
            with closing(self._bench.replica((*self._bench.kept, *asked.changes))) as what_if:
                return _json(advice_of(what_if, self._work.step, self._notes, self._reports))
        except CancelledError:
            # No failure: the page cancels a search itself when the user asks for something else.
            return _json(None)

    def _emptied(self, asked: AskedNode) -> Response:
        return _json(emptied_of(self._bench.plan_drain(asked.node, (*self._bench.kept, *asked.changes))))

    def _replay(self, asked: Asked) -> Response:
        end = monotonic() + SIMULATION_SECONDS
        work = self._work
        return _json(
            self._simulations.run(asked, lambda: self._closed or work.is_cancelled or monotonic() > end)
        )

    # --- what the server says by itself ---

    async def _news(self, _: Request) -> Response:
        return _json(News(self._bench.revision, self._work.now, self._problem))

    async def _cancel(self, request: Request) -> Response:
        self._work.cancel()
        return await self._news(request)

    # --- how requests are read and worked on ---

    def _asking(
        self, kind: type[BodyT], answer: Callable[[BodyT], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            try:
                asked = msgspec.json.decode(await _body(request), type=kind)
            except _RefusedError as refused:
                # The rest of the body isn't read, so the connection can't be used again.
                return _text(refused.status, str(refused), {"connection": "close"})
            except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
                return _text(400, f"the request is malformed: {error}")
            return await self._worked(partial(answer, asked))

        return respond

    async def _worked(self, work: Callable[[], Response]) -> Response:
        if self._waiting >= MOST_WAITING:
            return _text(503, "there are too many requests")
        # No lock: this runs on the event loop only.
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, self._guarded, work)
        finally:
            self._waiting -= 1

    def _guarded(self, work: Callable[[], Response]) -> Response:
        self._work.begin("working")
        try:
            return _answered(work)
        finally:
            self._work.end()


def _answered(work: Callable[[], Response]) -> Response:
    try:
        return work()
    except KschedfwError as error:
        return _text(422, str(error))
    except Exception as error:
        # An error of a plugin, or of kschedfw. The page goes on.
        _LOG.exception("a request failed")
        return _text(500, f"this failed: {type(error).__name__}: {error}")


async def _body(request: Request) -> bytes:
    """The whole body; an empty one is an empty object.

    Raises:
        _RefusedError: it is too large or too slow.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for piece in request.stream():
                pieces.append(piece)
                size += len(piece)
                if size > MOST_BYTES:
                    raise _RefusedError(413, f"the body is larger than {MOST_BYTES} bytes")
    except TimeoutError:
        raise _RefusedError(408, f"the body didn't come within {READ_SECONDS:g} s") from None
    except ClientDisconnect:
        raise _RefusedError(400, "the client has gone") from None
    return b"".join(pieces) or b"{}"


def _json(content: object) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")


def _text(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(f"{text}\n", status, headers, media_type="text/plain")


def _download(name: str, text: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="application/yaml", headers=headers)


def page_file(name: str) -> str:
    """Return the text of a file of the page, which is its own or one that all pages share."""
    own = files("kschedfw_advisor.explore").joinpath("static", name)
    return own.read_text(encoding="utf-8") if own.is_file() else asset(name)
