"""`eegnn eval`, `predict`, `calibrate` and `export`: what to do with a trained run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import eegnn.cli.options as opt
from eegnn.cli.app import app, command_line, print_json

if TYPE_CHECKING:
    from eegnn.compute import Compute

NewGraphs = opt.option(
    "PATH",
    "New graphs, in any format that `train --input` takes.",
    "--input",
    default="the data of the run",
)
Nodes = opt.option(
    "FILE",
    "Numbers of nodes, a text file. Only what their answers depend on is read; --input may be a "
    "folder of mapped arrays too.",
    "--nodes",
    default="all",
)
MaxNodes = opt.option(
    "N",
    "With --nodes, how many nodes may be read. A node that needs more is predicted from the state "
    "that it has.",
    default="no limit",
    min=1,
)
Cost = opt.option("SHARE", "Share of the budget.", default="25, 35, 50 and 75 %", min=0, max=1)


#: The names of :data:`eegnn.export.FORMATS`, which is not read here: it would import torch.
Formats = StrEnum("Formats", ["pt2", "onnx"])
Format = typer.Option("--format", help="`pt2` for `torch.export.load`, `onnx` for ONNX Runtime.")
ExportedFile = opt.option("FILE", "The file to write.", default="RUN/model.FORMAT")
WhileLoop = opt.flag("--while-loop", "End when every node has left; for EEGNN on nodes.")


@app.command("eval")
def evaluate(
    run: Annotated[Path, opt.RunPath],
    max_layers: Annotated[int | None, opt.MaxLayers] = None,
    exit_threshold: Annotated[float | None, opt.ExitThreshold] = None,
    target_cost: Annotated[float | None, opt.TargetCost] = None,
    freeze: Annotated[bool, opt.Freeze] = False,
    blocks: Annotated[int | None, opt.NumBlocks] = None,
    device: Annotated[str, opt.Device] = "cpu",
    precision: Annotated[str, opt.Precision] = "32",
    data_dir: Annotated[Path | None, opt.DataDir] = None,
    as_json: Annotated[bool, opt.AsJson] = False,
) -> None:
    """Score the best weights of a run again, perhaps with earlier exits.

    All knobs work without training again: they show how much of the score is left when less is
    computed. Started by `torchrun`, the processes share the blocks of a graph.
    """
    compute = opt.choose_compute(device, precision)
    from eegnn.analysis.run import open_run
    from eegnn.distributed import join
    from eegnn.nn.exit_model import freeze_after_exit
    from eegnn.train.evaluate import evaluate as score

    knobs = _knobs(run, max_layers, exit_threshold, target_cost, data_dir, compute)
    model, batches = open_run(run, data_dir, compute, blocks)
    if freeze:
        freeze_after_exit(model)
    join(compute.device.type)
    found = score(model, batches, ("train", "val", "test"), **knobs)
    scores = {name: part.score for name, part in found.items()}
    metric, exits = batches.problem.metric, found["test"].exits
    Console(stderr=as_json).print(
        f"{metric}: train {scores['train']:.4f}  validation {scores['val']:.4f}  "
        f"test {scores['test']:.4f}   {float(exits.cost):.0%} of the budget"
    )
    if as_json:
        rule = {**knobs, "freeze": freeze, "exits": exits.summary(), "cost": float(exits.cost)}
        print_json(run=str(run), metric=metric, **scores, **rule, **compute.as_dict())


@app.command()
def predict(
    run: Annotated[Path, opt.RunPath],
    out: Annotated[Path, opt.option("FILE", "The table to write: .csv, .parquet or .jsonl.")],
    input_path: Annotated[Path | None, NewGraphs] = None,
    nodes: Annotated[Path | None, Nodes] = None,
    max_nodes: Annotated[int | None, MaxNodes] = None,
    max_layers: Annotated[int | None, opt.MaxLayers] = None,
    exit_threshold: Annotated[float | None, opt.ExitThreshold] = None,
    target_cost: Annotated[float | None, opt.TargetCost] = None,
    freeze: Annotated[bool, opt.Freeze] = False,
    blocks: Annotated[int | None, opt.NumBlocks] = None,
    device: Annotated[str, opt.Device] = "cpu",
    precision: Annotated[str, opt.Precision] = "32",
    data_dir: Annotated[Path | None, opt.DataDir] = None,
) -> None:
    """Predict with the best weights of a run.

    Writes a row for each node or graph: prediction, probability of each class, exit layer and exit
    time.
    """
    compute = opt.choose_compute(device, precision)
    from eegnn.distributed import join
    from eegnn.train.predict import check_output, write_node_predictions, write_predictions

    check_output(out)
    if max_nodes is not None and nodes is None:
        raise typer.BadParameter("goes with --nodes", param_hint="--max-nodes")
    if blocks and nodes is not None:
        raise typer.BadParameter("goes without --blocks", param_hint="--nodes")
    knobs = _knobs(run, max_layers, exit_threshold, target_cost, data_dir, compute)
    if nodes is not None:
        asked = (nodes, input_path, data_dir, max_nodes, freeze, compute)
        count, touched = write_node_predictions(run, out, *asked, **knobs)
        Console(stderr=True).print(
            f"{count:,} predictions → {out}   {touched.nodes:,} nodes and {touched.edges:,} edges "
            f"read"
        )
        return
    join(compute.device.type)
    count = write_predictions(run, out, input_path, data_dir, blocks, freeze, compute, **knobs)
    Console(stderr=True).print(f"{count:,} predictions → {out}")


@app.command()
def calibrate(
    run: Annotated[Path, opt.RunPath],
    cost: Annotated[float | None, Cost] = None,
    results: Annotated[
        Path | None, opt.option("FILE", "Add run and rules to this .jsonl file.")
    ] = None,
    device: Annotated[str, opt.Device] = "cpu",
    precision: Annotated[str, opt.Precision] = "32",
    data_dir: Annotated[Path | None, opt.DataDir] = None,
    as_json: Annotated[bool, opt.AsJson] = False,
) -> None:
    """Find the exit rule for a budget, and the cheapest that is as good as the model's own.

    The rules are chosen on validation units, among thresholds and depth limits, and written to
    calibration.json in the folder of the run, where --target-cost of eval and predict finds them;
    calibration.png shows what they cost and score on test units.
    """
    compute = opt.choose_compute(device, precision)
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
    console.print(calibration_table(found, costs))
    console.print(f"→ {path}\n→ {picture}")
    if results is not None:
        append_result(results, RunFolder(run), command_line(), rules=found.suggestions(costs))
    if as_json:
        print_json(run=str(run), file=str(path), **found.as_dict(costs))


@app.command()
def export(
    run: Annotated[Path, opt.RunPath],
    file_format: Annotated[Formats, Format] = Formats.onnx,
    out: Annotated[Path | None, ExportedFile] = None,
    max_layers: Annotated[int | None, opt.MaxLayers] = None,
    exit_threshold: Annotated[float | None, opt.ExitThreshold] = None,
    freeze: Annotated[bool, opt.Freeze] = False,
    while_loop: Annotated[bool, WhileLoop] = False,
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
        logging.getLogger(name).setLevel(logging.ERROR)  # they log about themselves
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
    """Return the exit rule that the options give, or the one that was calibrated for a cost."""
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
