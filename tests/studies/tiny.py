"""An experiment of seconds: two models on a few short lines."""

from __future__ import annotations

from functools import partial

from eegnn.studies.experiment import About, Cell, Experiment, Finding, Scope, Score, Table
from eegnn.studies.figures import draw_lines
from eegnn.studies.quantities import LOG10_MSE, RunRecord
from eegnn.train.config import Config, make_config
from tests.train.records import SUMMARY

DATASET = "transfer-line-3@0.01"


def config(model: str = "gcn", split: int = 0, epochs: int = 2, lr: float = 0.01) -> Config:
    return make_config(
        {
            "dataset": DATASET,
            "model": model,
            "split": split,
            "epochs": epochs,
            "lr": lr,
            "hidden_channels": 2,
            "num_layers": 1,
        }
    )


def record(test: float, split: int = 0, commit: str = "1111111aaaaa") -> RunRecord:
    """A record as the store has it."""
    config = {"dataset": DATASET, "model": "gcn", "split": split, "seed": 0}
    about = {"commit": commit, "source": f"tiny.jsonl:{split + 1}", "command": "eegnn train x"}
    return {**SUMMARY, "test": test, "val": 0.5, "config": config, **about}


def cells(scope: Scope) -> list[Cell]:
    return [
        Cell(
            "line",
            model.upper(),
            "3",
            LOG10_MSE,
            tuple(config(model, split, scope.choose(2, 1)) for split in scope.numbers(2)),
            Score(-1.0, 0.5) if model == "gcn" else None,
        )
        for model in ("gcn", "adgn")
    ]


def findings(table: Table) -> list[Finding]:
    return [Finding("something was run", any(result.runs for result in table) or None)]


ABOUT = About(
    title="A tiny study",
    shows="Nothing.",
    settings="Two epochs.",
    quick="one epoch",
    minutes=(0.1, 0.05),
    draw=partial(draw_lines, x_label="distance"),
)
EXPERIMENT = Experiment(**vars(ABOUT), name="tiny", cells=cells, findings=findings)
