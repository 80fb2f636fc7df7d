from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch_geometric.data import Batch, Data

from eegnn import load, save
from eegnn.nn.exits import Exits
from eegnn.zoo.gcn import GCN
from tests.graphs import (
    TRIANGLE_AND_TAIL,
    both_ways,
    features,
)
from tests.nn.model_examples import count


def model(num_layers: int = 3, **options: object) -> GCN:
    torch.manual_seed(0)
    built = GCN(3, 5, 2, num_layers, **options).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for name, weight in built.layers.named_parameters():
            if name.endswith("bias"):
                weight.normal_()
    return built


def test_residual_connections_change_the_result() -> None:
    x, edges = torch.from_numpy(features(4)), both_ways(TRIANGLE_AND_TAIL)
    assert not torch.allclose(model(residual=True)(x, edges), model(residual=False)(x, edges))


@pytest.mark.parametrize("level", ["node", "graph"])
def test_a_batch_equals_its_graphs_one_by_one(level: str) -> None:
    gcn = model(level=level)
    several = [
        Data(x=torch.from_numpy(features(n, seed=n)), edge_index=both_ways(pairs))
        for n, pairs in [(4, TRIANGLE_AND_TAIL), (1, []), (3, [(0, 2)]), (5, [(0, 1), (1, 4)])]
    ]
    batch = Batch.from_data_list(several)
    together = gcn(batch.x, batch.edge_index, batch=batch.batch)
    alone = [
        gcn(graph.x, graph.edge_index, batch=torch.zeros(len(graph.x), dtype=torch.int64))
        for graph in several
    ]
    assert torch.allclose(together, torch.cat(alone), atol=1e-12)


def test_gradients_are_right() -> None:
    gcn, edges = model(num_layers=2, residual=True), both_ways(TRIANGLE_AND_TAIL)
    x = torch.from_numpy(features(4)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: gcn(x, edges), x)
    gcn(x, edges).sum().backward()
    assert all(parameter.grad is not None for parameter in gcn.parameters())


def test_everyone_leaves_at_the_last_layer() -> None:
    out, exits = model()(
        torch.from_numpy(features(4)), both_ways(TRIANGLE_AND_TAIL), return_exits=True
    )
    assert isinstance(exits, Exits)
    assert exits.layer.tolist() == [3] * 4
    assert exits.cost.item() == 1.0
    assert out.shape == (4, 2)


@pytest.mark.parametrize(("limit", "layers"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_max_layers_gives_a_shallower_model(limit: int, layers: int) -> None:
    deep, shallow = model(), model(num_layers=layers)
    shallow.load_state_dict(deep.state_dict(), strict=False)
    x, edges = torch.from_numpy(features(4)), both_ways(TRIANGLE_AND_TAIL)
    out, exits = deep.predict(x, edges, max_layers=limit)
    assert exits.layer.tolist() == [layers] * 4
    assert torch.equal(out, shallow(x, edges))


def test_it_has_no_exits_to_tune() -> None:
    with pytest.raises(ValueError, match="exit_threshold and sample need a model with exits"):
        model().predict(
            torch.from_numpy(features(4)), both_ways(TRIANGLE_AND_TAIL), exit_threshold=0.5
        )


def test_it_takes_no_edge_features() -> None:
    edges = both_ways(TRIANGLE_AND_TAIL)
    with pytest.raises(ValueError, match="edge_attr was given"):
        model()(torch.from_numpy(features(4)), edges, torch.ones(8, 1, dtype=torch.float64))


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    gcn, x = model(residual=True, decoder_layers=2), torch.from_numpy(features(4))
    save(gcn, tmp_path / "gcn.safetensors")
    again = load(tmp_path / "gcn.safetensors")
    assert type(again) is GCN
    assert again.config == gcn.config
    edges = both_ways(TRIANGLE_AND_TAIL)
    assert torch.equal(again(x, edges), gcn(x, edges))


def test_reset_draws_all_weights_anew() -> None:
    gcn = model()
    before = {name: weight.clone() for name, weight in gcn.named_parameters()}
    gcn.reset_parameters()
    same = [name for name, weight in gcn.named_parameters() if torch.equal(weight, before[name])]
    assert same == []


@pytest.mark.parametrize(
    ("in_channels", "out_channels", "with_10_layers", "with_20_layers"),
    [
        (301, 2, 20288, 30848),
        (300, 18, 20768, 31328),
        (7, 2, 10880, 21440),
        (10, 2, 10976, 21536),
        (300, 5, 20352, 30912),
    ],
    ids=["Questions", "Roman-empire", "Minesweeper", "Tolokers", "Amazon-ratings"],
)
def test_it_has_the_papers_number_of_parameters(
    in_channels: int, out_channels: int, with_10_layers: int, with_20_layers: int
) -> None:
    assert count(GCN(in_channels, 32, out_channels, 10)) == with_10_layers
    assert count(GCN(in_channels, 32, out_channels, 20)) == with_20_layers


def test_its_repr_is_one_line() -> None:
    assert repr(GCN(3, 5, 2, 4)) == "GCN(3, 5, 2, num_layers=4, level='node')"


@pytest.mark.parametrize("residual", [1, "yes", None])
def test_residual_is_yes_or_no(residual: object) -> None:
    with pytest.raises(TypeError, match="residual must be True or False"):
        GCN(3, 5, 2, residual=residual)  # type: ignore[arg-type]
