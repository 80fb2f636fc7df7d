"""The HTTP service: what it takes, what it answers, and what it counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat
from starlette.exceptions import HTTPException as StarletteHTTPException

from eegnn import __version__
from eegnn.serve.batcher import Batcher, BusyError, Rows
from eegnn.serve.limits import Limits
from eegnn.serve.predictor import Predictor

#: Nodes, or new nodes, of one request; neighbours of a new node.
MAX_NODES, MAX_NEW_NODES, MAX_NEIGHBORS = 10_000, 100, 10_000
NodeId = Annotated[int, Field(ge=0, lt=2**63)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class NewNode(_Strict):
    """A node that is not in the graph."""

    x: list[FiniteFloat] = Field(description="Its features, as in the data of the run.")
    neighbors: list[NodeId] = Field(
        default=[], max_length=MAX_NEIGHBORS, description="Nodes of the graph that it is joined to."
    )


class Question(_Strict):
    """Nodes to be predicted: some of the graph, or new ones with their neighbours, or both."""

    nodes: list[NodeId] = Field(default=[], max_length=MAX_NODES)
    new_nodes: list[NewNode] = Field(default=[], max_length=MAX_NEW_NODES)


class Answer(BaseModel):
    """A row for each node, in the order of the request, as `eegnn predict` writes them.

    A new node is numbered by its place in the request.
    """

    nodes: list[dict[str, Any]]
    new_nodes: list[dict[str, Any]]


class Metrics:
    """What is counted and timed, for ``GET /metrics``."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "eegnn_requests", "Requests by status.", ["status"], registry=registry
        )
        self.nodes = Counter(
            "eegnn_nodes_predicted", "Nodes that were predicted.", registry=registry
        )
        self.batch_nodes = Histogram(
            "eegnn_batch_nodes",
            "Nodes of one pass of the model.",
            buckets=[4**power for power in range(8)],
            registry=registry,
        )
        self.seconds = Histogram(
            "eegnn_pass_seconds", "Seconds of a pass of the model.", registry=registry
        )

    @contextmanager
    def timed(self, count: int) -> Iterator[None]:
        """Count and time a pass of the model for so many nodes."""
        self.batch_nodes.observe(count)
        self.nodes.inc(count)
        with self.seconds.time():
            yield


def make_app(
    predictor: Predictor,
    timeout: float = 30.0,
    max_bytes: int = 2**20,
    max_waiting: int = 1024,
) -> FastAPI:
    """Return the service for one model and one graph, an ASGI application.

    Args:
        predictor: the model with its graph.
        timeout: seconds within which a request is answered, or refused.
        max_bytes: of a request.
        max_waiting: how many requests may wait for the model.
    """
    metrics = Metrics()

    def predict(nodes: Any) -> Rows:
        with metrics.timed(len(nodes)):
            return predictor.predict(nodes)

    batcher = Batcher(predict, max_waiting=max_waiting)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        worker = asyncio.create_task(batcher.run())
        yield
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker

    about = f"Predictions of {predictor}."
    app = FastAPI(title="EEGNN", version=__version__, description=about, lifespan=lifespan)
    app.add_middleware(Limits, max_bytes=max_bytes, timeout=timeout)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(StarletteHTTPException, _refused)

    @app.middleware("http")
    async def count(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        metrics.requests.labels(response.status_code).inc()
        return response

    @app.post("/predict")
    async def answer(question: Question) -> Answer:
        """Predict nodes, each as deep as it needs."""
        return await _answer(question, predictor, batcher)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """Say that the service runs, and for what."""
        return {"status": "ok", **predictor.about()}

    @app.get("/metrics")
    async def show_metrics() -> Response:
        """Counts and times, in the format of Prometheus."""
        text = generate_latest(metrics.registry)
        return Response(text, media_type="text/plain; version=0.0.4")

    return app


async def _answer(question: Question, predictor: Predictor, batcher: Batcher) -> Answer:
    new = [(node.x, node.neighbors) for node in question.new_nodes]
    try:
        predictor.check(question.nodes, new)
    except ValueError as error:
        raise HTTPException(422, str(error)) from error
    try:
        found = await batcher.ask(question.nodes) if question.nodes else []
        added = await batcher.ask_alone(lambda: predictor.predict_new(new)) if new else []
    except BusyError:
        text = "too many requests wait: try again soon"
        raise HTTPException(503, text, {"Retry-After": "1"}) from None
    return Answer(nodes=found, new_nodes=added)


async def _malformed(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    if "json" not in request.headers.get("content-type", ""):
        text = "a request must be JSON, with the header Content-Type: application/json"
        return JSONResponse({"error": text}, 415)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][:4])
    return JSONResponse({"error": f"{place}: {first['msg']}"[:500]}, 422)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StarletteHTTPException)
    return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)
