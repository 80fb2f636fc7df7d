"""Space complexity: how parameters grow with layers and width."""

from __future__ import annotations

from eegnn.experiments.parameters import count_parameters
from eegnn.studies.experiment import About, Cell, Cells, Finding, Findings, Scope, Score, Table
from eegnn.studies.quantities import Quantity

GROUP = "Weight matrices m' × m'"
WIDTH = 256
MATRICES = Quantity("numbers / m'², to one digit", lambda run: float("nan"), "equal", 1)
A_LAYER, SHARED = "each further layer", "shared by all layers"
#: tab:space_complexities: matrices for each further layer.
PAPER = {"GCN": 1, "SAS-GNN": 0, "Co-GNN": 1, "EEGNN": 0, "Polynormer": 8}


def cells(scope: Scope) -> Cells:
    """A row for each model."""
    for row, matrices in PAPER.items():
        slope = _count(row, 5) - _count(row, 4)
        yield _cell(row, A_LAYER, matrices, slope)
        if row == "SAS-GNN":  # the paper has it alone not depend on L
            yield _cell(row, SHARED, 1, _count(row, 4) - 4 * slope)


def _cell(row: str, column: str, paper: int, numbers: int) -> Cell:
    """Return a cell without what grows slower than m'²."""
    return Cell(GROUP, row, column, MATRICES, (), Score(paper), round(numbers / WIDTH**2, 1))


def _count(row: str, layers: int) -> int:
    # Polynormer has as many global as local layers, as the paper assumes.
    options = {"global_layers": layers} if row == "Polynormer" else {}
    return count_parameters("Minesweeper", row, WIDTH, num_layers=layers, **options)


def findings(table: Table) -> Findings:
    """Which models grow with depth."""
    at = {(result.cell.row, result.cell.column): result.mean for result in table}
    yield Finding(
        "the parameters of SAS-GNN and EEGNN do not depend on L",
        at["SAS-GNN", A_LAYER] == at["EEGNN", A_LAYER] == 0,
    )
    yield Finding(
        f"the symmetric and the antisymmetric matrix of SAS-GNN hold {at['SAS-GNN', SHARED]:g} "
        "m'² numbers in all, half of two full ones (the paper's counts of parameters have "
        "2m'² + 2m', as storage='paper' does)",
        at["SAS-GNN", SHARED] == 1,
    )


ABOUT = About(
    title="Space complexity",
    shows="tab:space_complexities, whose orders of growth are read here with their factors: "
    "O(Lm'²) as one matrix for each layer, O(8Lm'²) as eight.",
    settings="Models are built with width 256, not trained, and counted with 4 and with 5 layers; "
    "Polynormer with as many global layers as local ones. The paper leaves factors out for all but "
    "Polynormer: Co-GNN's mean aggregation has a matrix for the node and one for its neighbours.",
    quick="there is nothing to leave out",
    minutes=(0.1, 0.1),
)
