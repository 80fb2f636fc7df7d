"""Early exit over the steps of five backbones: score against cost."""

from __future__ import annotations

from functools import partial
from typing import Any

from eegnn.experiments.exits_learn import COST, SCORE
from eegnn.experiments.exits_learn import QUANTITIES as OF_EXITS
from eegnn.experiments.heterophilic import QUICK, recipe_runs
from eegnn.studies.configs import Runs, model_name, repeat, with_recipe_of
from eegnn.studies.experiment import About, Cells, Findings, Scope, Table
from eegnn.studies.figures import draw_tradeoff
from eegnn.studies.findings import check, means
from eegnn.studies.tables import row_cells

DATASETS = ("Minesweeper", "Tolokers")
SPLITS = 5
#: The steps, and the options of the models that repeat them.
BACKBONES: dict[str, dict[str, Any]] = {
    "SAS-GNN": {},
    "A-DGN": {},
    "GRAFF": {},
    "SWAN": {},
    "SAGE": {"activation": "relu", "shared": True},
}
QUANTITIES = {name: OF_EXITS[name] for name in (SCORE, COST)}


def cells(scope: Scope) -> Cells:
    """A table for each data set: each backbone with exits and without."""
    scope = scope._replace(splits=scope.numbers(SPLITS))
    for group in DATASETS:
        for backbone in BACKBONES:
            runs = _with_exits(group, backbone, scope)
            yield from row_cells(group, f"EE+{backbone}", QUANTITIES, runs)
        for backbone in BACKBONES:
            runs = _without_exits(group, backbone, scope)
            yield from row_cells(group, backbone, {SCORE: QUANTITIES[SCORE]}, runs)


def _with_exits(group: str, backbone: str, scope: Scope) -> Runs:
    if backbone == "SAS-GNN":
        return recipe_runs(group, "eegnn", {}, scope)
    settings = {**scope.choose({}, QUICK), "num_layers": 21, "options": BACKBONES[backbone]}
    config = with_recipe_of("eegnn", group.lower(), model_name(f"EE+{backbone}"), settings)
    return repeat(config, "split", scope.numbers(SPLITS))


def _without_exits(group: str, backbone: str, scope: Scope) -> Runs:
    """Return runs of which all but those of SWAN are in other tables too."""
    if backbone == "SAS-GNN":
        return recipe_runs(group, "sasgnn", {}, scope)
    settings: dict[str, Any] = {**scope.choose({}, QUICK), "options": BACKBONES[backbone]}
    owner = "sasgnn"
    if backbone == "SAGE":  # as the classic backbones of the paper, without a step size
        owner, options = "eegnn", {**BACKBONES[backbone], "residual": True}
        settings |= {"num_layers": 20, "options": options}
    config = with_recipe_of(owner, group.lower(), model_name(backbone), settings)
    return repeat(config, "split", scope.numbers(SPLITS))


def findings(table: Table) -> Findings:
    """What an exit makes of a backbone."""
    at = means(table)
    for group in DATASETS:
        for backbone in BACKBONES:
            yield check(
                f"{group}: exits cost {backbone} less than one point and save updates",
                (
                    at[group, f"EE+{backbone}", SCORE],
                    at[group, backbone, SCORE],
                    at[group, f"EE+{backbone}", COST],
                ),
                lambda early, full, cost: early > full - 1 and cost < 100,
                " ({:.2f} and {:.2f}, {:.0f} % of the updates)",
            )


ABOUT = About(
    title="Early exit on five backbones",
    shows="A study of ours, which the paper has for classic convolutions alone "
    "(tab:activation_comparison_grouped).",
    settings="Exits over the steps of five models, each with its own activation: 21 steps and the "
    "recipe of EEGNN, which EE+SAS-GNN is. Without exits the models have the recipe of SAS-GNN, "
    "with its step size, and SAGE 20 layers with the recipe of EEGNN, a residual connection and "
    "one set of weights. Nothing was tuned for the other backbones. Five splits.",
    quick="one split, 5 epochs, width 32",
    minutes=(600, 1),
    findings_title="What an exit makes of a backbone",
    draw=partial(draw_tradeoff, score=SCORE, costs=[COST]),
)
