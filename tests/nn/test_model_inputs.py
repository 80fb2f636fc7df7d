from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eegnn import Adjacency
from tests.graphs import quick
from tests.nn.model_examples import (
    BOTH,
    EDGE_INDEX,
    NO_EDGES,
    NUM_NODES,
    build,
    edge_features,
    features,
)


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (features().long(), TypeError, r"x must be floating point, got torch.int64"),
        (features().bool(), TypeError, r"x must be floating point"),
        (features() + 0j, TypeError, r"x must be floating point"),
        (features().double(), TypeError, r"x has dtype torch.float64, but .* torch.float32"),
        (features().half(), TypeError, r"x has dtype torch.float16"),
        (features(channels=4), ValueError, r"x must have shape \[7, 5\], got \[7, 4\]"),
        (features(channels=0), ValueError, r"x must have shape"),
        (features()[:, 0], ValueError, r"x must have shape \[7, 5\], got \[7\]"),
        (features().unsqueeze(0), ValueError, r"x must have shape"),
        (torch.tensor(1.0), ValueError, r"x must have shape"),
        (features().numpy(), TypeError, r"x must be a torch.Tensor, got ndarray"),
        (features().tolist(), TypeError, r"x must be a torch.Tensor, got list"),
        (None, ValueError, r"x must have shape \[N, 5\], got None"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_bad_features_are_refused(kind: str, x: Any, error: type[Exception], message: str) -> None:
    model = build(kind)
    adj = Adjacency.from_edge_index(EDGE_INDEX, NUM_NODES)
    with pytest.raises(error, match=message):
        model(x, adj)
    with pytest.raises(error, match=message):
        model.predict(x, adj)
    with pytest.raises((TypeError, ValueError), match=r"\bx\b|edge_index holds the node"):
        model(x, EDGE_INDEX)


@quick
@given(
    row=st.integers(0, NUM_NODES - 1),
    column=st.integers(0, 4),
    value=st.sampled_from([math.nan, math.inf, -math.inf]),
    scale=st.sampled_from([1.0, 1e38]),
    kind=st.sampled_from(BOTH),
)
def test_one_value_that_is_not_finite_is_found(
    row: int, column: int, value: float, scale: float, kind: str
) -> None:
    x = features().clamp(-1, 1) * scale
    x[row, column] = value
    with pytest.raises(ValueError, match=f"x holds NaN or infinite values, first in row {row}"):
        build(kind)(x, EDGE_INDEX)


def test_opposite_infinities_do_not_cancel() -> None:
    x = features()
    x[1, 0], x[2, 0] = math.inf, -math.inf
    with pytest.raises(ValueError, match="x holds NaN or infinite values, first in row 1"):
        build("SASGNN")(x, EDGE_INDEX)


def test_features_whose_products_overflow_are_refused() -> None:
    x = torch.full((NUM_NODES, 5), 3e38)
    with pytest.raises(ValueError, match=r"x holds values as large as 3e\+38: standardize it"):
        build("SASGNN").predict(x, NO_EDGES)
    with pytest.warns(UserWarning, match="standardize"):  # double precision can multiply them
        build("SASGNN").double().predict(x.double(), NO_EDGES)


def test_features_of_which_few_digits_are_kept_are_warned_of() -> None:
    model, x = build("SASGNN"), torch.full((NUM_NODES, 5), 1e6)
    with pytest.warns(UserWarning, match="x holds values beyond .*: standardize it"):
        model.predict(x, NO_EDGES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(x, NO_EDGES)  # once for a tensor
        model.double().predict(x.double(), NO_EDGES)


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("x", features().to_sparse(), "x must be a dense tensor, got torch.sparse_coo"),
        ("batch", torch.zeros(NUM_NODES).long().to_sparse(), "batch must be a dense tensor"),
        ("edge_weight", torch.ones(10).to_sparse(), "edge_weight must be a dense tensor"),
        ("batch", torch.full((NUM_NODES,), 10**14), "batch holds the graph 100000000000000, but"),
    ],
)
def test_tensors_without_plain_values_are_refused(argument: str, value: Any, message: str) -> None:
    model = build("SASGNN")
    model(features(), EDGE_INDEX, batch=torch.zeros(NUM_NODES).long())  # now the graph is known
    with pytest.raises((TypeError, ValueError), match=message):
        model(**{"x": features(), "edge_index": EDGE_INDEX, argument: value})


def test_a_graph_without_values_or_with_too_many_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="edge_index is on the device meta"):
        Adjacency.from_edge_index(EDGE_INDEX.to("meta"))
    with pytest.raises(ValueError, match="num_nodes must be at most"):
        Adjacency.from_edge_index(torch.tensor([[0], [10**14]]))


def test_an_x_of_three_dimensions_is_named_and_not_the_batch() -> None:
    batch = torch.zeros(NUM_NODES).long()
    with pytest.raises(ValueError, match=r"x must have shape \[7, 5\], got \[1, 7, 5\]"):
        build("SASGNN")(features().unsqueeze(0), EDGE_INDEX, batch=batch)


@pytest.mark.parametrize("rows", [NUM_NODES - 1, NUM_NODES + 1, 0])
def test_a_wrong_number_of_rows_is_refused(rows: int) -> None:
    adj = Adjacency.from_edge_index(EDGE_INDEX, NUM_NODES)
    with pytest.raises(ValueError, match=rf"x must have shape \[7, 5\], got \[{rows}, 5\]"):
        build("EEGNN")(features(rows), adj)


def test_more_nodes_in_the_edges_than_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="edge_index holds the node 5, but with num_nodes=4"):
        build("EEGNN")(features(4), EDGE_INDEX)


@pytest.mark.parametrize(
    ("attr", "error", "message"),
    [
        (None, ValueError, r"edge_attr is needed"),
        (edge_features(9), ValueError, r"edge_attr must have shape \[10, 2\], got \[9, 2\]"),
        (edge_features()[:, :1], ValueError, r"edge_attr must have shape \[10, 2\]"),
        (edge_features()[:, 0], ValueError, r"edge_attr must have shape \[10, 2\]"),
        (edge_features() * math.nan, ValueError, r"edge_attr holds NaN or infinite"),
        (edge_features() * math.inf, ValueError, r"edge_attr holds NaN or infinite"),
        (edge_features().long(), TypeError, r"edge_attr must be floating point"),
        (edge_features().double(), TypeError, r"edge_attr has dtype torch.float64"),
        (edge_features().numpy(), TypeError, r"edge_attr must be a torch.Tensor"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_bad_edge_features_are_refused(
    kind: str, attr: Any, error: type[Exception], message: str
) -> None:
    model = build(kind, edge_dim=2)
    with pytest.raises(error, match=message):
        model(features(), EDGE_INDEX, attr)
    with pytest.raises(error, match=message):
        model.predict(features(), Adjacency.from_edge_index(EDGE_INDEX, NUM_NODES), attr)


@pytest.mark.parametrize("kind", BOTH)
def test_unexpected_edge_features_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match=r"edge_attr was given, but .* edge_dim=None"):
        build(kind)(features(), EDGE_INDEX, edge_features())


@pytest.mark.parametrize("kind", BOTH)
def test_a_batch_beside_an_adjacency_is_refused(kind: str) -> None:
    adj = Adjacency.from_edge_index(EDGE_INDEX, NUM_NODES)
    with pytest.raises(ValueError, match="batch must be given to Adjacency"):
        build(kind)(features(), adj, batch=torch.zeros(NUM_NODES, dtype=torch.int64))


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (torch.zeros(6).long(), ValueError, r"batch must have shape \[7\], got \[6\]"),
        (torch.zeros(7), TypeError, r"batch must have dtype int64"),
        (torch.tensor([0, 0, 0, 0, 2, 2, 1]), ValueError, r"batch must be .*ascending"),
        (torch.tensor([0, 0, 0, 0, 1, 2, 2]), ValueError, r"edge_index joins node 4 of graph 1"),
        ([0] * 7, TypeError, r"batch must be a torch.Tensor"),
    ],
)
@pytest.mark.parametrize("kind", BOTH)
def test_a_bad_batch_is_refused(
    kind: str, batch: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build(kind, level="graph")(features(), EDGE_INDEX.clone(), batch=batch)
