"""`eegnn bench`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from eegnn.cli.app import bench, print_json
from eegnn.cli.options import AsJson, DataDir, Device, Precision, choose_compute

if TYPE_CHECKING:
    from eegnn.bench.rows import BenchmarkRow

Threads = Annotated[int, typer.Option(min=1, metavar="N", help="Threads to use.")]
Passes = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Timed passes, of which the median counts; a tenth of them where one takes seconds.",
    ),
]
Layers = Annotated[list[int], typer.Option(min=1, metavar="N", help="Depth. Repeat it for more.")]
DEPTHS = [10, 20, 50, 100]
Figure = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Draw the result, as .png or .pdf.")
]


@bench.command("inference")
def bench_inference(
    run: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="A trained run of a model with exits, measured on its graph with its depth. "
            "Repeat it for more.",
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A heterophilic data set; a graph of its size is generated if it is not on disk. "
            "Repeat it for more.",
            show_default="all five, unless there is a run",
        ),
    ] = None,
    layers: Layers = DEPTHS,
    threads: Threads = 1,
    passes: Passes = 20,
    default_path: Annotated[
        bool,
        typer.Option(
            "--default-path/--no-default-path",
            help="Also GCN as PyG's users call it, with edge_index: minutes on large graphs.",
        ),
    ] = True,
    out: Figure = None,
    device: Device = "cpu",
    precision: Precision = "32",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare inference of GCN, Co-GNN, Polynormer, SAS-GNN and EEGNN, at several depths.

    GCN is PyG's, with `edge_index` and with a normalised CSR matrix, the fastest that it takes on
    a CPU. Nodes of EEGNN leave by themselves in a trained run; else at layers with the minimum,
    median and maximum that the paper found. All nodes are computed until the last one has left.
    """
    compute = choose_compute(device, precision)
    from eegnn.bench.inference import InferenceRow, compare, compare_runs
    from eegnn.bench.inputs import PAPER_EXITS

    names = dataset or ([] if run else list(PAPER_EXITS))
    shared = (passes, data_dir, default_path, compute)

    def measure() -> list[InferenceRow]:
        return compare_runs(run or [], *shared) + compare(names, layers, *shared)

    _measure(measure, threads, out, as_json, passes=passes, **compute.as_dict())


@bench.command("training")
def bench_training(
    threads: Threads = 1,
    passes: Passes = 5,
    out: Figure = None,
    device: Device = "cpu",
    precision: Precision = "32",
    as_json: AsJson = False,
) -> None:
    """Compare a training step of SASGNN with the same mathematics by PyG's message passing.

    Forward and backward, ten layers, width 32, on a graph with the size of Tolokers and on a
    100 × 100 grid.
    """
    compute = choose_compute(device, precision)
    from eegnn.bench.training import compare

    measure = partial(compare, passes, compute)
    _measure(measure, threads, out, as_json, passes=passes, **compute.as_dict())


@bench.command("memory")
def bench_memory(
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="A heterophilic data set.")
    ] = "minesweeper",
    layers: Layers = DEPTHS,
    threads: Threads = 1,
    passes: Passes = 5,
    out: Figure = None,
    device: Device = "cpu",
    precision: Precision = "32",
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Measure memory and time of a training step against depth, with and without `recompute`."""
    compute = choose_compute(device, precision)
    from eegnn.bench.memory import compare

    measure = partial(compare, dataset, layers, passes, data_dir, compute)
    fields = {"passes": passes, "dataset": dataset, **compute.as_dict()}
    _measure(measure, threads, out, as_json, **fields)


@bench.command("footprint")
def bench_footprint(
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A data set that `eegnn datasets` lists. Repeat it for more.",
            show_default="all, in minutes",
        ),
    ] = None,
    threads: Threads = 1,
    out: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Count the memory of a training step of SAS-GNN and EEGNN with their recipes.

    All tensors are counted that exist at the same time, as a GPU would have to hold them. Graphs
    are generated with the published sizes, so no data is needed; of many graphs, a batch of average
    ones. A GPU needs some hundred megabytes more for itself.
    """
    from eegnn.bench.footprint import compare
    from eegnn.data.registry import DATASETS

    _measure(partial(compare, dataset or list(DATASETS)), threads, out, as_json)


@bench.command("blocks")
def bench_blocks(
    nodes: Annotated[
        list[int],
        typer.Option(min=1000, metavar="N", help="Size of a generated graph. Repeat it for more."),
    ] = [100_000, 1_000_000],  # noqa: B006
    block: Annotated[int, typer.Option(min=100, metavar="N", help="Nodes of a block.")] = 10_000,
    epoch: Annotated[
        bool, typer.Option("--epoch", metavar="", help="Also train for an epoch, by blocks.")
    ] = False,
    threads: Threads = 1,
    passes: Passes = 3,
    out: Figure = None,
    as_json: AsJson = False,
) -> None:
    """Measure memory and time of one huge graph by blocks, and compare with the whole graph.

    Each pass is a new process, whose peak memory counts above what it has with the raw data; the
    sizes take turns. The whole graph is computed too where it has at most 100,000 nodes.
    """
    from eegnn.bench.blocks import compare

    measure = partial(compare, nodes, passes, block, epoch)
    _measure(measure, threads, out, as_json, passes=passes, block=block)


def _measure(
    compare: Callable[[], Sequence[BenchmarkRow]],
    threads: int,
    out: Path | None,
    as_json: bool,
    **fields: Any,
) -> None:
    """Measure, print the table, draw the figure and print JSON, with ``fields`` beside the rows."""
    from eegnn.bench.rows import draw, table
    from eegnn.bench.timing import use_threads

    with Console(stderr=True).status("measuring …"), use_threads(threads):
        rows = compare()
    console = Console(stderr=as_json)
    console.print(table(rows, threads))
    if out is not None:
        draw(rows, out)
        console.print(f"→ {out}")
    if as_json:
        print_json(threads=threads, **fields, rows=[row.as_dict() for row in rows])
