"""Over-smoothing: the Dirichlet energy of the states at each layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eegnn.analysis.dirichlet import dirichlet_energy
from eegnn.analysis.run import open_run
from eegnn.analysis.states import stacked_states
from eegnn.studies.figures import draw_lines
from eegnn.studies.study import (
    Cell,
    Experiment,
    Finding,
    Line,
    Measured,
    Measurement,
    Plan,
    Quantity,
)
from eegnn.studies.tables import means, without_recipe
from eegnn.train.config import Config

#: The panels, their data sets and widths (tab:hps_sensitivity_dirichlet).
GROUPS = {
    "Minesweeper": ("minesweeper", 32),
    "Tolokers": ("tolokers", 32),
    "Questions": ("questions", 64),
    "Roman-empire": ("roman-empire", 128),
    "Amazon-ratings": ("amazon-ratings", 256),
}
DEPTH = 50
FIELD = "dirichlet"
#: The names of the rows, the models, and what differs from model to model.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "SAS-GNN": ("sasgnn", {"step_size": 0.1}),
    "A-DGN": ("adgn", {"step_size": 0.1}),
    "GRAFF": ("graff", {"step_size": 0.1}),
    "GCN": ("gcn", {}),
}


def look(run: Path, root: Path | None) -> list[float]:
    """The energy at layer 0 … L."""
    model, batches = open_run(run, root)
    whole = batches.whole()
    assert whole is not None, "the experiment is on single graphs"
    states = stacked_states(model, whole.x, whole.adj, whole.edge_attr)
    energies: list[float] = dirichlet_energy(states, whole.adj).tolist()
    return energies


def _quantity(layer: int) -> Quantity:
    def read(line: Line) -> float:
        return math.log10(max(line[FIELD][layer], 1e-30))

    return Quantity("log₁₀ of the Dirichlet energy", read, "equal")


def cells(plan: Plan) -> list[Cell]:
    """A table for each data set: a row for each model, a column for each tenth of the depth."""
    depth = 10 if plan.quick else DEPTH
    return [
        Cell(group, row, str(layer), _quantity(layer), (_config(group, row, depth, plan),))
        for group in GROUPS
        for row in MODELS
        for layer in range(0, depth + 1, depth // 10)
    ]


def _config(group: str, row: str, depth: int, plan: Plan) -> Config:
    dataset, width = GROUPS[group]
    model, options = MODELS[row]
    settings = {
        "num_layers": depth,
        "hidden_channels": width,
        "lr": 0.003,
        "epochs": 5 if plan.quick else 200,
        "standardize": dataset == "tolokers",
        "split": plan.over(1, 1)[0],
        "options": options,
    }
    return without_recipe(dataset, model, settings)


def findings(table: Sequence[Measured]) -> list[Finding]:
    """That GCN collapses, GRAFF sharpens, and SAS-GNN does as A-DGN."""
    at = means(table)
    found = []
    for group in GROUPS:
        last = [m.cell.column for m in table if m.cell.group == group][-1]
        ends = {row: _ends(at, group, row, last) for row in MODELS}
        for row, claim in (
            ("GCN", "GCN ends below a hundredth of its energy"),
            ("GRAFF", "GRAFF ends above ten times its energy"),
        ):
            end = ends[row]
            if end is None:
                found.append(Finding(f"{group}: {claim}", None))
                continue
            first, final = end
            holds = final < first - 2 if row == "GCN" else final > first + 1
            found.append(Finding(f"{group}: {claim} (10^{first:.1f} to 10^{final:.1f})", holds))
        claim = f"{group}: SAS-GNN ends nearer to A-DGN than to GRAFF"
        sas, adgn, graff = (ends[row] for row in ("SAS-GNN", "A-DGN", "GRAFF"))
        if sas is None or adgn is None or graff is None:
            found.append(Finding(claim, None))
        else:
            text = f"{claim} (10^{sas[1]:.1f}, 10^{adgn[1]:.1f}, 10^{graff[1]:.1f})"
            found.append(Finding(text, abs(sas[1] - adgn[1]) < abs(sas[1] - graff[1])))
    return found


def _ends(
    at: dict[tuple[str, str, str], Measured], group: str, row: str, last: str
) -> tuple[float, float] | None:
    first, final = at.get((group, row, "0")), at.get((group, row, last))
    if first is None or final is None or first.mean is None or final.mean is None:
        return None
    return first.mean, final.mean


EXPERIMENT = Experiment(
    name="dirichlet",
    title="Dirichlet energy by layer",
    shows="The figures of the Dirichlet energy (fig:dirichlet_performance, "
    "fig:appendix_dirichlet), which come without numbers.",
    settings="One training for each model with 50 layers and the paper's widths "
    "(tab:hps_sensitivity_dirichlet), lr 0.003, 200 epochs, steps of 0.1; GCN without residual "
    "connections, as in the paper. Features of Tolokers are standardised. States are those of the "
    "best epoch, of all nodes. 40 of the minutes are for Minesweeper and Tolokers, the others are "
    "estimated.",
    quick="10 layers, 5 epochs",
    minutes=(400, 1),
    cells=cells,
    findings=findings,
    draw=lambda table, path: draw_lines(table, path, "layer"),
    measurement=Measurement(FIELD, look),
)
