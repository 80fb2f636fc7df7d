"""`eegnn eval`, `predict`, `calibrate` and `export`: what to do with a trained run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from eegnn.cli.app import app, command_line, print_json
from eegnn.cli.options import (
    AsJson,
    DataDir,
    Device,
    ExitThreshold,
    Freeze,
    MaxLayers,
    NumBlocks,
    Precision,
    RunPath,
    TargetCost,
    choose_compute,
    flag,
    share,
)

if TYPE_CHECKING:
    from eegnn.compute import Compute


#: The names of :data:`eegnn.export.FORMATS`, which is not read here: it would import torch.
Formats = StrEnum("Formats", ["pt2", "onnx"])


@app.command("eval")
def evaluate(
    run: RunPath,
    max_layers: MaxLayers = None,
    exit_threshold: ExitThreshold = None,
    target_cost: TargetCost = None,
    freeze: Freeze = False,
    blocks: NumBlocks = None,
    device: Device = "cpu",
    precision: Precision = "32",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Score the best weights of a run again, perhaps with earlier exits.

    All knobs work without training again: they show how much of the score is left when less is
    computed. Started by `torchrun`, the processes share the blocks of a graph.
    """
    compute = choose_compute(device, precision)
    from eegnn.distributed import join
    from eegnn.nn.exit_model import freeze_after_exit
    from eegnn.train.batches import Batches
    from eegnn.train.evaluate import evaluate as score
    from eegnn.train.prepare import prepare
    from eegnn.train.run import RunFolder

    knobs = _knobs(run, max_layers, exit_threshold, target_cost, data_dir, compute)
    folder = RunFolder(run)
    config = folder.config()
    problem = prepare(config, data_dir)
    model = folder.model(compute.device)
    if freeze:
        freeze_after_exit(model)
    count = config.blocks if blocks is None else blocks
    with_edges = model.edge_dim is not None
    batches = Batches(problem, config.batch_size, with_edges, count, compute=compute)
    join(compute.device.type)
    found = score(model, batches, ("train", "val", "test"), **knobs)
    fields: dict[str, Any] = {"run": str(run), "metric": problem.metric, **knobs, "freeze": freeze}
    fields |= {name: part.score for name, part in found.items()}
    fields["exits"] = found["test"].exits.summary()
    fields["cost"] = float(found["test"].exits.cost)
    fields |= compute.as_dict()
    Console(stderr=as_json).print(
        f"{problem.metric}: train {fields['train']:.4f}  validation {fields['val']:.4f}  "
        f"test {fields['test']:.4f}   {fields['cost']:.0%} of the budget"
    )
    if as_json:
        print_json(**fields)


@app.command()
def predict(
    run: RunPath,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The table to write: .csv, .parquet or .jsonl.")
    ],
    input_path: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="PATH",
            help="New graphs, in any format that `train --input` takes.",
            show_default="the data of the run",
        ),
    ] = None,
    max_layers: MaxLayers = None,
    exit_threshold: ExitThreshold = None,
    target_cost: TargetCost = None,
    freeze: Freeze = False,
    blocks: NumBlocks = None,
    device: Device = "cpu",
    precision: Precision = "32",
    data_dir: DataDir = None,
) -> None:
    """Predict with the best weights of a run.

    Writes a row for each node or graph: prediction, probability of each class, exit layer and exit
    time.
    """
    compute = choose_compute(device, precision)
    from eegnn.distributed import join
    from eegnn.train.predict import check_output, write_predictions

    check_output(out)
    knobs = _knobs(run, max_layers, exit_threshold, target_cost, data_dir, compute)
    join(compute.device.type)
    count = write_predictions(run, out, input_path, data_dir, blocks, freeze, compute, **knobs)
    Console(stderr=True).print(f"{count:,} predictions → {out}")


@app.command()
def calibrate(
    run: RunPath,
    cost: Annotated[float | None, share("Share of the budget.", "25, 35, 50 and 75 %")] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="How much the score may fall for the cheapest rule.")
    ] = 0.0,
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add run and rules to this .jsonl file."),
    ] = None,
    device: Device = "cpu",
    precision: Precision = "32",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Find the exit rule for a budget, and the cheapest that is as good as the model's own.

    The rules are chosen on validation units, among thresholds and depth limits, and written to
    calibration.json in the folder of the run, where --target-cost of eval and predict finds them;
    calibration.png shows what they cost and score on test units.
    """
    compute = choose_compute(device, precision)
    from eegnn.analysis.calibrate import COSTS, calibrate_run, write_calibration
    from eegnn.report.calibration import draw_calibration
    from eegnn.report.terminal import calibration_table
    from eegnn.train.results import append_result
    from eegnn.train.run import RunFolder

    costs = COSTS if cost is None else (cost,)
    found = calibrate_run(run, data_dir, compute)
    path = write_calibration(run, found)
    picture = path.with_suffix(".png")
    draw_calibration(found, picture)
    console = Console(stderr=as_json)
    console.print(calibration_table(found, costs, tolerance))
    console.print(f"→ {path}\n→ {picture}")
    if results is not None:
        rules = found.suggestions(costs, tolerance)
        append_result(results, RunFolder(run), command_line(), rules=rules)
    if as_json:
        print_json(run=str(run), file=str(path), **found.as_dict(costs, tolerance))


@app.command()
def export(
    run: RunPath,
    file_format: Annotated[
        Formats,
        typer.Option("--format", help="`pt2` for `torch.export.load`, `onnx` for ONNX Runtime."),
    ] = Formats.onnx,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write.", show_default="RUN/model.FORMAT"),
    ] = None,
    max_layers: MaxLayers = None,
    exit_threshold: ExitThreshold = None,
    freeze: Freeze = False,
    while_loop: Annotated[
        bool, flag("--while-loop", "End when every node has left; for EEGNN on nodes.")
    ] = False,
) -> None:
    """Write SAS-GNN or EEGNN as a program that runs without this library.

    Its inputs are x, edge_index (both directions of every edge, each once, no self-loops),
    edge_attr and batch where the model takes them; its outputs are those of `model.predict`: out,
    exit_layer and exit_time. Without --while-loop all layers are computed.
    """
    import logging

    from eegnn.export import FORMATS
    from eegnn.io import write_atomically
    from eegnn.nn.exit_model import freeze_after_exit
    from eegnn.train.run import RunFolder

    for name in ("torch.onnx", "onnx_ir", "onnxscript"):
        logging.getLogger(name).setLevel(logging.ERROR)  # they speak of themselves
    model = RunFolder(run).model()
    if freeze:
        freeze_after_exit(model)
    knobs = {"max_layers": max_layers, "exit_threshold": exit_threshold}
    content = FORMATS[file_format](model, while_loop, **knobs)
    path = run / f"model.{file_format}" if out is None else out
    write_atomically(path, content)
    Console(stderr=True).print(f"→ {path} ({len(content) / 1e6:.1f} MB)")


def _knobs(
    run: Path,
    max_layers: int | None,
    exit_threshold: float | None,
    target_cost: float | None,
    data_dir: Path | None,
    compute: Compute,
) -> dict[str, Any]:
    """The exit rule that the options give, or the one that was calibrated for a cost."""
    if target_cost is None:
        return {"max_layers": max_layers, "exit_threshold": exit_threshold}
    if max_layers is not None or exit_threshold is not None:
        raise typer.BadParameter(
            "goes without --max-layers and --exit-threshold: it chooses both",
            param_hint="--target-cost",
        )
    from eegnn.analysis.calibrate import calibrate_run, read_calibration

    found = read_calibration(run) or calibrate_run(run, data_dir, compute)
    return found.for_cost(target_cost).val.knobs
