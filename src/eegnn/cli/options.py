"""Arguments and options of the commands; those of a single command are in its own module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from eegnn.compute import Compute

# The list of models is not read here: it would cost the seconds that it takes to import torch.
MODEL = (
    "`eegnn`, `sasgnn`, or a baseline such as `gcn`. A name that does not exist is answered with "
    "all that do."
)
STORAGE = (
    "`FILE.db` (SQLite) for the processes of one machine, `postgresql://USER@HOST/NAME` for "
    "several machines, or `FILE.journal` on a disk that they share. A process that dies leaves its "
    "work to the others within two minutes."
)


def option(value: str, text: str, *names: str, default: str | bool = True, **limits: Any) -> Any:
    """Make an option with a value.

    Args:
        value: what stands for the value in the help.
        text: the help.
        names: other than that of the parameter.
        default: what the help says of it; ``True`` for the default value itself.
        limits: ``min`` and ``max`` of a number.
    """
    return typer.Option(*names, metavar=value, help=text, show_default=default, **limits)


def flag(name: str, text: str) -> Any:
    """Make an option without a value; the help shows none either."""
    return typer.Option(name, metavar="", help=text)


# What to work on.
DatasetName = typer.Argument(
    metavar="DATASET",
    help="A name that `eegnn datasets` lists, a generated set such as `echo-sssp@0.1` (a tenth of "
    "its full size; of listed sets of many graphs too), or a path, as for --input.",
    show_default=False,
)
InputPath = option(
    "PATH",
    "Your own graph, for DATASET: a folder with nodes.csv and edges.csv (or .parquet), or a file, "
    ".npz, .pt (PyG), .graphml, .edges, .txt or .csv (edge list).",
    "--input",
)
RunPath = typer.Argument(metavar="RUN", help="The folder of a run.")
DataDir = option("FOLDER", "Where data sets are kept.", default="EEGNN_DATA, or a cache folder")

# How to train.
Epochs = option("N", "Passes over the training data.", default="the recipe's, or 1000", min=1)
Settings = option(
    "KEY=VALUE",
    "A setting, as in `lr=0.003`, or an argument of the model, as in `options.dropout=0.2`. Repeat "
    "it for more; an unknown key is answered with all that exist.",
    "--set",
)

# Where to compute.
Device = option(
    "NAME",
    "`cpu`, `cuda`, `cuda:1`, `mps`, or `auto` for what there is of CUDA, MPS and the CPU, in this "
    "order.",
)
Precision = option(
    "NAME", "`32`; or `bf16-mixed` or `16-mixed` for products in 16 bits and all else in 32."
)


def choose_compute(device: str, precision: str) -> Compute:
    """Return what --device and --precision name; wrong usage if this machine does not have it."""
    from eegnn.compute import Compute

    try:
        return Compute.choose(device, precision)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


# How to evaluate.
MaxLayers = option("N", "Stop every node, graph or pair after this many steps.", min=1)
ExitThreshold = option(
    "P",
    "Leave once the probability of having left reaches P; lower is earlier.",
    default="leave once exit is likelier than continue",
    min=0,
    max=1,
)
TargetCost = option(
    "SHARE", "Spend this share of the budget, by the rule of `eegnn calibrate`.", min=0, max=1
)
Freeze = flag(
    "--freeze", "Nodes that have left keep their state, which changes what their neighbours read."
)
NumBlocks = option(
    "N",
    "Cut the graph into so many blocks, of which memory holds one at a time; the result is the "
    "same. 0 takes it whole.",
    "--blocks",
    default="as in training",
    min=0,
)

# What to write.
AsJson = flag("--json", "Print the result as one JSON object, the last line of standard output.")
