"""The data that the page shows of one run."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix
from torch import Tensor

from eegnn.analysis.calibrate import read_calibration
from eegnn.analysis.dirichlet import dirichlet_energy
from eegnn.analysis.exit_rule import accuracy_cost_curve, point_of, spread_thresholds
from eegnn.analysis.layers import LayerOutputs, outputs_by_part
from eegnn.analysis.run import open_run
from eegnn.analysis.states import stacked_states
from eegnn.compute import CPU, Compute
from eegnn.data.problem import Problem
from eegnn.nn.exit_model import ExitModel
from eegnn.nn.model import GraphModel
from eegnn.report.page_graph import explorer
from eegnn.report.page_pack import rounded
from eegnn.train.batches import Batches
from eegnn.train.evaluate import Evaluation, evaluate
from eegnn.train.metrics import ERRORS, accuracy, score_of
from eegnn.train.run import RunFolder

#: Points of a learning curve, at most.
EPOCHS = 1000
#: Classes up to which a confusion matrix is readable.
CLASSES = 30
#: Data sets whose classes have names.
NAMES = {"minesweeper": ("safe", "mine")}


def run_content(run: Path, data_dir: Path | None = None, compute: Compute = CPU) -> dict[str, Any]:
    """Return the settings, learning curves, scores and exits of a run, and its exit explorer.

    Everything but the learning curves is computed from the best weights, on test units. In lists
    with an entry for each layer the first is that of layer 1, except in ``dirichlet``, which begins
    with the states before the first step.
    """
    model, batches = open_run(run, data_dir, compute)
    if model.level == "edge":
        raise ValueError(
            f"{run}: a report draws nodes and graphs, not pairs of nodes, which eval, calibrate "
            f"and predict know"
        )
    with compute.autocast():
        return _content(RunFolder(run), model, batches)


def _content(folder: RunFolder, model: GraphModel, batches: Batches) -> dict[str, Any]:
    config, problem = folder.config(), batches.problem
    outputs, y = outputs_by_part(model, batches, ("test",))["test"]
    scored = evaluate(model, batches, ("val", "test"))
    test = scored["test"]
    summary = folder.summary() or {}
    dataset = Path(config.dataset).name  # the data may be a file somewhere
    content = {
        "name": folder.path.resolve().name,
        "dataset": dataset,
        "model": config.model,
        "split": config.split,
        "seed": config.seed,
        "level": problem.level,
        "task": problem.task,
        "metric": problem.metric,
        "lower": problem.metric in ERRORS,
        "layers": model.num_layers,
        # AP-GCN has no exit loop, but its nodes leave early too.
        "exits": isinstance(model, ExitModel) or bool((test.layer < test.num_layers).any()),
        "params": sum(p.numel() for p in model.parameters()),
        "finished": bool(summary),
        "best": summary.get("best_epoch"),
        "val": scored["val"].score,
        "test": test.score,
        "seconds": summary.get("seconds"),
        "notes": summary.get("notes", {}),
        "classes": _class_names(dataset, problem),
        "curves": learning_curves(folder),
        "left": exits_of(test),
        "byLayer": by_layer(outputs, y, problem),
        "cost": cost_curves(folder.path, outputs, y, problem),
        "confusion": _confusion(test, problem),
        "dirichlet": _dirichlet(model, batches),
    }
    return {**rounded(content), "graph": explorer(model, batches)}


def learning_curves(folder: RunFolder) -> dict[str, list[Any]]:
    """Loss, validation score and exit quantiles by epoch; every k-th and the last of very many."""
    lines = folder.metrics()
    lines = lines[::-1][:: max(1, -(-len(lines) // EPOCHS))][::-1]
    names = ("epoch", "loss", "val", "exit_quantiles")
    return {name: [line.get(name) for line in lines] for name in names}


def exits_of(found: Evaluation) -> dict[str, Any]:
    """Histograms and statistics of exit layers, from 1 on, and of exit times."""
    time = found.time.double().nan_to_num().numpy()
    top = max(float(time.max(initial=0.0)), 1e-9)
    counts, edges = np.histogram(time, bins=min(24, max(6, found.num_layers)), range=(0, top))
    return {
        **found.exits.summary(),
        "histogram": found.exits.histogram[1:].tolist(),
        "cost": float(found.exits.cost),
        "time": {"edges": edges.tolist(), "counts": counts.tolist(), "mean": float(time.mean())},
    }


def by_layer(outputs: LayerOutputs, y: Tensor, problem: Problem) -> dict[str, Any]:
    """Return the score of the units that left at each layer, and of all units, had all left there.

    A few units have no area under a curve: the units that left at a layer are scored by the share
    that is right, or by their error.
    """
    metric = problem.metric if problem.task == "regression" else "accuracy"
    left: list[float | None] = []
    for layer in range(1, outputs.num_layers + 1):
        here = outputs.own_layer == layer
        left.append(_simple_score(outputs.own_out[here], y[here], problem) if here.any() else None)
    all_units = [score_of(out, y, problem.metric, problem.scale) for out in outputs.out]
    return {"metric": metric, "left": left, "all": all_units}


def _simple_score(out: Tensor, y: Tensor, problem: Problem) -> float:
    if problem.task == "classification":
        return accuracy(out, y)
    if problem.task == "multilabel":
        return float(((out > 0) == (y > 0)).double().mean())
    return score_of(out, y, problem.metric, problem.scale)


def cost_curves(
    run: Path, outputs: LayerOutputs, y: Tensor, problem: Problem
) -> dict[str, Any] | None:
    """Score against cost by threshold and by depth limit, and what ``eegnn calibrate`` chose.

    ``None`` for a model without exits, or whose exit rules cannot be replayed.
    """
    if outputs.log_stay is None or not outputs.replayable:
        return None
    measure = partial(point_of, outputs, y, problem.metric, problem.scale)
    curve = accuracy_cost_curve(problem.metric, spread_thresholds(outputs), measure)
    limits = [measure(None, limit) for limit in range(1, outputs.num_layers + 1)]
    chosen = read_calibration(run)
    return {
        "points": [asdict(point) for point in curve.points],
        "limits": [asdict(point) for point in limits],
        "own": asdict(curve.own),
        "full": asdict(curve.full),
        "best": [] if chosen is None else [asdict(choice.test) for choice in chosen.best],
    }


def _confusion(found: Evaluation, problem: Problem) -> list[list[int]] | None:
    if problem.task != "classification" or problem.out_channels > CLASSES:
        return None
    labels = list(range(problem.out_channels))
    return confusion_matrix(found.y, found.out.argmax(dim=-1), labels=labels).tolist()


def _class_names(dataset: str, problem: Problem) -> list[str]:
    if problem.task != "classification":
        return []
    names = NAMES.get(dataset, ())
    if len(names) == problem.out_channels:
        return list(names)
    return [f"class {k}" for k in range(problem.out_channels)]


def _dirichlet(model: GraphModel, batches: Batches) -> list[float] | None:
    """Return the energy by layer, of the graph or of the first batch of test graphs."""
    batch = batches.whole() or batches.part("test")[0]
    try:
        states = stacked_states(model, batch.x, batch.adj, batch.edge_attr)
    except ValueError:  # the model does not take one state through its layers
        return None
    return dirichlet_energy(states, batch.adj).tolist()
