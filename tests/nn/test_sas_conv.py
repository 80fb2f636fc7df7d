from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from eegnn import SASGNN, Adjacency, SASConv
from eegnn.nn.sas_conv import EdgeTerm, NormLayer
from eegnn.nn.weights import Storage
from tests.transcription import Graph, antisymmetric, symmetric

Array = NDArray[np.float64]

GRAPHS = {
    "ring with chord": Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3)], 5),
    "isolated node": Graph([(0, 1), (1, 2), (0, 2), (2, 4)], 5),
    "two components": Graph([(0, 1), (2, 3), (3, 4), (2, 4)], 5),
    "no edges": Graph([], 5),
}
STORAGES: list[Storage] = ["free", "paper"]
NUMPY_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu_tanh": lambda z: np.maximum(np.tanh(z), 0),
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "identity": lambda z: z,
}


def dense_normalised_adjacency(graph: Graph) -> Array:
    a = np.zeros((graph.num_nodes, graph.num_nodes))
    for u, v in graph.edges:
        a[u, v] = a[v, u] = 1
    degree = a.sum(1)
    scale = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return scale[:, None] * a * scale[None, :]


def incidence(graph: Graph) -> Array:
    b = np.zeros((graph.num_nodes, len(graph.edges)))
    for k, (u, v) in enumerate(graph.edges):
        b[u, k] = b[v, k] = 1
    return b


def matrices(conv: SASConv) -> tuple[Array, Array]:
    """Ω_as and W_s from the stored numbers, without the library's own formulas."""
    m = conv.channels
    return (
        antisymmetric(conv.antisymmetric.value.detach().numpy(), m),
        symmetric(conv.symmetric.value.detach().numpy(), m),
    )


def adjacency(graph: Graph) -> Adjacency:
    return Adjacency.from_edge_index(graph.edge_index(), graph.num_nodes, graph.batch())


def states(seed: int, n: int = 5, m: int = 6) -> Tensor:
    return torch.randn(n, m, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("seed", [0, 1])
def test_conv_is_equation_1_in_dense_matrices(name: str, storage: Storage, seed: int) -> None:
    torch.manual_seed(seed)
    graph, conv = GRAPHS[name], SASConv(6, storage=storage).double()
    h = states(seed)
    omega, weight = matrices(conv)
    z = -np.maximum(h.numpy() @ omega, 0) + dense_normalised_adjacency(graph) @ h.numpy() @ weight
    expected = np.maximum(np.tanh(z), 0)
    np.testing.assert_allclose(conv(h, adjacency(graph)).detach(), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(conv.omega.detach(), omega, rtol=0, atol=1e-15)
    np.testing.assert_allclose(conv.weight.detach(), weight, rtol=0, atol=1e-15)


@pytest.mark.parametrize("edge_term", ["linear", "relu", None, "none"])
@pytest.mark.parametrize("name", GRAPHS)
def test_conv_with_edge_features_is_equation_4(name: str, edge_term: EdgeTerm | None) -> None:
    torch.manual_seed(3)
    graph, conv = GRAPHS[name], SASConv(6, edge_dim=3, edge_term=edge_term).double()
    h = states(4)
    features = states(5, len(graph.edges), 3)
    omega, weight = matrices(conv)
    z = -np.maximum(h.numpy() @ omega, 0) + dense_normalised_adjacency(graph) @ h.numpy() @ weight
    if conv.edge is not None:
        term = incidence(graph) @ features.numpy() @ conv.edge.weight.detach().numpy().T
        z += term if edge_term == "linear" else -np.maximum(term, 0)
    both_directions = torch.cat([features, features])
    out = conv(h, adjacency(graph), both_directions).detach()
    np.testing.assert_allclose(out, np.maximum(np.tanh(z), 0), rtol=0, atol=1e-12)
    assert (conv.edge is None) == (edge_term == "none")


def test_edge_term_needs_edge_features_and_the_other_way_round() -> None:
    adj = adjacency(GRAPHS["ring with chord"])
    with pytest.raises(ValueError, match="edge_term='relu' needs edge_dim"):
        SASConv(6, edge_term="relu")
    with pytest.raises(ValueError, match="edge_attr is needed"):
        SASConv(6, edge_dim=3).double()(states(0), adj)
    with pytest.raises(ValueError, match="edge_dim is None"):
        SASConv(6).double()(states(0), adj, states(1, 12, 3))


@pytest.mark.parametrize("inner", NUMPY_ACTIVATIONS)
@pytest.mark.parametrize("outer", NUMPY_ACTIVATIONS)
def test_activations_of_the_ablation(outer: str, inner: str) -> None:
    torch.manual_seed(0)
    graph = GRAPHS["ring with chord"]
    conv = SASConv(6, activation=outer, inner_activation=inner).double()
    h = states(1)
    omega, weight = matrices(conv)
    z = -NUMPY_ACTIVATIONS[inner](h.numpy() @ omega)
    z = z + dense_normalised_adjacency(graph) @ h.numpy() @ weight
    out = conv(h, adjacency(graph)).detach()
    np.testing.assert_allclose(out, NUMPY_ACTIVATIONS[outer](z), rtol=0, atol=1e-12)


def test_unknown_activation_is_refused() -> None:
    with pytest.raises(ValueError, match="activation must be one of"):
        SASConv(4, activation="gelu")
    with pytest.raises(ValueError, match="inner_activation must be one of"):
        SASConv(4, inner_activation="gelu")


@pytest.mark.parametrize("storage", STORAGES)
def test_matrices_keep_their_symmetry_after_optimiser_steps(storage: Storage) -> None:
    torch.manual_seed(0)
    conv = SASConv(6, storage=storage).double()
    adj, h = adjacency(GRAPHS["ring with chord"]), states(0)
    optimiser = torch.optim.Adam(conv.parameters(), lr=0.1, weight_decay=0.01)
    before = conv.omega.detach().clone(), conv.weight.detach().clone()
    for _ in range(10):
        optimiser.zero_grad()
        conv(h, adj).square().sum().neg().backward()
        optimiser.step()
    omega, weight = conv.omega.detach(), conv.weight.detach()
    assert torch.equal(omega, -omega.T)
    assert torch.equal(weight, weight.T)
    assert (omega - before[0]).abs().max() > 0.1
    assert (weight - before[1]).abs().max() > 0.1


@pytest.mark.parametrize("m", [1, 2, 7, 32])
def test_free_storage_keeps_the_free_numbers_only(m: int) -> None:
    conv = SASConv(m)
    assert conv.antisymmetric.value.numel() == m * (m - 1) // 2
    assert conv.symmetric.value.numel() == m * (m + 1) // 2
    assert sum(p.numel() for p in conv.parameters()) == m * m


@pytest.mark.parametrize("m", [1, 2, 7, 32])
def test_paper_storage_has_the_paper_counts(m: int) -> None:
    conv = SASConv(m, storage="paper")
    assert conv.antisymmetric.value.numel() == m * m
    assert conv.symmetric.value.numel() == m * (m + 2)


@pytest.mark.parametrize("storage", STORAGES)
def test_one_channel_has_no_antisymmetric_part(storage: Storage) -> None:
    conv = SASConv(1, storage=storage).double()
    assert torch.equal(conv.omega, torch.zeros(1, 1, dtype=torch.float64))
    h = states(0, 5, 1)
    around = dense_normalised_adjacency(GRAPHS["ring with chord"]) @ h.numpy()
    expected = np.maximum(np.tanh(around * conv.weight.item()), 0)
    out = conv(h, adjacency(GRAPHS["ring with chord"])).detach()
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("storage", STORAGES)
def test_initial_entries_have_variance_one_over_width(storage: Storage) -> None:
    torch.manual_seed(0)
    conv = SASConv(64, storage=storage)
    for value in (conv.antisymmetric.value, conv.symmetric.value):
        assert value.detach().var().item() == pytest.approx(1 / 64, rel=0.1)


def test_dropout_acts_on_the_step_in_training_only() -> None:
    torch.manual_seed(0)
    plain = SASConv(64).double()
    conv = SASConv(64, dropout=0.25).double()
    conv.load_state_dict(plain.state_dict())
    adj, h = adjacency(GRAPHS["ring with chord"]), states(1, 5, 64)
    reference = plain(h, adj)
    conv.eval()
    assert torch.equal(conv(h, adj), reference)
    conv.train()
    out = conv(h, adj)
    alive = reference > 0
    dropped = alive & (out == 0)
    torch.testing.assert_close(out[~dropped], reference[~dropped] / 0.75, rtol=0, atol=1e-12)
    share = dropped.sum().item() / alive.sum().item()
    assert share == pytest.approx(0.25, abs=0.12)  # three standard deviations of about 130 draws


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_norm_acts_before_the_outer_activation(norm: NormLayer) -> None:
    torch.manual_seed(0)
    graph, conv = GRAPHS["ring with chord"], SASConv(6, norm=norm).double()
    h = states(2)
    omega, weight = matrices(conv)
    z = -np.maximum(h.numpy() @ omega, 0) + dense_normalised_adjacency(graph) @ h.numpy() @ weight
    axis = 1 if norm == "layer" else 0
    centred = z - z.mean(axis, keepdims=True)
    z = centred / np.sqrt((centred**2).mean(axis, keepdims=True) + 1e-5)
    out = conv(h, adjacency(graph)).detach()
    np.testing.assert_allclose(out, np.maximum(np.tanh(z), 0), rtol=0, atol=1e-12)


def test_unknown_norm_is_refused() -> None:
    with pytest.raises(ValueError, match="norm must be one of"):
        SASConv(4, norm="instance")  # type: ignore[arg-type]


def test_repr_is_one_line() -> None:
    assert repr(SASConv(8)) == "SASConv(8, edge_term='none')"
    assert repr(SASConv(8, edge_dim=2)) == "SASConv(8, edge_term='relu')"
    assert "\n" not in repr(SASGNN(3, 8, 2))
    assert repr(SASGNN(3, 8, 2, num_layers=4)).startswith("SASGNN(3, 8, 2, num_layers=4")


def test_reset_parameters_draws_every_weight_anew() -> None:
    model = SASGNN(3, 8, 2, num_layers=2, shared=False, edge_dim=2)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    model.reset_parameters()
    assert len(before) == 9  # encoder 2, decoder 1, and Ω, W, W_e twice
    for name, p in model.named_parameters():
        assert not torch.equal(p, before[name]), name


def test_reset_parameters_with_the_same_seed_draws_the_same_weights() -> None:
    conv = SASConv(8, edge_dim=2)
    torch.manual_seed(5)
    conv.reset_parameters()
    first = [p.detach().clone() for p in conv.parameters()]
    torch.manual_seed(5)
    conv.reset_parameters()
    assert all(torch.equal(a, b) for a, b in zip(first, conv.parameters(), strict=True))


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("max_layers", [None, 1, 2, 9])
def test_sasgnn_is_equation_2_by_hand(shared: bool, max_layers: int | None) -> None:
    torch.manual_seed(1)
    graph = GRAPHS["isolated node"]
    model = SASGNN(3, 6, 2, num_layers=4, step_size=0.3, shared=shared).double()
    x = states(7, 5, 3)
    adj = dense_normalised_adjacency(graph)
    h = np.maximum(
        x.numpy() @ model.encoder.weight.detach().numpy().T + model.encoder.bias.detach().numpy(), 0
    )
    steps = 4 if max_layers is None else min(max_layers, 4)
    for layer in range(steps):
        conv = model.convs[0 if shared else layer]
        assert isinstance(conv, SASConv)
        omega, weight = matrices(conv)
        h = h + 0.3 * np.maximum(np.tanh(-np.maximum(h @ omega, 0) + adj @ h @ weight), 0)
    decoder = model.decoder.mlp.lins[0].weight
    assert isinstance(decoder, Tensor)
    out, exits = model.predict(x, graph.edge_index(), max_layers=max_layers)
    np.testing.assert_allclose(out, h @ decoder.detach().numpy().T, rtol=0, atol=1e-12)
    assert exits.layer.tolist() == [steps] * 5
    assert exits.tau.shape == (steps, 5)
    torch.testing.assert_close(exits.time, torch.full((5,), 0.3 * steps, dtype=torch.float64))
    assert exits.cost.item() == pytest.approx(steps / 4)
    if max_layers is None:
        assert torch.equal(model(x, graph.edge_index()), out)


@pytest.mark.parametrize("pool", ["mean", "add", "max"])
def test_sasgnn_pools_each_graph(pool: str) -> None:
    torch.manual_seed(1)
    nodes = SASGNN(3, 6, 2, num_layers=4).double()
    graphs = SASGNN(3, 6, 2, num_layers=4, level="graph", pool=pool).double()
    graphs.load_state_dict(nodes.state_dict())
    batch = Graph([(0, 1), (2, 3), (3, 4), (2, 4)], 5, [0, 0, 1, 1, 1])
    x = states(7, 5, 3)
    pools: dict[str, Callable[..., Array]] = {"mean": np.mean, "add": np.sum, "max": np.max}
    reduce = pools[pool]
    nodes.decoder = nn.Identity()  # type: ignore[assignment]
    h = nodes(x, batch.edge_index()).detach().numpy()
    pooled = np.stack([reduce(h[:2], axis=0), reduce(h[2:], axis=0)])
    decoder = graphs.decoder.mlp.lins[0].weight
    assert isinstance(decoder, Tensor)
    out = graphs(x, batch.edge_index(), batch=batch.batch()).detach()
    np.testing.assert_allclose(out, pooled @ decoder.detach().numpy().T, rtol=0, atol=1e-12)


def test_shared_weights_do_not_grow_with_depth() -> None:
    def count(num_layers: int, shared: bool) -> int:
        model = SASGNN(3, 8, 2, num_layers=num_layers, shared=shared)
        return sum(p.numel() for p in model.parameters())

    outside = 3 * 8 + 8 + 8 * 2
    assert count(2, True) == count(50, True) == outside + 64
    assert count(5, False) == outside + 5 * 64


def with_step(model: SASGNN, step_size: float, num_layers: int, solver: str) -> SASGNN:
    """The same weights, over the same time, in other steps."""
    other = SASGNN(3, 6, 2, num_layers=num_layers, step_size=step_size, solver=solver).double()
    other.load_state_dict(model.state_dict())
    return other


@torch.no_grad()
def test_euler_converges_with_order_one_to_what_rk4_gives() -> None:
    torch.manual_seed(2)
    model = SASGNN(3, 6, 2).double()
    x, edge_index = states(8, 5, 3), GRAPHS["ring with chord"].edge_index()
    exact = with_step(model, 1 / 128, 256, "rk4")(x, edge_index)
    errors = [
        (with_step(model, 1 / k, 2 * k, "euler")(x, edge_index) - exact).abs().max().item()
        for k in (32, 64, 128, 256)
    ]
    for coarse, fine in itertools.pairwise(errors):
        assert 1.9 < coarse / fine < 2.1
    assert errors[0] > 1e-4  # the differences seen are those of the method, not of rounding


@torch.no_grad()
@pytest.mark.parametrize("solver", ["midpoint", "heun2", "rk4", "dopri5", "bosh3"])
def test_solvers_agree_on_the_flow(solver: str) -> None:
    torch.manual_seed(2)
    model = SASGNN(3, 6, 2).double()
    x, edge_index = states(8, 5, 3), GRAPHS["ring with chord"].edge_index()
    exact = with_step(model, 1 / 128, 256, "rk4")(x, edge_index)
    torch.testing.assert_close(
        with_step(model, 1 / 64, 128, solver)(x, edge_index), exact, rtol=0, atol=1e-4
    )


def test_solver_stops_at_max_layers() -> None:
    torch.manual_seed(2)
    model = SASGNN(3, 6, 2).double()
    x, edge_index = states(8, 5, 3), GRAPHS["ring with chord"].edge_index()
    half, exits = with_step(model, 0.1, 10, "rk4").predict(x, edge_index, max_layers=5)
    torch.testing.assert_close(half, with_step(model, 0.1, 5, "rk4")(x, edge_index))
    assert exits.layer.tolist() == [5] * 5


def test_solver_needs_shared_weights() -> None:
    with pytest.raises(ValueError, match="needs shared=True"):
        SASGNN(3, 6, 2, shared=False, solver="rk4")
    with pytest.raises(ValueError, match="solver must be one of"):
        SASGNN(3, 6, 2, solver="leapfrog")


@pytest.mark.parametrize("storage", STORAGES)
def test_five_hundred_layers_stay_finite_in_float32(storage: Storage) -> None:
    torch.manual_seed(0)
    model = SASGNN(3, 16, 2, num_layers=500, step_size=1.0, storage=storage)
    x, edge_index = torch.randn(5, 3), GRAPHS["ring with chord"].edge_index()
    out = model(x, edge_index)
    out.square().mean().sqrt().backward()
    assert out.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    # σ₁ ≤ 1: a state grows by less than τ a layer.
    model.decoder = nn.Identity()  # type: ignore[assignment]
    assert model(x, edge_index).max() <= model.encoder(x).max() + 500


def test_sasgnn_has_no_exits_to_choose() -> None:
    model = SASGNN(3, 6, 2, num_layers=3)
    x, edge_index = torch.randn(5, 3), GRAPHS["ring with chord"].edge_index()
    with pytest.raises(ValueError, match="need a model with exits"):
        model.predict(x, edge_index, exit_threshold=0.5)
    with pytest.raises(ValueError, match="need a model with exits"):
        model.predict(x, edge_index, sample=True)
    with pytest.raises(ValueError, match="max_layers must be at least 1"):
        model.predict(x, edge_index, max_layers=-1)


def test_float32_step_is_close_to_float64() -> None:
    torch.manual_seed(0)
    conv = SASConv(16)
    h, adj = states(3, 5, 16), adjacency(GRAPHS["ring with chord"])
    single = conv(h.float(), adj).double()
    double = conv.double()(h, adj)
    assert (single - double).abs().max() < 16 * math.sqrt(16) * torch.finfo(torch.float32).eps


@pytest.mark.parametrize("storage", ["free", "paper"])
def test_weight_scale_is_a_factor_on_the_start_alone(storage: Storage) -> None:
    plain, small = (SASConv(6, storage=storage, weight_scale=scale) for scale in (1.0, 0.1))
    for _ in range(2):
        for conv in (plain, small):
            torch.manual_seed(0)
            conv.reset_parameters()
        torch.testing.assert_close(small.omega, 0.1 * plain.omega)
        torch.testing.assert_close(small.symmetric.value, 0.1 * plain.symmetric.value)
