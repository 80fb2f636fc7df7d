from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import to_undirected
from typer.testing import CliRunner

from eegnn import EEGNN, SASGNN, Adjacency
from eegnn.cli import app
from eegnn.cli.use import Formats
from eegnn.export import FORMATS, OUTPUTS, export_onnx, export_program
from eegnn.nn.model import GraphModel
from eegnn.train.run import RunFolder
from eegnn.zoo.gcn import GCN
from tests.analysis.runs import trained
from tests.nn.model_examples import lively
from tests.train.problems import node_problem

Run = Callable[..., Any]
#: Nodes, edges drawn, graphs: none has the size that programs are traced with.
SIZES = [(30, 60, 3), (71, 400, 2), (5, 0, 5), (1, 0, 1)]


def model(name: str, level: str = "node", num_layers: int = 3, **options: Any) -> GraphModel:
    torch.manual_seed(3)
    if name == "sasgnn":
        return SASGNN(4, 8, 3, num_layers, level, **options)  # type: ignore[arg-type]
    return lively(EEGNN(4, 8, 3, num_layers, level, **options), 20.0, 0.0)  # type: ignore[arg-type]


def inputs(ours: GraphModel, n: int, edges: int, graphs: int) -> dict[str, Any]:
    """What the model takes, on undirected edges within random graphs."""
    generator = torch.Generator().manual_seed(n)
    batch = torch.arange(n) * graphs // n
    u, v = torch.randint(n, (2, edges), generator=generator)
    inside = (u != v) & (batch[u] == batch[v])
    edge_index = to_undirected(torch.stack([u, v])[:, inside], num_nodes=n)
    found = {"x": torch.randn(n, 4, generator=generator), "edge_index": edge_index}
    if ours.edge_dim is not None:
        found["edge_attr"] = torch.randn(edge_index.size(1), ours.edge_dim, generator=generator)
    if ours.level == "graph":
        found["batch"] = batch
    return found


def runner(content: bytes, file_format: str) -> Run:
    """Load a file with what it was made for."""
    if file_format == "pt2":
        return torch.export.load(io.BytesIO(content)).module()
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(content, options)
    assert [one.name for one in session.get_outputs()] == list(OUTPUTS)

    def run(**given: Tensor) -> list[Tensor]:
        arrays = {name: value.numpy() for name, value in given.items()}
        return [torch.from_numpy(one) for one in session.run(None, arrays)]

    return run


def needs(file_format: str) -> None:
    if file_format == "onnx":
        pytest.importorskip("onnxscript", reason="needs onnx and onnxscript")


CASES: dict[str, tuple[dict[str, Any], bool, dict[str, Any]]] = {
    "sasgnn": ({"name": "sasgnn", "edge_dim": 2}, False, {}),
    "eegnn": ({"name": "eegnn"}, False, {}),
    "while": ({"name": "eegnn", "num_layers": 9, "edge_dim": 2}, True, {}),
    "graphs": ({"name": "eegnn", "level": "graph", "pool": "concat"}, False, {}),
    "threshold": (
        {"name": "eegnn", "after_exit": "freeze", "num_layers": 9},
        True,
        {"exit_threshold": 0.6, "max_layers": 4},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "file_format"),
    [(case, name) for case in CASES for name in FORMATS if (case, name) != ("threshold", "onnx")],
)
def test_exported_programs_predict_as_the_model_on_graphs_of_any_size(
    case: str, file_format: str
) -> None:
    needs(file_format)
    arguments, while_loop, options = CASES[case]
    ours = model(**arguments)
    content = FORMATS[file_format](ours, while_loop, **options)
    assert b"ScatterND" not in content  # with several threads ONNX Runtime loses some of its sums
    run = runner(content, file_format)
    layers = set()
    for size in SIZES:
        given = inputs(ours, *size)
        out, exits = ours.predict(**given, **options)
        found = run(**given)
        torch.testing.assert_close(found[0], out, rtol=1e-5, atol=1e-5)
        assert torch.equal(found[1], exits.layer)
        torch.testing.assert_close(found[2], exits.time, rtol=1e-5, atol=1e-5)
        layers |= set(exits.layer.tolist())
    assert len(layers) > 1 or case == "sasgnn"


def test_a_while_loop_ends_when_everyone_has_left() -> None:
    ours = model("eegnn")
    assert isinstance(ours, EEGNN)
    lively(ours, 0.0, continue_bias=-5.0)
    ours.loop.num_layers = 10**7  # would take hours
    given = inputs(ours, 9, 20, 1)
    found = export_program(ours, while_loop=True).module()(**given)
    assert found[1].tolist() == [1] * 9


@pytest.mark.parametrize("fmt", ["adj", "edge_index"])
def test_exporting_leaves_no_trace(fmt: str) -> None:
    ours = model("eegnn").train()
    given = inputs(ours, 30, 60, 1)
    x, edge_index = given["x"], given["edge_index"]
    expected, _ = ours.predict(x, edge_index.clone())
    graph = Adjacency.from_edge_index(edge_index, 30) if fmt == "adj" else edge_index
    export_program(ours)

    class Closure(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return ours.predict(x, graph)[0]

    if fmt == "adj":  # the first to use this graph, so that all that it remembers is made there
        torch.export.export(Closure(), (x,))
    out, _ = ours.predict(x, graph)
    assert type(out) is Tensor
    assert torch.equal(out, expected)
    assert ours.training
    ours(x, graph).sum().backward()


@pytest.mark.parametrize(
    ("ours", "while_loop", "options", "message"),
    [
        (GCN(4, 8, 3, 2), False, {}, "only SASGNN and EEGNN can be exported, got GCN"),
        (SASGNN(4, 8, 3, 2, solver="rk4"), False, {}, "solver='euler'"),
        (EEGNN(4, 8, 3, 2), False, {"sample": True}, "draws no noise"),
        (EEGNN(4, 8, 3, 2, level="graph"), True, {}, "while_loop needs EEGNN with level='node'"),
        (SASGNN(4, 8, 3, 2), True, {}, "while_loop needs EEGNN"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    ours: GraphModel, while_loop: bool, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        export_program(ours, while_loop, **options)


def test_without_onnx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'eegnn\[export\]'"):
        export_onnx(model("sasgnn"))


def test_the_formats_of_the_command_exist() -> None:
    assert set(Formats) == set(FORMATS)


ALONE = """
import sys, torch
program = torch.export.load(sys.argv[1]).module()
edges = torch.tensor([[0, 1], [1, 0]])
assert len(program(x=torch.ones(3, 3), edge_index=edges)) == 3
assert "eegnn" not in sys.modules
"""


@pytest.mark.slow
def test_a_run_is_exported_and_needs_no_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    done = CliRunner().invoke(app, ["export", str(run), "--format", "pt2", "--while-loop"])
    assert done.exit_code == 0, done.output
    assert done.stdout == ""
    subprocess.run([sys.executable, "-c", ALONE, str(run / "model.pt2")], check=True, timeout=300)
    data = node_problem(24, seed=1).graphs[0]
    found = torch.export.load(run / "model.pt2").module()(x=data.x, edge_index=data.edge_index)
    out, exits = RunFolder(run).model().predict(data.x, data.edge_index)
    torch.testing.assert_close(found[0], out, rtol=1e-5, atol=1e-5)
    assert torch.equal(found[1], exits.layer)


@pytest.mark.slow
def test_a_run_is_exported_to_onnx_where_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("onnx")
    run, out = trained(tmp_path / "run", node_problem(), monkeypatch), tmp_path / "a" / "b.onnx"
    done = CliRunner().invoke(
        app, ["export", str(run), "--out", str(out), "--max-layers", "2", "--freeze"]
    )
    assert done.exit_code == 0, done.output
    data = node_problem(24, seed=1).graphs[0]
    found = runner(out.read_bytes(), "onnx")(x=data.x, edge_index=data.edge_index)
    assert int(found[1].max()) <= 2


def test_a_folder_without_a_run_exports_nothing(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", str(tmp_path)])
    assert isinstance(done.exception, FileNotFoundError)
    assert not list(tmp_path.iterdir())
