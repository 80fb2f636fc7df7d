"""What docs/stack.md promises, where no other test shows it, and that its tests exist."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx  # type: ignore[import-untyped]
import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader, NodeLoader, RandomNodeLoader
from torch_geometric.nn import GCN, GCNConv, global_mean_pool
from torch_geometric.sampler import BaseSampler, NodeSamplerInput, SamplerOutput
from torch_geometric.utils import (
    from_networkx,
    from_scipy_sparse_matrix,
    is_undirected,
    to_torch_coo_tensor,
    to_torch_csr_tensor,
)

from eegnn import EEGNN, Adjacency, Exits, SASConv
from eegnn.train.metrics import accuracy, roc_auc
from tests.processes import run_ranks

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "stack.md"
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
MEASUREMENTS = ("ba_shapes", "node_exits")
EXAMPLES = [path for path in EXAMPLES if path.stem not in MEASUREMENTS]
EDGES = torch.tensor([[4, 0, 1, 2, 3, 1, 0, 2], [1, 1, 0, 3, 2, 4, 2, 0]])
N, WIDTH = 5, 4


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def model(**options: Any) -> EEGNN:
    return EEGNN(WIDTH, 8, 2, num_layers=3, **options).eval()


def graph(edge_index: Tensor = EDGES) -> Data:
    return Data(x=torch.randn(N, WIDTH), edge_index=edge_index, y=torch.tensor([0, 1, 0, 1, 0]))


@pytest.mark.parametrize(
    "convert",
    [
        lambda edges: edges,
        lambda edges: edges.int(),
        lambda edges: EdgeIndex(edges, sparse_size=(N, N)),
        lambda edges: to_torch_csr_tensor(edges.flip(0), size=(N, N)),
        lambda edges: to_torch_coo_tensor(edges.flip(0), size=(N, N)),
    ],
    ids=["Data", "int32", "EdgeIndex", "adj_t CSR", "adj_t COO"],
)
def test_graphs_that_gcn_takes_are_taken(convert: Callable[[Tensor], Tensor]) -> None:
    data, ours, gcn = graph(), model(), GCN(WIDTH, 8, 2, 2)
    edges = convert(data.edge_index)
    assert ours(data.x, edges).shape == gcn(data.x, edges).shape
    torch.testing.assert_close(ours(data.x, edges), ours(data.x, data.edge_index))
    conv, gcn_conv = SASConv(WIDTH), GCNConv(WIDTH, WIDTH)
    assert conv(data.x, edges).shape == gcn_conv(data.x, edges).shape


@pytest.mark.parametrize(
    ("x", "edge_index"),
    [
        (torch.randn(N, WIDTH + 1), EDGES),
        (torch.randn(N, WIDTH).double(), EDGES),
        (torch.randn(N, WIDTH), EDGES + 1),
        (torch.randn(N, WIDTH), EDGES - 1),
        (torch.randn(N, WIDTH), EDGES.float()),
        (torch.randn(N, WIDTH), EDGES[0]),
        (torch.randn(N, WIDTH), None),
    ],
)
def test_inputs_that_gcn_refuses_are_refused_by_name(x: Tensor, edge_index: Any) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        GCN(WIDTH, 8, 2, 2)(x, edge_index)
    with pytest.raises((ValueError, TypeError), match=r"^(x|edge_index) "):
        model()(x, edge_index)


def test_a_batch_has_a_row_for_each_graph_as_with_pooling_of_pyg() -> None:
    graphs, ours, gcn = [graph() for _ in range(3)], model(level="graph"), GCN(WIDTH, 8, 2, 2)
    batch = Batch.from_data_list(graphs)
    out = ours(batch.x, batch.edge_index, batch=batch.batch)
    assert out.shape == global_mean_pool(gcn(batch.x, batch.edge_index), batch.batch).shape
    alone = torch.cat([ours(data.x, data.edge_index) for data in graphs])
    torch.testing.assert_close(out, alone)


def test_loaders_feed_a_model(recwarn: pytest.WarningsRecorder) -> None:
    ours, graphs = model(level="graph"), [graph() for _ in range(5)]
    sizes = [
        ours(data.x, data.edge_index, batch=data.batch, batch_size=data.num_graphs).size(0)
        for data in DataLoader(graphs, batch_size=2)
    ]
    assert sizes == [2, 2, 1]
    of_nodes = model()
    parts = [of_nodes(data.x, data.edge_index) for data in RandomNodeLoader(graph(), num_parts=2)]
    assert sum(map(len, parts)) == N
    assert not [w for w in recwarn if "directed" in str(w.message)]


class Neighbors(BaseSampler):
    """What the compiled sampler of NeighborLoader does, with all neighbours and in Python."""

    def __init__(self, edge_index: Tensor, hops: int, bidirectional: bool) -> None:
        self.edge_index, self.hops, self.bidirectional = edge_index, hops, bidirectional

    def sample_from_nodes(self, index: NodeSamplerInput, **kwargs: Any) -> SamplerOutput:
        nodes, begin, edges = index.node.tolist(), 0, []
        for _ in range(self.hops):
            begin, targets = len(nodes), nodes[begin:]
            for target in targets:
                found = (self.edge_index[1] == target).nonzero().view(-1).tolist()
                edges += [(self.edge_index[0, e].item(), target, e) for e in found]
                nodes += {source for source, _, _ in edges[-len(found) :]} - set(nodes)
        row, col = ([nodes.index(edge[end]) for edge in edges] for end in (0, 1))
        parts = (nodes, row, col, [edge[2] for edge in edges])
        out = SamplerOutput(*map(torch.tensor, parts), metadata=(index.input_id, None))
        return out.to_bidirectional() if self.bidirectional else out

    def sample_from_edges(self, index: Any, **kwargs: Any) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("bidirectional", [False, True])
def test_samples_of_neighbors_answer_for_their_seeds_without_a_warning(
    bidirectional: bool, recwarn: pytest.WarningsRecorder
) -> None:
    """A step reads neighbours and their degrees: two hops have the answers of the whole graph."""
    data = graph()
    ours = EEGNN(WIDTH, 8, 2, num_layers=1, confidence="mlp").eval()
    whole, count = ours(data.x, data.edge_index), 0
    for part in NodeLoader(data, Neighbors(EDGES, 2, bidirectional), batch_size=2):
        edges = part.edge_index
        assert is_undirected(edges) == bidirectional
        if not bidirectional:
            edges = Adjacency.from_edge_index(edges, part.num_nodes, directed=False)
        seeds = part.batch_size
        torch.testing.assert_close(ours(part.x, edges)[:seeds], whole[part.n_id[:seeds]])
        count += seeds
    assert count == N
    # Not those of PyG, which on Python 3.13 has one of its own.
    assert not [warning for warning in recwarn if issubclass(warning.category, UserWarning)]


def test_graphs_of_networkx_scipy_and_pandas_come_through_pyg() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    karate = nx.karate_club_graph()
    pairs = torch.tensor(list(karate.edges)).T
    edges = torch.cat([pairs, pairs.flip(0)], dim=1)
    weight = torch.tensor([float(w) for *_, w in karate.edges.data("weight")]).repeat(2)
    x, ours = torch.randn(34, WIDTH), model()
    frame = pandas.DataFrame(x.numpy())
    features = torch.tensor(frame.to_numpy())
    found = from_networkx(karate)
    torch.testing.assert_close(ours(features, found.edge_index), ours(x, edges))
    index, values = from_scipy_sparse_matrix(nx.to_scipy_sparse_array(karate))
    torch.testing.assert_close(
        ours(x, index, edge_weight=values.float()), ours(x, edges, edge_weight=weight)
    )


@pytest.mark.slow
def test_a_compiled_model_trains_as_without_the_compiler() -> None:
    torch.compiler.reset()
    ours, data = model().train(), graph()
    compiled = torch.compile(ours, backend="eager")
    found = []
    for call in (ours, compiled):
        torch.manual_seed(1)
        out, exits = call(data.x, data.edge_index, return_exits=True)
        loss = out.square().sum() + exits.cost
        grads = torch.autograd.grad(loss, list(ours.parameters()), allow_unused=True)
        found.append((out, exits.layer, exits.cost, *grads))
    for plain, fast in zip(*found, strict=True):
        torch.testing.assert_close(plain, fast, rtol=1e-4, atol=1e-5)


DDP = """
import torch
from torch.nn.parallel import DistributedDataParallel
from eegnn import EEGNN

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
model = EEGNN(4, 8, 2, num_layers=3)
wrapped = DistributedDataParallel(model)
edges = torch.tensor([[4, 0, 1, 2, 3, 1, 0, 2], [1, 1, 0, 3, 2, 4, 2, 0]])
graphs = [torch.randn(5, 4) for _ in range(2)]

def loss(model, rank):
    torch.manual_seed(rank)
    out, exits = model(graphs[rank], edges, return_exits=True)
    return out.square().sum() + exits.cost

loss(wrapped, rank).backward()
found = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
((loss(model, 0) + loss(model, 1)) / 2).backward()
for ours, theirs in zip(found, model.parameters(), strict=True):
    torch.testing.assert_close(ours, theirs.grad, rtol=1e-4, atol=1e-5)
print("equal")
torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_gradients_under_ddp_are_the_mean_over_processes(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(DDP)
    done = run_ranks(program)
    assert done.stdout.count("equal") == 2


def test_torchmetrics_and_ogb_score_outputs() -> None:
    classification = pytest.importorskip("torchmetrics.classification", reason="needs torchmetrics")
    data = graph()
    out, _ = model().predict(data.x, data.edge_index)
    score = classification.MulticlassAccuracy(2, average="micro")(out, data.y)
    assert score.item() == pytest.approx(accuracy(out, data.y))
    ogb = pytest.importorskip("ogb.graphproppred", reason="needs eegnn[ogb]")
    entry = {"y_true": data.y[:, None], "y_pred": (out[:, 1] - out[:, 0])[:, None]}
    assert ogb.Evaluator("ogbg-molhiv").eval(entry)["rocauc"] == pytest.approx(roc_auc(out, data.y))


def run_example(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    return runpy.run_path(str(ROOT / "docs" / "examples" / name))


@pytest.mark.slow
def test_the_lightning_module_trains_predicts_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lightning = pytest.importorskip("lightning", reason="needs lightning")
    names = run_example("lightning_module.py", tmp_path, monkeypatch)
    trainer, val = names["trainer"], names["val"]
    assert trainer.callback_metrics["accuracy"] > 0.8
    assert trainer.callback_metrics["cost"] < 0.9
    out, exits = trainer.predict(dataloaders=val)[0]
    assert isinstance(exits, Exits)
    assert len(exits.layer) == len(out) == 20
    (checkpoint,) = tmp_path.rglob("*.ckpt")
    again = lightning.Trainer(max_epochs=21, logger=False, enable_checkpointing=False)
    again.fit(names["Classifier"](8, 3), names["train"], ckpt_path=checkpoint)
    assert again.global_step == trainer.global_step + len(names["train"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("fabric_loop.py", "lightning"),
        ("accelerate_loop.py", "accelerate"),
        ("classifier.py", "torch"),
    ],
)
def test_a_loop_learns_and_leaves_early(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package, reason=f"needs {package}")
    names = run_example(name, tmp_path, monkeypatch)
    assert names["accuracy"] > 0.8
    assert names["exits"].cost < 0.9


@pytest.mark.slow
def test_the_optuna_study_weighs_accuracy_against_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("optuna", reason="needs eegnn[tune]")
    study = run_example("optuna_objective.py", tmp_path, monkeypatch)["study"]
    assert len(study.trials) == 5
    assert all(score > 0.4 and 0 < cost <= 1 for score, cost in (t.values for t in study.trials))
    assert max(study.best_trials, key=lambda trial: trial.values[0]).values[0] > 0.7


def test_ten_lines_make_a_classifier() -> None:
    text = (ROOT / "docs" / "examples" / "classifier.py").read_text(encoding="utf-8")
    (definition,) = [n for n in ast.parse(text).body if isinstance(n, ast.ClassDef)]
    assert definition.end_lineno is not None
    assert definition.end_lineno - definition.lineno + 1 == 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_uses_the_cost_and_is_shown_and_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 40
    assert "exits.cost" in text
    assert f"literalinclude}} examples/{path.name}" in PAGE.read_text(encoding="utf-8")
    assert f'"{path.name}"' in Path(__file__).read_text(encoding="utf-8")


def test_every_row_of_the_page_names_tests_that_exist() -> None:
    paragraphs = PAGE.read_text(encoding="utf-8").split("\n\n")
    tables = [text.strip().splitlines() for text in paragraphs if text.startswith("| ")]
    assert all(lines[1].startswith("|---") for lines in tables)  # no table is torn in two
    rows = [row for head, _, *rows in tables if head.endswith("shown by |") for row in rows]
    assert len(rows) > 20
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, row
        for path, test in named:
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            assert test in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}, test
