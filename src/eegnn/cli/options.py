"""Arguments and options of the commands; those of a single command are in its own module."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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


def flag(name: str, text: str) -> Any:
    """An option without a value, for which its help does not ask either."""
    return typer.Option(name, metavar="", help=text)


def share(text: str, default: str | None = None) -> Any:
    """An option for a number from 0 to 1."""
    return typer.Option(min=0, max=1, metavar="SHARE", help=text, show_default=default or True)


# What to work on.
DatasetName = typer.Argument(
    metavar="DATASET",
    help="A name that `eegnn datasets` lists, a generated set such as `echo-sssp@0.1` (a tenth of "
    "its full size; of listed sets of many graphs too), or a path, as for --input.",
    show_default=False,
)
InputPath = Annotated[
    Path | None,
    typer.Option(
        "--input",
        metavar="PATH",
        help="Your own graph, for DATASET: a folder with nodes.csv and edges.csv (or .parquet), or "
        "a file, .npz, .pt (PyG), .graphml, .edges, .txt or .csv (edge list).",
    ),
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Where data sets are kept.",
        show_default="EEGNN_DATA, or a cache folder",
    ),
]

# How to train.
Epochs = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Passes over the training data.",
        show_default="the recipe's, or 1000",
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="The same seed, the same result.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting, as in `lr=0.003`, or an argument of the model, as in "
        "`options.dropout=0.2`. Repeat it for more; an unknown key is answered with all that "
        "exist.",
    ),
]

# Where to compute.
Device = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="`cpu`, `cuda`, `cuda:1`, `mps`, or `auto` for what there is of CUDA, MPS and the "
        "CPU, in this order.",
    ),
]
Precision = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="`32`; or `bf16-mixed` or `16-mixed` for products in 16 bits and all else in 32.",
    ),
]


def choose_compute(device: str, precision: str) -> Compute:
    """Return what --device and --precision name; wrong usage if this machine does not have it."""
    from eegnn.compute import Compute

    try:
        return Compute.choose(device, precision)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


# How to evaluate.
MaxLayers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Nobody takes more steps than this."),
]
ExitThreshold = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        metavar="P",
        help="Leave once the probability of having left reaches P; lower is earlier.",
        show_default="leave once exit is likelier than continue",
    ),
]
TargetCost = Annotated[
    float | None, share("Spend this share of the budget, by the rule of `eegnn calibrate`.")
]
Freeze = Annotated[
    bool,
    flag(
        "--freeze",
        "Nodes that have left keep their state, which changes what their neighbours read.",
    ),
]
NumBlocks = Annotated[
    int | None,
    typer.Option(
        "--blocks",
        min=0,
        metavar="N",
        help="Cut the graph into so many blocks, of which memory holds one at a time; the result "
        "is the same. 0 takes it whole.",
        show_default="as in training",
    ),
]

# What to write.
AsJson = Annotated[
    bool, flag("--json", "Print the result as one JSON object, the last line of standard output.")
]
