"""Random models on random graphs: the engine, the reference and double precision agree."""

from __future__ import annotations

import copy
import random
from typing import Any

import torch
from torch import Tensor

from eegnn import EEGNN, Adjacency, engine
from eegnn.engine import pruned
from tests.nn.model_examples import lively
from tests.torture.harness import Report, Wrong, run_cases

#: Largest difference of outputs, relative to their scale.
TOLERANCE = 1e-5


def random_graph(rng: random.Random, n: int) -> Tensor:
    """Both directions of the edges of a ring, a star, a random or an empty graph."""
    kind = rng.choice(["ring", "star", "sparse", "dense", "empty"])
    pairs: set[tuple[int, int]] = set()
    if kind == "ring":
        pairs = {(i, (i + 1) % n) for i in range(n)}
    elif kind == "star":
        pairs = {(0, i) for i in range(1, n)}
    elif kind in ("sparse", "dense"):
        count = n if kind == "sparse" else min(4 * n, n * n // 4)
        pairs = {(rng.randrange(n), rng.randrange(n)) for _ in range(count)}
    ends = sorted({(min(u, v), max(u, v)) for u, v in pairs if u != v})
    edges = torch.tensor(ends, dtype=torch.int64).view(-1, 2).T
    return torch.cat([edges, edges.flip(0)], dim=1)


def random_model(rng: random.Random) -> EEGNN:
    level = rng.choice(["node", "node", "graph"])
    options: dict[str, Any] = {
        "level": level,
        "head_layers": rng.choice([1, 1, 2]),
        "confidence": rng.choice([None, "mlp", "mean", "sas"]),
        "after_exit": rng.choice(["evolve", "freeze"]) if level == "node" else "evolve",
        "step_size": rng.choice(["adaptive", "adaptive", 0.5]),
        "edge_dim": rng.choice([None, None, 2]),
        "decoder_layers": rng.choice([1, 2]),
    }
    if level == "graph":
        options["pool"] = rng.choice(["mean", "add", "max", "concat"])
    torch.manual_seed(rng.getrandbits(32))
    width = rng.choice([4, 8, 16, 32])
    return lively(
        EEGNN(5, width, rng.randint(1, 5), rng.randint(1, 20), **options),
        scale=rng.choice([0.5, 1.0, 4.0]),
        continue_bias=rng.uniform(-1, 3),
    ).eval()


@torch.no_grad()
def case(rng: random.Random, report: Report) -> str:
    model, n = random_model(rng), rng.choice([1, 2, 7, 50, 300])
    edge_index = random_graph(rng, n)
    batch = None
    if model.level == "graph":
        batch = torch.arange(n) // rng.choice([1, 3, 20])
        edge_index = edge_index[:, batch[edge_index[0]] == batch[edge_index[1]]]
    weight = torch.rand(edge_index.size(1)) if rng.random() < 0.3 else None
    adj = Adjacency.from_edge_index(edge_index, n, batch, edge_weight=weight, directed=False)
    x = torch.randn(n, 5) * rng.choice([0.1, 1.0, 10.0])
    edge_attr = torch.randn(edge_index.size(1), 2) if model.edge_dim else None
    knobs: dict[str, Any] = {"exit_threshold": rng.choice([None, None, 0.3, 0.9])}
    found = {}
    for name, dtype in (("pruned", torch.float32), ("reference", torch.float32), ("double", None)):
        own = copy.deepcopy(model).to(dtype or torch.float64)
        kind = next(own.parameters()).dtype
        attr = None if edge_attr is None else edge_attr.to(kind)
        program = own.loop.program(adj, attr, own.decoder, **knobs)
        backend = engine.BACKENDS["pruned" if name == "pruned" else "reference"]
        found[name] = backend(program, own.encoder(x.to(kind)), adj)
    return compare(found, report)


def compare(found: dict[str, Any], report: Report) -> str:
    out, truth = found["pruned"][1], found["double"][1]
    if not torch.equal(out.layer, found["reference"][1].layer):
        raise Wrong(
            f"exits of engine and reference differ: {out.layer} {found['reference'][1].layer}"
        )
    scale = max(1.0, float(found["double"][0].abs().max()) if found["double"][0].numel() else 0.0)
    apart = (found["pruned"][0] - found["reference"][0]).abs().max() if out.layer.numel() else 0.0
    if float(apart) > TOLERANCE * scale:
        raise Wrong(f"engine and reference are {float(apart) / scale:.2g} apart")
    if not torch.equal(out.layer, truth.layer):
        share = float((out.layer != truth.layer).double().mean())
        raise Wrong(f"exits differ from those in double precision for {share:.2%} of the units")
    exact = found["double"][0]
    apart = (found["pruned"][0].double() - exact).abs().max() if exact.numel() else 0.0
    if float(apart) > TOLERANCE * scale:
        raise Wrong(f"engine and double precision are {float(apart) / scale:.2g} apart")
    return "early" if bool((truth.layer < truth.num_layers).any()) else "full depth"


def run(seed: int, numbers: range) -> Report:
    """Let the graph shrink whenever it can, however small it is."""
    changed = {"SMALLEST": 0, "BUILD_WORK": 0.0}
    before = {name: getattr(pruned, name) for name in changed}
    for name, value in changed.items():
        setattr(pruned, name, value)
    try:
        return run_cases("models", seed, numbers, case)
    finally:
        for name, value in before.items():
            setattr(pruned, name, value)
