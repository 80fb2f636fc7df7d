"""All that the page shows of one run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix
from torch import Tensor

from eegnn.analysis.calibrate import read_calibration
from eegnn.analysis.dirichlet import dirichlet_energy
from eegnn.analysis.exit_rule import accuracy_cost_curve, point_of
from eegnn.analysis.layers import LayerOutputs, has_exits, outputs_by_layer, outputs_by_part
from eegnn.analysis.run import open_run
from eegnn.analysis.states import stacked_states
from eegnn.data.problem import Problem
from eegnn.nn.model import GraphModel
from eegnn.report.page_graph import explorer
from eegnn.report.page_pack import rounded
from eegnn.train.batches import Batches
from eegnn.train.evaluate import Evaluation, evaluate
from eegnn.train.metrics import ERRORS, score_of
from eegnn.train.run import RunFolder

#: Points of a learning curve, at most.
EPOCHS = 1000
#: Classes up to which a confusion matrix is readable.
CLASSES = 30
#: Data sets whose classes have names.
NAMES = {"minesweeper": ("safe", "mine")}


def run_content(run: Path, data_dir: Path | None = None) -> dict[str, Any]:
    """Look into a run: what it was told, how it learned, who left when, and what that is worth.

    Everything but the learning curves is computed anew from the best weights, on test units. In
    lists with an entry a layer the first is that of layer 1, but for ``dirichlet``, which begins
    with the states before the first step.

    Args:
        run: the folder of the run.
        data_dir: the data folder; ``None`` for the default.
    """
    folder = RunFolder(run)
    config = folder.config()
    model, batches = open_run(run, data_dir)
    problem, whole = batches.problem, batches.whole()
    everyone = None
    if whole is not None:
        everyone = outputs_by_layer(model, whole.x, whole.adj, whole.edge_attr)
        seen, y = everyone.of(problem.test), batches.part("test")[0].labels
    else:
        seen, y = outputs_by_part(model, batches, ("test",))["test"]
    scored = evaluate(model, batches, ("val", "test"))
    found = scored["test"]
    summary = folder.summary() or {}
    dataset = Path(config.dataset).name  # the data may be a file somewhere
    content = {
        "name": run.resolve().name,
        "dataset": dataset,
        "model": config.model,
        "split": config.split,
        "seed": config.seed,
        "level": problem.level,
        "task": problem.task,
        "metric": problem.metric,
        "lower": problem.metric in ERRORS,
        "layers": model.num_layers,
        # AP-GCN has no exit loop, and leaves early all the same.
        "exits": has_exits(model) or bool((found.layer < found.num_layers).any()),
        "params": sum(p.numel() for p in model.parameters()),
        "finished": bool(summary),
        "best": summary.get("best_epoch"),
        "val": scored["val"].score,
        "test": found.score,
        "seconds": summary.get("seconds"),
        "notes": summary.get("notes", {}),
        "classes": _class_names(dataset, problem),
        "curves": learning_curves(folder),
        "left": exits_of(found),
        "byLayer": by_layer(seen, y, problem),
        "cost": cost_curves(run, seen, y, problem),
        "confusion": _confusion(found, problem),
        "dirichlet": _dirichlet(model, batches),
    }
    return {**rounded(content), "graph": explorer(model, batches, everyone)}


def learning_curves(folder: RunFolder) -> dict[str, list[Any]]:
    """Loss, validation score and exit quantiles by epoch; every k-th and the last of very many."""
    lines = folder.metrics()
    lines = lines[::-1][:: max(1, -(-len(lines) // EPOCHS))][::-1]
    names = ("epoch", "loss", "val", "exit_quantiles")
    return {name: [line.get(name) for line in lines] for name in names}


def exits_of(found: Evaluation) -> dict[str, Any]:
    """Who left when, in layers, from 1 on, and in time."""
    time = found.time.double().nan_to_num().cpu().numpy()
    top = max(float(time.max(initial=0.0)), 1e-9)
    counts, edges = np.histogram(time, bins=min(24, max(6, found.num_layers)), range=(0, top))
    return {
        **found.exits.summary(),
        "histogram": found.exits.histogram[1:].tolist(),
        "cost": float(found.exits.cost),
        "time": {"edges": edges.tolist(), "counts": counts.tolist(), "mean": float(time.mean())},
    }


def by_layer(seen: LayerOutputs, y: Tensor, problem: Problem) -> dict[str, Any]:
    """The score of those who left at each layer, and of everyone, had all left there.

    A few units have no area under a curve: of those who left at a layer the share that is right
    is told instead, or their error.
    """
    metric = problem.metric if problem.task == "regression" else "accuracy"
    right: list[float | None] = []
    for layer in range(1, seen.num_layers + 1):
        here = seen.own_layer == layer
        right.append(_simple_score(seen.own_out[here], y[here], problem) if here.any() else None)
    everyone = [score_of(out, y, problem.metric, problem.scale) for out in seen.out]
    return {"metric": metric, "left": right, "all": everyone}


def _simple_score(out: Tensor, y: Tensor, problem: Problem) -> float:
    if problem.task == "classification":
        return float((out.argmax(dim=-1) == y).double().mean())
    if problem.task == "multilabel":
        return float(((out > 0) == (y > 0)).double().mean())
    return score_of(out, y, problem.metric, problem.scale)


def cost_curves(
    run: Path, seen: LayerOutputs, y: Tensor, problem: Problem
) -> dict[str, Any] | None:
    """Score against cost by threshold and by depth limit, and what ``eegnn calibrate`` chose.

    ``None`` for a model without exits, or where leaving changes what others see.
    """
    if seen.log_stay is None or not seen.replayable:
        return None
    curve = accuracy_cost_curve(seen, y, None, problem.metric, problem.scale)
    chosen = read_calibration(run)
    return {
        "points": [asdict(point) for point in curve.points],
        "limits": [
            asdict(point_of(seen, y, problem.metric, problem.scale, None, limit))
            for limit in range(1, seen.num_layers + 1)
        ],
        "own": asdict(curve.own),
        "full": asdict(curve.full),
        "best": [] if chosen is None else [asdict(choice.test) for choice in chosen.best],
    }


def _confusion(found: Evaluation, problem: Problem) -> list[list[int]] | None:
    if problem.task != "classification" or problem.out_channels > CLASSES:
        return None
    labels = range(problem.out_channels)
    return confusion_matrix(found.y, found.out.argmax(dim=-1), labels=list(labels)).tolist()


def _class_names(dataset: str, problem: Problem) -> list[str]:
    if problem.task != "classification":
        return []
    known = NAMES.get(dataset, ())
    if len(known) == problem.out_channels:
        return list(known)
    return [f"class {k}" for k in range(problem.out_channels)]


def _dirichlet(model: GraphModel, batches: Batches) -> list[float] | None:
    """The energy by layer, of the graph or of the first batch of test graphs."""
    units = batches.whole() or batches.part("test")[0]
    try:
        states = stacked_states(model, units.x, units.adj, units.edge_attr)
    except ValueError:  # a model whose states are not seen
        return None
    return dirichlet_energy(states, units.adj).tolist()
