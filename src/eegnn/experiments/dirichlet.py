"""Over-smoothing: the Dirichlet energy of the states at each layer."""

from __future__ import annotations

from functools import partial
from itertools import product

from eegnn.analysis.dirichlet import dirichlet_energy
from eegnn.analysis.states import stacked_states
from eegnn.nn.model import GraphModel
from eegnn.studies.configs import model_name, repeat, without_recipe
from eegnn.studies.experiment import About, Cells, Findings, Measurement, Scope, Table
from eegnn.studies.figures import draw_lines
from eegnn.studies.findings import check
from eegnn.studies.quantities import log_at_layer
from eegnn.studies.tables import by_group, by_row, row_cells
from eegnn.train.batches import Batches

#: The widths (tab:hps_sensitivity_dirichlet).
WIDTHS = {
    "Minesweeper": 32,
    "Tolokers": 32,
    "Questions": 64,
    "Roman-empire": 128,
    "Amazon-ratings": 256,
}
FIELD = "dirichlet"
ROWS = ("SAS-GNN", "A-DGN", "GRAFF", "GCN")


def measure(model: GraphModel, batches: Batches) -> list[float]:
    """Return the energy at layer 0 … L."""
    whole = batches.whole()
    assert whole is not None, "the experiment is on single graphs"
    states = stacked_states(model, whole.x, whole.adj, whole.edge_attr)
    return dirichlet_energy(states, whole.adj).tolist()


def cells(scope: Scope) -> Cells:
    """A table for each data set: a row for each model, a column for each tenth of the depth."""
    depth = scope.choose(50, 10)
    name = "log₁₀ of the Dirichlet energy"
    layers = range(0, depth + 1, depth // 10)
    quantities = {str(layer): log_at_layer(name, FIELD, layer) for layer in layers}
    for group, row in product(WIDTHS, ROWS):
        settings = {
            "num_layers": depth,
            "hidden_channels": WIDTHS[group],
            "lr": 0.003,
            "epochs": scope.choose(200, 5),
            "standardize": group == "Tolokers",
            "options": {} if row == "GCN" else {"step_size": 0.1},
        }
        config = without_recipe(group.lower(), model_name(row), settings)
        runs = repeat(config, "split", scope.numbers(1))
        yield from row_cells(group, row, quantities, runs)


def findings(table: Table) -> Findings:
    """GCN collapses, GRAFF sharpens, and SAS-GNN does as A-DGN."""
    for group, results in by_group(table).items():
        ends = {row: (line[0].mean, line[-1].mean) for row, line in by_row(results).items()}
        detail = " (10^{:.1f} to 10^{:.1f})"
        collapses = f"{group}: GCN ends below a hundredth of its energy"
        yield check(collapses, ends["GCN"], lambda first, last: last < first - 2, detail)
        sharpens = f"{group}: GRAFF ends above ten times its energy"
        yield check(sharpens, ends["GRAFF"], lambda first, last: last > first + 1, detail)
        yield check(
            f"{group}: SAS-GNN ends nearer to A-DGN than to GRAFF",
            [ends[row][1] for row in ("SAS-GNN", "A-DGN", "GRAFF")],
            lambda sas, adgn, graff: abs(sas - adgn) < abs(sas - graff),
            " (10^{:.1f}, 10^{:.1f}, 10^{:.1f})",
        )


ABOUT = About(
    title="Dirichlet energy by layer",
    shows="The figures of the Dirichlet energy (fig:dirichlet_performance, "
    "fig:appendix_dirichlet), which come without numbers.",
    settings="One training for each model with 50 layers and the paper's widths "
    "(tab:hps_sensitivity_dirichlet), lr 0.003, 200 epochs, steps of 0.1; GCN without residual "
    "connections, as in the paper. Features of Tolokers are standardised. States are those of the "
    "best epoch, of all nodes.",
    quick="10 layers, 5 epochs",
    minutes=(400, 1),
    draw=partial(draw_lines, x_label="layer"),
    measurement=Measurement(FIELD, measure),
)
