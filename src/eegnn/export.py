"""A trained model as a program that runs without this library: ``torch.export`` and ONNX.

The program is traced from the model itself. By default it takes all steps of the budget, and who
has left is a mask: answers and exits are exact, but no time is saved. With ``while_loop=True`` it
ends when every node has left.
"""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from typing import Any, Unpack

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from torch_geometric.nn import BatchNorm

from eegnn._spmm import gather_add, sum_rows
from eegnn.graph import Adjacency, Norm, row_pointer
from eegnn.nn.eegnn import EEGNN
from eegnn.nn.exit_loop import take_layer
from eegnn.nn.exit_rule import wants_to_leave
from eegnn.nn.inputs import Options
from eegnn.nn.model import GraphModel
from eegnn.nn.program import Program
from eegnn.nn.sas_gnn import SASGNN

#: Names of the outputs: predictions ``[U, C]``, and ``layer`` and ``time`` of the exits, ``[U]``.
OUTPUTS = ("out", "exit_layer", "exit_time")


def export_program(
    model: GraphModel, while_loop: bool = False, **options: Unpack[Options]
) -> torch.export.ExportedProgram:
    """Return :meth:`~eegnn.nn.model.GraphModel.predict` as a program of ``torch.export``.

    Its inputs, by name, are ``x``, ``edge_index``, ``edge_attr`` if the model has an ``edge_dim``,
    and ``batch`` if it predicts for graphs; it returns :data:`OUTPUTS`. Numbers of nodes, edges and
    graphs are free. ``edge_index`` must hold both directions of every edge, each once, and no
    self-loops, as ``to_undirected(remove_self_loops(edge_index)[0])`` of PyG makes it: the program
    does not check its inputs.

    Args:
        model: a :class:`~eegnn.SASGNN` or :class:`~eegnn.EEGNN`.
        while_loop: end when every node has left; for :class:`~eegnn.EEGNN` with ``level="node"``.
        **options: of ``predict``; they become part of the program.
    """
    _check(model, while_loop, options)
    inputs, shapes = _example(model)
    prediction = _Prediction(model, while_loop, options)
    return torch.export.export(prediction, (), inputs, dynamic_shapes=shapes)


def export_onnx(
    model: GraphModel, while_loop: bool = False, **options: Unpack[Options]
) -> torch.onnx.ONNXProgram:
    """Return the same program as an ONNX model, which has a method ``save``.

    Args:
        model, while_loop, options: as in :func:`export_program`.
    """
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError("ONNX needs onnx and onnxscript: pip install 'eegnn[export]'") from error
    program = export_program(model, while_loop, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # the exporter's own
        found = torch.onnx.export(program, output_names=OUTPUTS, verbose=False)
    assert found is not None
    return found


def _pt2(*args: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(export_program(*args, **options), buffer)
    return buffer.getvalue()


def _onnx(*args: Any, **options: Any) -> bytes:
    return export_onnx(*args, **options).model_proto.SerializeToString()


#: By the ending of a file, what makes its content; called as :func:`export_program`.
FORMATS: dict[str, Callable[..., bytes]] = {"pt2": _pt2, "onnx": _onnx}


def _check(model: GraphModel, while_loop: bool, options: Options) -> None:
    """Refuse what cannot be exported."""
    if not isinstance(model, SASGNN | EEGNN):
        raise ValueError(f"only SASGNN and EEGNN can be exported, got {type(model).__name__}")
    if isinstance(model, SASGNN) and model.solver != "euler":
        raise ValueError(f"only solver='euler' can be exported, got {model.solver!r}")
    if model.level == "edge":
        raise ValueError("only level='node' and level='graph' can be exported, got level='edge'")
    if options.get("sample"):
        raise ValueError("an exported program draws no noise: sample must be None or False")
    # The number of graphs is a value of `batch`, and in a loop PyTorch takes no size from a value.
    if while_loop and not (isinstance(model, EEGNN) and not _takes_batch(model)):
        raise ValueError("while_loop needs EEGNN with level='node' and without step_size='mean'")


def _takes_batch(model: GraphModel) -> bool:
    return model.level == "graph" or getattr(model, "step_size", None) == "mean"


def _example(model: GraphModel) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Inputs to trace with, two paths of four nodes, and which of their sizes are free."""
    weight = model.encoder.bias
    start = torch.tensor([0, 1, 2, 4, 5, 6], device=weight.device)
    one_way = torch.stack([start, start + 1])
    inputs = {
        "x": weight.new_zeros(8, model.in_channels),
        "edge_index": torch.cat([one_way, one_way.flip(0)], dim=1),
    }
    if model.edge_dim is not None:
        inputs["edge_attr"] = weight.new_zeros(12, model.edge_dim)
    if _takes_batch(model):
        inputs["batch"] = torch.arange(8, device=weight.device) // 4
    nodes, edges = torch.export.Dim("nodes"), torch.export.Dim("edges")
    free = {"x": {0: nodes}, "edge_index": {1: edges}, "edge_attr": {0: edges}, "batch": {0: nodes}}
    return inputs, {name: free[name] for name in inputs}


class _Prediction(nn.Module):
    """A model in evaluation as a function of plain tensors."""

    def __init__(self, model: GraphModel, while_loop: bool, options: Options) -> None:
        super().__init__()
        self.model, self.while_loop, self.options = copy.deepcopy(model).eval(), while_loop, options
        for part in self.model.modules():
            if isinstance(part, BatchNorm):  # alike in evaluation, but it would count the graphs
                part.allow_single_element = False

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what ``predict`` gives for these inputs, as :data:`OUTPUTS` names it."""
        adj = EdgeList(edge_index, x.size(0), batch)
        if self.while_loop:
            assert isinstance(self.model, EEGNN)
            with torch.no_grad():
                x, _ = self.model._enter(x, adj, edge_attr)
                program = self.model.program(adj, edge_attr, **self.options)
                return _run_while(program, self.model._encode(x), adj)
        out, exits = self.model.predict(x, adj, edge_attr, **self.options)
        return out, exits.layer, exits.time


class EdgeList(Adjacency):
    """A graph as an exported program receives it: edges in any order, propagation by addition.

    Args:
        edge_index: ``[2, E]``, with both directions of every edge, each once, and no self-loops.
        num_nodes: number of nodes.
        batch: the graph of each node, or ``None``.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, batch: Tensor | None = None) -> None:
        source, target = edge_index[0].clone(), edge_index[1].clone()  # a loop takes no views
        degree = sum_rows(target, torch.ones_like(target), num_nodes)
        last: Any = 0 if batch is None else batch[-1].item()
        torch._check(last >= 0)  # which the tracer cannot infer from a value
        rowptr = row_pointer(degree, torch.int64)
        super().__init__(rowptr, source, degree, batch, last + 1, source=edge_index)
        self._row = target

    def propagate(self, x: Tensor, norm: Norm = "sym", at_targets: bool = False) -> Tensor:
        """As in :class:`~eegnn.Adjacency`, for ``[n, d]`` and ``[n]``; all nodes are targets."""
        value, _ = self._norm_values(norm, x.dtype)
        return gather_add(self.row, self.col, value, x, self.num_nodes)

    def incidence_sum(self, edge_attr: Tensor) -> Tensor:
        """As in :class:`~eegnn.Adjacency`; an edge has two columns, each of which counts half."""
        n = self.num_nodes
        return sum_rows(self.row, edge_attr / 2, n) + sum_rows(self.col, edge_attr / 2, n)

    def _of_rows(self, value: Tensor) -> Tensor:
        return value.index_select(0, self.row)


def _run_while(program: Program, h: Tensor, adj: Adjacency) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`eegnn.nn.exit_loop.run` in evaluation for nodes, with a loop within the program."""
    from torch._higher_order_ops import while_loop

    for norm in ("sym", "mean"):  # before the loop, in which nothing can be remembered
        adj._norm_values(norm, h.dtype)

    def anyone_here(number: Tensor, h: Tensor, left: Tensor, *_: Tensor) -> Tensor:
        return (number < program.max_layers) & ~left.all()

    def body(
        number: Tensor, h: Tensor, left: Tensor, layer: Tensor, log_stay: Tensor, *rest: Tensor
    ) -> tuple[Tensor, ...]:
        time, state = rest
        h, _, delta, drawn, tau = take_layer(program, 0, h, h, adj, left)
        log_stay, number = log_stay + logsigmoid(delta), number + 1
        leave = wants_to_leave(drawn, log_stay, program.exit_threshold)
        now = (leave | (number == program.max_layers)) & ~left
        layer, state = torch.where(now, number, layer), torch.where(now.unsqueeze(-1), h, state)
        return number, h, left | now, layer, log_stay, time + tau.masked_fill(left, 0.0), state

    zeros, layer = h.new_zeros(h.size(0)), torch.zeros_like(adj.degree)
    start = (layer.new_zeros(()), h, zeros.bool(), layer, zeros, zeros.clone(), h.clone())
    _, _, _, layer, _, time, state = while_loop(anyone_here, body, start)
    return program.readout(state), layer, time
