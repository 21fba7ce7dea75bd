"""The HTTP interface of a model: questions in, typed answers out, and a page to try it."""

import asyncio
import hmac
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata, resources
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic_core import to_json
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import TypedDict

from textmill.config.docstrings import field_docs
from textmill.errors import UserError
from textmill.exported.row_predictor import CHUNK_CHARACTERS, PLAIN, AnswerOptions, RowPredictor
from textmill.serving.batcher import Batcher, Question, Telemetry
from textmill.serving.documents import PipelineRows
from textmill.serving.limits import Limits, RefusedError
from textmill.serving.questions import (
    option_schemas,
    read_body,
    read_options,
    read_rows,
    request_schema,
)
from textmill.serving.tables import TABLES, AnsweredTable, ReadTable
from textmill.text.processors.texts import Embedded

LOG = logging.getLogger("textmill")

PAGE = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/docs": ("docs.html", "text/html"),
    "/docs.js": ("docs.js", "text/javascript"),
}
"""The files of the page, and of that which says what programs can ask."""
OPEN = {*PAGE, "/health", "/ready"}
"""Paths that need no token: the pages, which know nothing of the model, and checks of health."""
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""Headers of the page: it loads nothing from other sites, and texts in it cannot run as code."""
KNOWN = {*OPEN, "/predict", "/metrics", "/model", "/openapi.json"}
"""Paths that have counters of their own."""
PAUSE = 0.05
"""Seconds until a table tries again to be answered, where others wait."""
JSON, FILE = "application/json", "application/octet-stream"
"""Types of a body; a form of another site cannot send either."""
REFUSED = {
    400: "The body or the query is not what it is said to be.",
    401: "The token is missing or wrong.",
    408: "The body came too slowly.",
    413: "The body, or the list of rows, is too long.",
    415: "The body is not said to be of a type that is read.",
    421: "The host is not one that this server is called by.",
    422: "A row cannot be answered.",
    500: "The model failed.",
    503: "Too much waits, the answer was not there in time, or the server stops.",
}


class Refused(TypedDict):
    """Why a request is not answered."""

    error: str
    """What was wanted, what was found, and what to do."""
    where: str
    """The part of the request: `body`, `row 3`, a header."""


@dataclass(kw_only=True)
class Service:
    """A model that is served.

    Args:
        predictor: A model, or a pipeline as :class:`~textmill.serving.documents.PipelineRows`,
            which reads files, too.
        name: The model's name on its page.
        limits: Limits of requests.
        token: The token that a request must have; None: anyone may ask.
        hosts: Host names that requests may use; None: any. So a page of another site, open in a
            browser here, cannot reach this server by a name of its own.
        examples: Rows to try.
        read_table: Opens a table that is posted; None: none may be.
        card: Facts of the model, as :func:`~textmill.serving.card.model_card` gives them.
    """

    predictor: RowPredictor
    name: str
    limits: Limits
    token: str | None = None
    hosts: frozenset[str] | None = None
    examples: Sequence[Mapping[str, Any]] = ()
    read_table: ReadTable | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    stopping: bool = False
    """Whether new questions are refused because the server stops."""
    files: int = 0
    """Files that are being read or wait."""
    telemetry: Telemetry = field(default_factory=Telemetry)

    def __post_init__(self) -> None:
        pipeline = self.predictor if isinstance(self.predictor, PipelineRows) else None
        self.reads = [] if pipeline is None else [*pipeline.pipeline.extensions]
        self.options = option_schemas(self.predictor, self.limits)
        self.batcher = Batcher(self.predictor, self.limits, self.telemetry)

    def check(self, scope: Scope) -> None:
        """Refuses a request with another host or without the token."""
        headers = dict(scope["headers"])
        if self.hosts is not None:
            host = headers.get(b"host", b"").decode("latin-1")
            name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
            if name.lower() not in self.hosts:
                text = f"Wanted a name of this machine ({', '.join(sorted(self.hosts))}) as host"
                raise RefusedError(421, f"{text}; found '{name:.100}'.", where="header Host")
        if self.token is not None and scope["path"] not in OPEN:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
                raise RefusedError(
                    401,
                    "Wanted the server's token, as 'Authorization: Bearer TOKEN'; "
                    f"found {'another' if given else 'none'}.",
                    where="header Authorization",
                    headers={"WWW-Authenticate": "Bearer"},
                )

    async def predict(self, request: Request) -> Response:
        """Answers one row, or each row of a list, in order."""
        self.refuse_stopping()
        if self.batcher.full():  # before more is read: that costs less
            raise self.batcher.refusal()
        options = PLAIN
        if request.scope["query_string"]:  # most have none, and to read it takes time
            options = read_options(request.query_params, self.options)
            try:
                self.predictor.with_options(options)
            except UserError as error:
                raise RefusedError(400, str(error), where="query") from None
        kind = request.headers.get("content-type", "none").partition(";")[0].strip().lower()
        if kind == FILE and isinstance(self.predictor, PipelineRows):
            return await self.file(request)
        if kind in TABLES and self.read_table is not None:
            return self.table(request, TABLES[kind], options, self.read_table)
        if kind != JSON:
            known = f"{JSON}, or of a file {FILE}" if self.reads else JSON
            known += f", or of a table {', '.join(TABLES)}" if self.read_table else ""
            text = f"Wanted 'Content-Type: {known}'; found {kind:.100}."
            raise RefusedError(415, text, where="header Content-Type")
        body = await self.body(request, self.limits.body)
        rows, characters, alone = read_rows(body, self.predictor, self.limits)
        cost = len(rows)
        if options.explain:
            cost = self._cost_explained(rows, options)
            characters = CHUNK_CHARACTERS  # as long as a batch may be: it is one of its own
        question = Question(rows, characters, options, cost)
        answers = await self.answers(question) if rows else []
        return _json(answers[0] if alone else answers)

    def _cost_explained(self, rows: Sequence[Any], options: AnswerOptions) -> int:
        """The rows that the model computes for explanations, within the limit of a request."""
        predictor, cost = self.predictor.with_options(options), 0
        for number, row in enumerate(rows):
            cost += predictor.rows_asked(row)
            if number and cost > self.limits.items:
                most = self.limits.items
                text = f"Wanted explanations that ask the model about at most {most:,} rows, each "
                text += f"once for each of its words; found {cost:,} in the first {number + 1}."
                raise RefusedError(413, f"{text} Ask in parts.", where="body")
        return cost

    async def file(self, request: Request) -> Response:
        with self.one_file():
            body = await self.body(request, self.limits.file)
            if not body:
                raise RefusedError(400, "Wanted a file; found no byte.", where="body")
            # As long as a batch may be: no other question waits for its answer in the same one.
            (answer,) = await self.answers(Question([body], CHUNK_CHARACTERS, PLAIN, 1))
            return _json(answer)

    def table(
        self, request: Request, form: str, options: AnswerOptions, read: ReadTable
    ) -> Response:
        """The answers to a table, which are computed while they are sent."""
        if options.explain:
            text = "Wanted JSON for an answer with reasons; a table's rows have none."
            raise RefusedError(400, text, where="query explain")

        async def ask(rows: Sequence[Any], characters: int) -> Sequence[Mapping[str, Any]]:
            while self.batcher.full():  # a table is no hurry: others go first
                self.refuse_stopping()
                await asyncio.sleep(PAUSE)
            return await self.answers(Question(rows, characters, options, len(rows), lenient=True))

        return AnsweredTable(
            request,
            form,
            files=self.one_file,
            body=lambda: self.body(request, self.limits.file),
            read=read,
            ask=ask,
            predictor=self.predictor,
            limits=self.limits,
        )

    @contextmanager
    def one_file(self) -> Iterator[None]:
        """A place among the files and tables that are read at once."""
        if self.files >= self.limits.files:
            text = f"{self.limits.files} files are read or wait, and no more may. Ask again later."
            again = {"Retry-After": str(self.batcher.wait())}
            raise RefusedError(503, text, where="queue", headers=again)
        self.files += 1
        try:
            yield
        finally:
            self.files -= 1

    async def body(self, request: Request, most: int) -> bytes:
        """The whole body; a sender that is too slow is refused, so it blocks no file."""
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await read_body(request, most)
        except TimeoutError:
            text = f"Wanted the whole body in {self.limits.timeout:g} s."
            raise RefusedError(408, text, where="body") from None

    async def answers(self, question: Question) -> Sequence[Mapping[str, Any]]:
        self.refuse_stopping()
        self.batcher.submit(question)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.limits.timeout, self._late, question)
        try:
            return await question.future
        finally:
            timer.cancel()

    def _late(self, waiting: Question) -> None:
        text = f"No answer in {self.limits.timeout:g} s. Ask again later, or with less."
        again = {"Retry-After": str(self.batcher.wait())}
        self.batcher.leave(waiting, RefusedError(503, text, where="model", headers=again))

    def refuse_stopping(self) -> None:
        if self.stopping:
            raise RefusedError(
                503, "The server is stopping.", where="server", headers={"Retry-After": "5"}
            )

    async def health(self) -> dict[str, str]:
        return {"status": "ok"}

    async def ready(self) -> dict[str, str]:
        self.refuse_stopping()
        if problem := self.batcher.problem():
            raise RefusedError(503, f"Not ready: {problem}.", where="model")
        return {"status": "ready"}

    async def metrics(self) -> Response:
        return Response(self.telemetry.text(), media_type=CONTENT_TYPE_LATEST)

    async def model(self) -> Response:
        named = ("items", "characters", "body", "file")
        limits = {name: getattr(self.limits, name) for name in named}
        columns, vectors = list(self.predictor.columns), self.predictor.answer_class is Embedded
        known = {"name": self.name, "columns": columns, "limits": limits, "vectors": vectors}
        known |= {"options": [*self.options], "tables": self.read_table is not None}
        known |= {"own_names": self.predictor.own_names, "card": dict(self.card)}
        return _json({**known, "files": self.reads, "examples": list(self.examples)})


def make_app(service: Service) -> ASGIApp:
    """The application of a service; its ``/openapi.json`` describes the model's rows and answers.

    FastAPI describes every path and handles most. ``POST /predict`` is handled before FastAPI sees
    it: FastAPI's routing and validation would double the time of a request, and are not needed.
    """
    app = FastAPI(
        title=f"textmill: {service.name}",
        description="Answers rows of " + ", ".join(service.predictor.columns) + ".",
        version=metadata.version("textmill"),
        docs_url=None,
        redoc_url=None,
    )
    answer = service.predictor.answer_type
    if "explain" in service.options:
        explained = service.predictor.with_options(AnswerOptions(explain=True))
        answer = answer | explained.answer_type
    about = field_docs(AnswerOptions)
    refused: dict[int | str, dict[str, Any]] = {
        status: {"description": text, "model": Refused} for status, text in REFUSED.items()
    }
    body = request_schema(service.predictor, service.limits, lists=not service.reads)
    found: dict[str, Any] = {
        "description": "The answer to the row, or to each row of a list, in order."
    }
    bodies: dict[str, Any] = {JSON: {"schema": body}}
    if service.read_table is not None:
        bodies |= {kind: {"schema": {"type": "string"}} for kind in TABLES}
        found["description"] += " To a table: the table with its answers, row by row."
        found["content"] = {"text/csv": {"schema": {"type": "string"}}}
    if service.reads:
        bodies[FILE] = {"schema": {"type": "string", "format": "binary", "minLength": 1}}
    app.post(
        "/predict",
        response_model=answer | list[answer],  # type: ignore[valid-type]  # known when it runs
        responses={200: found, **refused},
        openapi_extra={
            "requestBody": {"required": True, "content": bodies},
            "parameters": [
                {"name": name, "in": "query", "description": about[name], "schema": schema}
                for name, schema in service.options.items()
            ],
        },
    )(service.predict)
    state = dict[str, str]
    here: dict[int | str, dict[str, Any]] = {421: refused[421]}
    app.get("/health", response_model=state, responses=here)(service.health)
    app.get("/ready", response_model=state, responses={**here, 503: refused[503]})(service.ready)
    asked = {**here, 401: refused[401]}
    app.get("/metrics", response_class=Response, responses=asked)(service.metrics)
    app.get("/model", response_model=dict[str, Any], responses=asked)(service.model)
    for path in PAGE:
        app.get(path, include_in_schema=False)(_page(path))
    app.add_exception_handler(StarletteHTTPException, _unknown)
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(Exception, _failed)
    return _Gate(app, service)


class _Gate:
    """Checks every request before anything else sees it, and counts every answer."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def counted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            self._service.check(scope)
            if scope["path"] == "/predict" and scope["method"] == "POST":
                response = await self._service.predict(Request(scope, receive))
                await response(scope, receive, counted)
            else:
                await self._app(scope, receive, counted)
        except RefusedError as refusal:
            if status:  # an answer that breaks off: whoever reads it sees that it is not whole
                LOG.warning("An answer broke off: %s", refusal)
                return
            await (await _refused(Request(scope), refusal))(scope, receive, counted)
        except Exception as error:
            if not status:
                await (await _failed(Request(scope), error))(scope, receive, counted)
            raise  # uvicorn logs it
        finally:
            path = scope["path"] if scope["path"] in KNOWN else "other"
            self._service.telemetry.answered(path, status, time.perf_counter() - start)


def _json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    # A model that has gone wrong may say NaN, which is no JSON.
    body = to_json(content, inf_nan_mode="null")
    return Response(body, status, headers=headers, media_type="application/json")


def _page(path: str) -> Any:
    name, kind = PAGE[path]
    content = resources.files("textmill.serving").joinpath("page", name).read_bytes()

    async def page() -> Response:
        return Response(content, media_type=kind, headers=SAFE)

    return page


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException | StarletteHTTPException)
    text = f"{error.detail}. This server has POST /predict, and /openapi.json says what else."
    where = f"{request.method} {request.url.path:.200}"
    return _json({"error": text, "where": where}, error.status_code, error.headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return _json(error.to_json(), error.status, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    return _json({"error": "The server failed; its log says more.", "where": "server"}, 500)
