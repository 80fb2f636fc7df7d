"""Space complexity: how parameters grow with layers and width."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from eegnn.studies.figures import draw_bars
from eegnn.studies.study import Cell, Experiment, Finding, Measured, Plan, Quantity, Score
from eegnn.zoo.registry import ENTRIES, find

GROUP = "Weight matrices m' × m'"
WIDTH = 256
#: The names of the rows, the models, and the options that do not depend on the depth.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "GCN": ("gcn", {}),
    "SAS-GNN": ("sasgnn", {}),
    "Co-GNN": ("cognn", {}),
    "EEGNN": ("eegnn", {}),
    "Polynormer": ("polynormer", {}),
}
#: tab:space_complexities: matrices for each further layer, and those that do not depend on L.
PAPER = {
    "GCN": (Score(1), None),
    "SAS-GNN": (Score(0), Score(1)),
    "Co-GNN": (Score(1), None),
    "EEGNN": (Score(0), None),
    "Polynormer": (Score(8), None),
}
MATRICES = Quantity("numbers / m'², to one digit", lambda line: float("nan"), "equal", 1)
A_LAYER, SHARED = "each further layer", "shared by all layers"


def cells(plan: Plan) -> list[Cell]:
    """A row for each model."""
    found = []
    for row in MODELS:
        a_layer, shared = PAPER[row]
        found.append(Cell(GROUP, row, A_LAYER, MATRICES, (), a_layer, _slope(row)))
        if shared is not None:
            found.append(Cell(GROUP, row, SHARED, MATRICES, (), shared, _shared(row)))
    return found


@cache
def _count(row: str, layers: int) -> int:
    model, options = MODELS[row]
    if row == "Polynormer":  # as many global as local layers, as the paper assumes
        options = options | {"global_layers": layers}
    built = find(ENTRIES[model].home)(8, WIDTH, 2, num_layers=layers, **options)
    return sum(parameter.numel() for parameter in built.parameters())


def _slope(row: str) -> float:
    """(P(L = 5) − P(L = 4)) / m'², without what grows slower than m'²."""
    return round((_count(row, 5) - _count(row, 4)) / WIDTH**2, 1)


def _shared(row: str) -> float:
    """What is left at L = 4 without the layers, / m'²."""
    rest = _count(row, 4) - 4 * (_count(row, 5) - _count(row, 4))
    return round(rest / WIDTH**2, 1)


def findings(table: Sequence[Measured]) -> list[Finding]:
    """Who grows with depth."""
    at = {(m.cell.row, m.cell.column): m.mean for m in table}
    flat = [at[row, A_LAYER] == 0 for row in ("SAS-GNN", "EEGNN")]
    return [
        Finding("the parameters of SAS-GNN and EEGNN do not depend on L", all(flat)),
        Finding(
            f"the symmetric and the antisymmetric matrix of SAS-GNN hold {at['SAS-GNN', SHARED]:g} "
            "m'² numbers in all, half of two full ones (the paper's counts of parameters have "
            "2m'² + 2m', as storage='paper' does)",
            at["SAS-GNN", SHARED] == 1,
        ),
    ]


EXPERIMENT = Experiment(
    name="space",
    title="Space complexity",
    shows="tab:space_complexities, whose orders of growth are read here with their factors: "
    "O(Lm'²) as one matrix for each layer, O(8Lm'²) as eight.",
    settings="Models are built with width 256, not trained, and counted with 4 and with 5 layers; "
    "Polynormer with as many global layers as local ones. The paper leaves factors out for all but "
    "Polynormer: Co-GNN's mean aggregation has a matrix for the node and one for its neighbours.",
    quick="there is nothing to leave out",
    minutes=(0.1, 0.1),
    cells=cells,
    findings=findings,
    draw=draw_bars,
)
