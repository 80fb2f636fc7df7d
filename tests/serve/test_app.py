from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from eegnn.serve.app import MAX_NODES, make_app
from eegnn.serve.batcher import Rows

AS_JSON = {"Content-Type": "application/json"}


class DoublingPredictor:
    """Stands for a model on a graph of 100 nodes with 2 features."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()

    def check(self, nodes: Sequence[int], new: Sequence[Any]) -> None:
        if max(nodes, default=0) >= 100:
            raise ValueError(f"nodes must be below 100, got {max(nodes)}")

    def predict(self, nodes: Sequence[int]) -> Rows:
        self.go_on.wait(10)
        return [{"node": node, "value_0": 2.0 * node} for node in nodes]

    def predict_new(self, new: Sequence[Any]) -> Rows:
        return [{"node": row, "value_0": sum(x)} for row, (x, _) in enumerate(new)]

    def about(self) -> dict[str, Any]:
        return {"num_nodes": 100}


@pytest.fixture
def predictor() -> DoublingPredictor:
    return DoublingPredictor()


@pytest.fixture
def client(predictor: DoublingPredictor) -> Iterator[TestClient]:
    app = make_app(predictor, timeout=5.0, max_bytes=10_000)  # type: ignore[arg-type]
    with TestClient(app) as client:
        yield client


def test_nodes_and_new_nodes_are_answered_in_the_order_of_the_request(client: TestClient) -> None:
    new = {"x": [1.0, 2.5], "neighbors": [3]}
    reply = client.post("/predict", json={"nodes": [7, 3, 7], "new_nodes": [new]})
    assert reply.status_code == 200
    assert [row["value_0"] for row in reply.json()["nodes"]] == [14.0, 6.0, 14.0]
    assert reply.json()["new_nodes"] == [{"node": 0, "value_0": 3.5}]
    assert client.post("/predict", json={}).json() == {"nodes": [], "new_nodes": []}


def test_health_metrics_and_a_description_are_there(client: TestClient) -> None:
    client.post("/predict", json={"nodes": [1, 2]})
    client.post("/predict", json={"nodes": [1000]})
    assert client.get("/health").json() == {"status": "ok", "num_nodes": 100}
    metrics = client.get("/metrics").text
    assert "eegnn_nodes_predicted_total 2.0" in metrics
    assert 'eegnn_requests_total{status="422"} 1.0' in metrics
    assert "/predict" in client.get("/openapi.json").json()["paths"]
    assert client.get("/docs").status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ('{"nodes": [100]}', 422, "below 100, got 100"),
        ('{"nodes": [-1]}', 422, "nodes.0"),
        ('{"nodes": [1e300]}', 422, "nodes.0"),
        ('{"nodes": ["1"]}', 422, "nodes.0"),
        ('{"nodes": [true]}', 422, "nodes.0"),
        ('{"nodes": 1}', 422, "nodes"),
        ('{"node": [1]}', 422, "node"),
        ('{"new_nodes": [{"x": [NaN]}]}', 422, "x"),
        ('{"new_nodes": [{"x": [1e999]}]}', 422, "x"),
        ('{"new_nodes": [{}]}', 422, "x"),
        ("[]", 422, "body"),
        ("{", 422, "JSON"),
        ("", 422, "body"),
        ("[" * 5000, 400, "body"),
        ('{"nodes": [' + "1," * 6000 + "1]}", 413, "10,000 bytes"),
        ('{"nodes": [123456789012345678901234567890]}', 422, "nodes.0"),
        ("\xff\xfe", 422, "body"),
    ],
)
def test_a_bad_request_gets_a_sentence(
    client: TestClient, body: str, status: int, words: str
) -> None:
    reply = client.post("/predict", content=body.encode("latin-1"), headers=AS_JSON)
    assert reply.status_code == status
    assert set(reply.json()) == {"error"}
    assert words in reply.json()["error"]


def test_more_nodes_than_a_request_may_have_are_refused(predictor: DoublingPredictor) -> None:
    with TestClient(make_app(predictor)) as client:  # type: ignore[arg-type]
        reply = client.post("/predict", json={"nodes": [0] * (MAX_NODES + 1)})
    assert reply.status_code == 422
    assert "nodes" in reply.json()["error"]


def test_other_paths_and_methods_get_a_sentence(client: TestClient) -> None:
    assert client.get("/predict").status_code == 405
    reply = client.get("/../../etc/passwd")
    assert reply.status_code == 404
    assert set(reply.json()) == {"error"}


def test_what_is_not_sent_as_json_is_refused(client: TestClient) -> None:
    reply = client.post(
        "/predict", content=b'{"nodes": [1]}', headers={"Content-Type": "text/plain"}
    )
    assert reply.status_code == 415
    assert "application/json" in reply.json()["error"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["nodes", "new_nodes", "x", "neighbors"]), inner)
    ),
)


@settings(max_examples=200, deadline=None)
@given(body=JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=50))
def test_no_request_breaks_the_service(body: bytes) -> None:
    with TestClient(make_app(DoublingPredictor())) as client:  # type: ignore[arg-type]
        reply = client.post("/predict", content=body, headers=AS_JSON)
        assert reply.status_code in (200, 400, 422)
        assert client.post("/predict", json={"nodes": [1]}).json()["nodes"][0]["value_0"] == 2.0


def test_an_answer_that_takes_too_long_is_ended_and_the_next_is_given(
    predictor: DoublingPredictor,
) -> None:
    with TestClient(make_app(predictor, timeout=0.3)) as client:  # type: ignore[arg-type]
        predictor.go_on.clear()
        reply = client.post("/predict", json={"nodes": [1]})
        assert (reply.status_code, reply.json()["error"].split(" ")[0]) == (504, "the")
        predictor.go_on.set()
        assert client.post("/predict", json={"nodes": [2]}).status_code == 200


def test_a_full_queue_asks_to_try_again(predictor: DoublingPredictor) -> None:
    with TestClient(make_app(predictor, max_waiting=0)) as client:  # type: ignore[arg-type]
        reply = client.post("/predict", json={"nodes": [1]})
    assert reply.status_code == 503
    assert reply.headers["Retry-After"] == "1"
