"""The routes: what is asked over HTTP, checked, answered, counted and logged (docs/serve.md)."""

import asyncio
import json
import logging
import secrets
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from antisparse._version import __version__
from antisparse.errors import (
    AntisparseError,
    FormatError,
    InputError,
    InputTypeError,
    LockedError,
    MissingDependencyError,
    UnsupportedError,
)
from antisparse.explore.originals import Originals
from antisparse.index.index import Index
from antisparse.serve import pages
from antisparse.serve.answers import arrow_answer, dumps, json_answer, json_item, table_of_items
from antisparse.serve.bodies import (
    ARROW,
    BESIDE,
    JSON,
    NPY,
    AddBody,
    ExploreBody,
    ItemsAsked,
    RangeAsked,
    RangeBody,
    RemoveBody,
    SearchAsked,
    SearchBody,
    check_values,
    parsed,
    vectors_in,
)
from antisparse.serve.explorer import HEADERS, Explored
from antisparse.serve.limits import Limits
from antisparse.serve.service import BusyError, Found, Service
from antisparse.serve.tokens import Right, Tokens

LOG = logging.getLogger("antisparse.serve")
_SHORT = 5000  # results that are written at once; more of them would keep others waiting


class _RefusedError(Exception):
    """A request that is refused before it is looked at."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers or {}


def create_app(
    index: Any,
    *,
    write: bool = False,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    follow: float = 1.0,
    originals: Originals | None = None,
    others: Sequence[Index] = (),
    name: str = "index",
) -> FastAPI:
    """An application that serves an index.

    Parameters
    ----------
    index : Index or ShardedIndex
    write : bool
        Serve changes, too; the index must be open for writing.
    tokens : Tokens, optional
        Who may ask, and change; by default everyone.
    limits : Limits, optional
    follow : float
        Seconds between two looks whether others have changed the index.
    originals : Originals, optional
        The original vectors, by which the explorer's page says what is exact.
    others : sequence of Index
        The same items in other numbers of bytes, for that page; left out once the index has changed.
    name : str
        What that page calls the index.
    """
    limits = Limits() if limits is None else limits
    keys = Tokens() if tokens is None else tokens

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        service = app.state.service = Service(index, limits)
        app.state.explored = Explored(service, originals, others, name)
        follower = asyncio.create_task(service.follow(follow))
        try:
            yield
        finally:
            follower.cancel()
            with suppress(asyncio.CancelledError):
                await follower
            service.close()

    app = FastAPI(
        title="antisparse",
        version=__version__,
        description="Nearest neighbours on short codes.",
        lifespan=running,
        docs_url=None,
        redoc_url=None,
    )

    async def body_of(request: Request) -> bytes:
        """The bytes of a request, no more than may be."""
        parts, size = [], 0
        declared = request.headers.get("content-length", "")
        too_large = _RefusedError(413, "too_large", f"the body has more than {limits.body_bytes} bytes")
        if declared.isdecimal() and int(declared) > limits.body_bytes:
            raise too_large
        async for part in request.stream():
            size += len(part)
            if size > limits.body_bytes:
                raise too_large
            parts.append(part)
        return b"".join(parts)

    async def said(request: Request, kind: Any) -> Any:
        """A body of JSON as what it should be."""
        body = await body_of(request)
        dimension = request.app.state.service.present.codec.input_dimension
        check_values(body, limits.queries * dimension + BESIDE)
        return parsed(kind, body)

    async def asked_of(request: Request, whole: Any, beside: Any) -> tuple[Any, Any]:
        """Queries and what is asked, from JSON, or from vectors and the parameters of the address."""
        kind = request.headers.get("content-type", JSON).split(";")[0].strip().lower()
        if kind == JSON:
            asked = await said(request, whole)
            return asked.array(), asked
        if kind not in (NPY, ARROW):
            raise _RefusedError(415, "media_type", f"content-type is {kind[:100]}; it must be {JSON}, {NPY} or {ARROW}")
        return vectors_in(await body_of(request), kind, "body"), parsed(beside, dict(request.query_params))

    async def answer(request: Request, found: Found, items: bool) -> Response:
        media = ARROW if ARROW in request.headers.get("accept", "") else JSON
        write = arrow_answer if media == ARROW else json_answer
        schema = found.present.schema  # items, and keys that are text, are read from files
        short = found.ids.size <= _SHORT and not items and (schema is None or not schema.key_is_text)
        made = write(found, items) if short else await request.app.state.service.aside(lambda: write(found, items))
        return Response(made, media_type=media)

    def route(path: str, method: str, right: Right | None, **options: Any) -> Callable[[Any], Any]:
        """A route that checks tokens, keeps time, and answers errors in one shape."""

        def decorate(handler: Callable[[Request, Service], Awaitable[Response]]) -> Any:
            async def guarded(request: Request) -> Response:
                service: Service = request.app.state.service
                begun = time.perf_counter()
                try:
                    if right is not None:
                        _check_token(keys, request, right)
                    async with asyncio.timeout(limits.seconds or None) as request.state.clock:
                        response = await handler(request, service)
                except Exception as error:
                    response = _error(error, service)
                return _noted(service, path, response, time.perf_counter() - begun)

            guarded.__doc__ = handler.__doc__
            app.add_api_route(
                path, guarded, methods=[method], name=handler.__name__, response_class=Response, **options
            )
            return handler

        return decorate

    @route("/search", "POST", "read", openapi_extra=_body(SearchBody, SearchAsked), responses=pages.FOUND)
    async def search(request: Request, service: Service) -> Response:
        """Find the nearest to one query or several: vectors as JSON, .npy or Arrow."""
        Q, asked = await asked_of(request, SearchBody, SearchAsked)
        return await answer(request, await service.search(Q, asked), asked.items)

    @route("/range", "POST", "read", openapi_extra=_body(RangeBody, RangeAsked), responses=pages.FOUND)
    async def range_search(request: Request, service: Service) -> Response:
        """Find all that is as near as a radius."""
        Q, asked = await asked_of(request, RangeBody, RangeAsked)
        return await answer(request, await service.range_search(Q, asked), False)

    @route("/items/{key:path}", "GET", "read", openapi_extra=pages.KEY, responses=pages.ITEM)
    async def item(request: Request, service: Service) -> Response:
        """The item of a key, or of an id."""
        found = await service.in_turn(lambda: json_item(service.present, request.path_params["key"]))
        if found is None:
            raise _RefusedError(404, "not_found", "there is no such item")
        return Response(found, media_type=JSON)

    @route("/info", "GET", "read", responses=pages.INFO)
    async def info(request: Request, service: Service) -> Response:
        """What is in the index, and what may be asked."""
        present = service.present
        about = {"generation": present.generation, **present.stats(), "write": write, "version": __version__}
        return JSONResponse(
            {**about, "limits": {name: getattr(limits, name) for name in ("queries", "k", "results", "body_bytes")}}
        )

    @route("/metrics", "GET", "read", responses=pages.METRICS)
    async def metrics(request: Request, service: Service) -> Response:
        """Counters, as Prometheus reads them."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @route("/healthz", "GET", None)
    async def healthz(request: Request, service: Service) -> Response:
        """Whether the process is alive."""
        return JSONResponse({"status": "ok"})

    @route("/readyz", "GET", None)
    async def readyz(request: Request, service: Service) -> Response:
        """Whether it can answer."""
        return JSONResponse({"status": "ok", "generation": service.present.generation})

    @route("/", "GET", None, include_in_schema=False)
    async def explorer(request: Request, service: Service) -> Response:
        """The explorer: a page that asks the routes below."""
        return HTMLResponse(Explored.page(), headers=HEADERS)

    @route("/explore", "GET", "read", responses=pages.INFO)
    async def explored(request: Request, service: Service) -> Response:
        """What the explorer shows of the index: its sizes, what codes are made of, recall."""
        return Response(dumps(await service.in_turn(request.app.state.explored.about)), media_type=JSON)

    @route("/explore/items", "GET", "read", openapi_extra=_query_of(ItemsAsked), responses=pages.ITEMS)
    async def explored_items(request: Request, service: Service) -> Response:
        """Items by words of their key or text."""
        asked = parsed(ItemsAsked, dict(request.query_params))
        found = await service.in_turn(lambda: request.app.state.explored.items(asked))
        return Response(dumps(found), media_type=JSON)

    @route("/explore", "POST", "read", openapi_extra=_body(ExploreBody), responses=pages.EXPLORED)
    async def explore(request: Request, service: Service) -> Response:
        """What every search finds for an item, a text or a vector, beside what is exact; with codes."""
        asked = await said(request, ExploreBody)
        found = await service.in_turn(lambda: request.app.state.explored.ask(asked))
        return Response(dumps(found), media_type=JSON)

    def check_writes() -> None:
        if not write:
            raise _RefusedError(403, "read_only", "this service is read only; start it with --write")

    async def changed(request: Request, deed: Callable[[Index], Any]) -> Any:
        """What a change gives. From when it begins it may take its time: whoever was told to try again would."""
        return await request.app.state.service.change(deed, lambda: request.state.clock.reschedule(None))

    @route("/add", "POST", "write", openapi_extra=_body(AddBody), responses=pages.ADDED)
    async def add(request: Request, service: Service) -> Response:
        """Add vectors, and their items where the index keeps any. They are on the disk when it answers."""
        check_writes()
        given = await said(request, AddBody)
        _check_count(given.vectors, limits)
        done = await changed(
            request, lambda index: index.add(_rows(given), given.ids, items=table_of_items(index, given.items))
        )
        return JSONResponse({"ids": done.tolist(), "generation": service.present.generation})

    @route("/update", "POST", "write", openapi_extra=_body(AddBody), responses=pages.UPDATED)
    async def update(request: Request, service: Service) -> Response:
        """Replace vectors, and their items where these are given."""
        check_writes()
        given = await said(request, AddBody)
        _check_count(given.vectors, limits)
        await changed(
            request, lambda index: index.update(_rows(given), given.ids, items=table_of_items(index, given.items))
        )
        return JSONResponse({"updated": len(given.vectors), "generation": service.present.generation})

    @route("/remove", "POST", "write", openapi_extra=_body(RemoveBody), responses=pages.REMOVED)
    async def remove(request: Request, service: Service) -> Response:
        """Remove vectors, all of them or, if one is not there, none."""
        check_writes()
        given = await said(request, RemoveBody)
        _check_count(given.ids, limits)
        await changed(request, lambda index: index.remove(given.ids))
        return JSONResponse({"removed": len(given.ids), "generation": service.present.generation})

    @app.exception_handler(HTTPException)
    async def _unknown(request: Request, error: HTTPException) -> Response:
        response = _shape(error.status_code, "http", str(error.detail), dict(error.headers or {}))
        return _noted(request.app.state.service, "unknown", response)

    return app


def _rows(given: AddBody) -> Any:
    import numpy as np

    if len({len(row) for row in given.vectors}) > 1:
        raise InputError("vectors have different lengths; all must be as long as those of the index")
    return np.array(given.vectors, np.float64).reshape(len(given.vectors), -1)


def _check_count(values: list[Any], limits: Limits) -> None:
    if len(values) > limits.queries:
        raise InputError(f"{len(values)} vectors or ids, where a request may have {limits.queries}")


def _check_token(tokens: Tokens, request: Request, right: Right) -> None:
    given = request.headers.get("authorization")
    allowed = tokens.allow(given, right)
    if allowed is None:
        said = "no token was sent (authorization: Bearer TOKEN)" if given is None else "the token is none that is known"
        raise _RefusedError(401, "unauthorized", said, {"www-authenticate": "Bearer"})
    if not allowed:
        raise _RefusedError(403, "forbidden", "this token may read, not write")


_STATUS: list[tuple[type[Exception], int, str]] = [
    (InputError, 400, "input"),
    (InputTypeError, 400, "input"),
    (UnsupportedError, 400, "unsupported"),
    (MissingDependencyError, 501, "missing_dependency"),
    (FormatError, 500, "format"),
    (LockedError, 503, "locked"),
    (AntisparseError, 500, "storage"),
]


def _error(error: Exception, service: Service) -> Response:
    """An error in the one shape that all have; what is no one's business is not in it."""
    service.metrics.errors.labels(error.code if isinstance(error, _RefusedError) else type(error).__name__).inc()
    if isinstance(error, _RefusedError):
        return _shape(error.status, error.code, str(error), error.headers)
    if isinstance(error, BusyError):
        return _shape(503, "busy", "there are too many requests; try again in a second", {"retry-after": "1"})
    if isinstance(error, ClientDisconnect):  # no one reads it, but it is counted and logged
        return _shape(400, "gone", "the body was cut")
    if isinstance(error, TimeoutError):
        return _shape(503, "timeout", "the request took too long", {"retry-after": "1"})
    for kind, status, code in _STATUS:
        if isinstance(error, kind):
            return _shape(status, code, str(error))
    LOG.error(json.dumps({"error": type(error).__name__, "trace": "".join(traceback.format_tb(error.__traceback__))}))
    return _shape(500, "internal", "something went wrong; the log has more")


def _noted(service: Service, route: str, response: Response, seconds: float = 0.0) -> Response:
    """An answer that was counted and logged, with the name that it has there."""
    name, status = secrets.token_hex(8), response.status_code
    service.metrics.requests.labels(route, str(status)).inc()
    service.metrics.latency.labels(route).observe(seconds)
    response.headers["x-request-id"] = name
    LOG.info(json.dumps({"request": name, "route": route, "status": status, "ms": round(1000 * seconds, 2)}))
    return response


def _shape(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"code": code, "message": message[:1000]}}, status, headers=headers)


def _body(whole: Any, beside: Any = None) -> dict[str, Any]:
    """What OpenAPI says of a body: JSON, or vectors with the rest in the address."""
    content: dict[str, Any] = {JSON: {"schema": whole.model_json_schema()}}
    extra: dict[str, Any] = {"requestBody": {"required": True, "content": content}}
    if beside is not None:
        binary = {"schema": {"type": "string", "format": "binary"}}
        content |= {NPY: binary, ARROW: binary}
        extra |= _query_of(beside)
    return extra


def _query_of(asked: Any) -> dict[str, Any]:
    """What OpenAPI says of parameters of the address."""
    properties = asked.model_json_schema()["properties"]
    return {
        "parameters": [
            {"name": name, "in": "query", "required": False, "schema": one} for name, one in properties.items()
        ]
    }
