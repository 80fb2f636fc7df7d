"""Calls of models with right and wrong arguments.

The same graph in another form gives the same result; a wrong argument is an error that names it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from eegnn import Adjacency
from eegnn.io import MODELS
from eegnn.nn.model import GraphModel
from eegnn.typing import Level
from eegnn.zoo.registry import ENTRIES
from tests.torture.harness import Report, Wrong, check_sentence, run_cases
from tests.torture.models import random_graph

TOLERANCE = 1e-4


@dataclass(frozen=True)
class Call:
    """A model and what it is called with."""

    model: GraphModel
    x: Any
    edge_index: Any
    edge_attr: Any = None
    batch: Any = None
    edge_weight: Any = None
    batch_size: Any = None
    knobs: tuple[tuple[str, Any], ...] = ()

    def __call__(self) -> Tensor:
        given = {"edge_attr": self.edge_attr, "batch": self.batch, "edge_weight": self.edge_weight}
        if self.knobs:
            return self.model.predict(self.x, self.edge_index, **given, **dict(self.knobs))[0]
        return self.model(self.x, self.edge_index, **given, batch_size=self.batch_size)


def random_call(rng: random.Random) -> Call:
    name = rng.choice(list(ENTRIES))
    cls = MODELS[ENTRIES[name].kind]
    level: Level = "node" if rng.random() < 0.5 else "graph"
    edge_dim = rng.choice([None, 2]) if cls.uses_edges else None
    if name in ("gine", "gatedgcn"):
        edge_dim = rng.choice([None, 2])
    torch.manual_seed(rng.getrandbits(32))
    layers = rng.randint(1, 3)
    model = cls(3, 8, 2, layers, level=level, edge_dim=edge_dim, **ENTRIES[name].options).eval()
    n = rng.randint(4, 12)
    edge_index = random_graph(rng, n)
    batch = None
    if level == "graph" or rng.random() < 0.3:
        batch = torch.arange(n) // 4
        edge_index = edge_index[:, batch[edge_index[0]] == batch[edge_index[1]]]
    attr = None if edge_dim is None else torch.randn(edge_index.size(1), edge_dim)
    return Call(model, torch.randn(n, 3), edge_index, attr, batch)


def _sparse(call: Call, layout: torch.layout) -> Any:
    n, ends = call.x.size(0), call.edge_index.flip(0)
    coo = torch.sparse_coo_tensor(ends, torch.ones(ends.size(1)), (n, n)).coalesce()
    return coo if layout == torch.sparse_coo else coo.to_sparse_csr()


def _shuffled(call: Call) -> Call:
    order = torch.randperm(call.edge_index.size(1))
    attr = None if call.edge_attr is None else call.edge_attr[order]
    return replace(call, edge_index=call.edge_index[:, order], edge_attr=attr)


def _with_columns(call: Call, columns: Tensor) -> Call:
    if call.edge_attr is not None:
        return call
    return replace(call, edge_index=torch.cat([call.edge_index, columns], dim=1))


#: The same in another form.
SAME: dict[str, Callable[[Call], Call]] = {
    "as it is": lambda call: call,
    "int32": lambda call: replace(call, edge_index=call.edge_index.int()),
    "batch int32": lambda call: replace(
        call, batch=None if call.batch is None else call.batch.int()
    ),
    "not contiguous": lambda call: replace(call, x=call.x.T.contiguous().T),
    "with gradient": lambda call: replace(call, x=call.x.clone().requires_grad_()),
    "shuffled": _shuffled,
    "twice": lambda call: _with_columns(call, call.edge_index[:, :3]),
    "self-loops": lambda call: _with_columns(call, torch.arange(3).repeat(2, 1)),
    "one direction": lambda call: (
        call
        if call.edge_attr is not None
        else replace(call, edge_index=call.edge_index[:, call.edge_index[0] < call.edge_index[1]])
    ),
    "Adjacency": lambda call: replace(
        call,
        edge_index=Adjacency.from_edge_index(call.edge_index, call.x.size(0), call.batch),
        batch=None,
    ),
    "COO": lambda call: (
        call
        if call.edge_attr is not None
        else replace(call, edge_index=_sparse(call, torch.sparse_coo))
    ),
    "CSR": lambda call: (
        call
        if call.edge_attr is not None
        else replace(call, edge_index=_sparse(call, torch.sparse_csr))
    ),
    "predict": lambda call: replace(call, knobs=(("max_layers", call.model.num_layers),)),
}


def _set(tensor: Tensor, value: float) -> Tensor:
    changed = tensor.clone()
    changed.view(-1)[random.Random(0).randrange(max(changed.numel(), 1))] = value
    return changed


def _value(value: Any, call: Call) -> Any:
    return value


def _made(make: Callable[[Tensor], Any], name: str, call: Call) -> Any:
    return make(getattr(call, name))


def _bad_features(name: str) -> dict[str, Callable[[Call], Any]]:
    """What features of nodes, or of edges, must not be."""
    return {
        "NaN": lambda call: _set(getattr(call, name), float("nan")),
        "infinite": lambda call: _set(getattr(call, name), float("-inf")),
        "huge": lambda call: _set(getattr(call, name), 1e38),
        "a column more": lambda call: getattr(call, name).repeat(1, 2),
        "a vector": lambda call: getattr(call, name)[:, 0],
        "of three dimensions": lambda call: getattr(call, name).unsqueeze(0),
        "integers": lambda call: getattr(call, name).long(),
        "double": lambda call: getattr(call, name).double(),
        "complex": lambda call: getattr(call, name).to(torch.complex64),
        "boolean": lambda call: getattr(call, name) > 0,
        "sparse": lambda call: getattr(call, name).to_sparse(),
        "meta": lambda call: getattr(call, name).to("meta"),
        "a list": lambda call: getattr(call, name).tolist(),
        "an array": lambda call: getattr(call, name).numpy(),
        "a text": lambda call: name,
    }


_INTEGERS: dict[str, Callable[[Tensor], Any]] = {
    "floats": lambda t: t.float(),
    "int16": lambda t: t.short(),
    "boolean": lambda t: t > 0,
    "a list": lambda t: t.tolist(),
    "an array": lambda t: t.numpy(),
    "meta": lambda t: t.to("meta"),
    "a number": lambda t: 3,
    "of three dimensions": lambda t: t.reshape(1, *t.shape).unsqueeze(0),
}
#: What must be refused: the argument, and what is given for it.
WRONG: dict[str, dict[str, Callable[[Call], Any]]] = {
    "x": {
        **_bad_features("x"),
        "none": lambda call: None,
        "no rows": lambda call: call.x[:0] if call.edge_index.numel() else None,
    },
    "edge_attr": {
        **_bad_features("edge_attr"),
        "a row less": lambda call: call.edge_attr[1:],
        "batch instead": lambda call: torch.zeros(call.x.size(0), dtype=torch.int64),
    },
    "edge_index": {
        **{how: partial(_made, make, "edge_index") for how, make in _INTEGERS.items()},
        "negative": lambda call: _set(call.edge_index, -1),
        "too large": lambda call: _set(call.edge_index, call.x.size(0)),
        "far too large": lambda call: _set(call.edge_index, 10**14),
        "three rows": lambda call: torch.cat([call.edge_index, call.edge_index[:1]]),
        "none": lambda call: None,
        "sparse of another size": lambda call: torch.eye(call.x.size(0) + 1).to_sparse(),
        "sparse with NaN": lambda call: (torch.eye(call.x.size(0)).flip(0) * torch.nan).to_sparse(),
    },
    "batch": {
        **{how: partial(_made, make, "batch") for how, make in _INTEGERS.items()},
        "too short": lambda call: call.batch[1:],
        "descending": lambda call: call.batch.flip(0),
        "negative": lambda call: call.batch - 1,
        "huge": lambda call: _set(call.batch * 0, 0).index_fill_(0, torch.tensor(-1), 10**14),
        "sparse": lambda call: call.batch.to_sparse(),
        "sparse CSR": lambda call: call.batch.view(1, -1).to_sparse_csr(),
    },
    "batch_size": {
        "too small": lambda call: 0,
        "huge": lambda call: 10**14,
        "a text": lambda call: "two",
        "half": lambda call: 1.5,
    },
    "edge_weight": {
        "too short": lambda call: torch.ones(max(call.edge_index.size(1) - 1, 0)),
        "negative": lambda call: -torch.ones(call.edge_index.size(1)),
        "NaN": lambda call: torch.full((call.edge_index.size(1),), torch.nan),
        "integers": lambda call: torch.ones(call.edge_index.size(1), dtype=torch.int64),
        "sparse": lambda call: torch.ones(call.edge_index.size(1)).to_sparse(),
        "a matrix": lambda call: torch.ones(call.edge_index.size(1), 1),
        "meta": lambda call: torch.ones(call.edge_index.size(1), device="meta"),
    },
    "max_layers": {repr(v): partial(_value, v) for v in (0, -1, 1.5, True, "3")},
    "exit_threshold": {
        repr(v): partial(_value, v) for v in (-0.1, 1.1, float("nan"), "half", True)
    },
}


def same_result(rng: random.Random) -> str:
    call = random_call(rng)
    how = rng.choice(list(SAME))
    other = SAME[how](call)
    with torch.no_grad():
        torch.manual_seed(0)  # Co-GNN draws its actions in evaluation too
        expected = call()
        torch.manual_seed(0)
        found = other()
    if not bool(expected.isfinite().all()):
        raise Wrong(f"{call.model!r} has outputs that are no numbers")
    if expected.shape != found.shape or not torch.allclose(
        expected, found, rtol=TOLERANCE, atol=TOLERANCE
    ):
        raise Wrong(f"{call.model!r}: another result for the same graph, {how}")
    return f"same: {how}"


def refused(rng: random.Random) -> str:
    call = random_call(rng)
    argument = rng.choice(list(WRONG))
    how = rng.choice(list(WRONG[argument]))
    needs = {"edge_attr": call.edge_attr, "batch": call.batch, "batch_size": call.batch}
    needs["edge_weight"] = call.edge_index if call.edge_index.size(1) > 1 else None
    needs["edge_index"] = call.edge_index if call.edge_index.size(1) > 1 else None
    if argument in needs and needs[argument] is None:
        return "does not apply"
    if argument == "edge_attr" and call.edge_attr.numel() < 2:
        return "does not apply"
    if argument == "batch" and how == "descending" and call.batch[-1] == call.batch[0]:
        return "does not apply"
    value = WRONG[argument][how](call)
    if argument in ("max_layers", "exit_threshold"):
        call = replace(call, knobs=((argument, value),))
    else:
        call = replace(call, **{argument: value})
    # The values of a sparse edge_index are weights, and without rows x has too few for the others.
    also: dict[str, tuple[str, ...]] = {
        "batch_size": ("num_graphs",),
        "sparse with NaN": ("edge_weight",),
    }
    also["no rows"] = ("edge_index", "batch")
    try:
        call()
    except Exception as error:
        check_sentence(error, argument, *also.get(argument, ()), *also.get(str(how), ()))
        return f"refused: {argument}"
    raise Wrong(f"{call.model!r} took {argument} that is {how!r}")


def case(rng: random.Random, report: Report) -> str:
    return same_result(rng) if rng.random() < 0.4 else refused(rng)


def run(seed: int, numbers: range) -> Report:
    return run_cases("calls", seed, numbers, case)
