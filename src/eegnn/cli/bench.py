"""`eegnn bench`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from eegnn.cli.app import bench, print_json
from eegnn.cli.options import AsJson, DataDir

Threads = Annotated[int, typer.Option(min=1, metavar="N", help="Threads to use.")]
Passes = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Timed passes, of which the median counts; a tenth of them where one takes seconds.",
    ),
]
Layers = Annotated[
    list[int] | None,
    typer.Option(
        min=1, metavar="N", help="Depth. Repeat it for more.", show_default="10, 20, 50, 100"
    ),
]
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
            help="A heterophilic data set; a graph of its size is drawn if it is not on disk. "
            "Repeat it for more.",
            show_default="all five, unless there is a run",
        ),
    ] = None,
    layers: Layers = None,
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
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare inference of GCN, Co-GNN, Polynormer, SAS-GNN and EEGNN, at several depths.

    GCN is PyG's, with `edge_index` and with a normalised CSR matrix, the fastest that it takes on
    a CPU. Nodes of EEGNN leave by themselves in a trained run; else at layers with the minimum,
    median and maximum that the paper found. All nodes are computed until the last one has left.
    """
    from eegnn.bench import inference as found
    from eegnn.bench.shapes import PAPER_EXITS

    names = dataset or ([] if run else list(PAPER_EXITS))
    with _measuring():
        rows = found.compare_runs(run or [], threads, passes, data_dir, default_path)
        rows += found.compare(
            names, layers or found.LAYERS, threads, passes, data_dir, default_path
        )
    _show(found.table(rows, threads), rows, found.draw, out, as_json)
    if as_json:
        print_json(
            threads=threads,
            passes=passes,
            rows=found.as_dicts(rows),
            times_faster=found.summary(rows),
        )


@bench.command("graphs")
def bench_graphs(
    threads: Threads = 1,
    passes: Passes = 20,
    out: Figure = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare the time for batches of graphs with the layers that their graphs take.

    Graphs of ENZYMES and Peptides-func, or of their size, leave at stated layers. All graphs of a
    batch are computed until the last one has left.
    """
    from eegnn.bench.graphs import compare, draw, table

    with _measuring():
        rows = compare(threads, passes, data_dir)
    _show(table(rows, threads), rows, draw, out, as_json)
    if as_json:
        print_json(threads=threads, passes=passes, rows=[row.as_dict() for row in rows])


@bench.command("training")
def bench_training(
    threads: Threads = 1, passes: Passes = 5, out: Figure = None, as_json: AsJson = False
) -> None:
    """Compare a training step of SASGNN with the same mathematics by PyG's message passing.

    Forward and backward, ten layers, width 32, on a graph with the size of Tolokers and on a
    100 × 100 grid.
    """
    from eegnn.bench.training import compare, draw, table

    with _measuring():
        rows = compare(threads=threads, passes=passes)
    _show(table(rows, threads), rows, draw, out, as_json)
    if as_json:
        print_json(threads=threads, passes=passes, rows=[row.as_dict() for row in rows])


@bench.command("memory")
def bench_memory(
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="A heterophilic data set.")
    ] = "minesweeper",
    layers: Layers = None,
    threads: Threads = 1,
    passes: Passes = 5,
    out: Figure = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Measure memory and time of a training step against depth, with and without `recompute`."""
    from eegnn.bench.memory import LAYERS, compare, draw, table

    with _measuring():
        rows = compare(dataset, layers or LAYERS, threads, passes, data_dir)
    _show(table(rows, threads), rows, draw, out, as_json)
    if as_json:
        print_json(
            dataset=dataset, threads=threads, passes=passes, rows=[row.as_dict() for row in rows]
        )


@bench.command("roofline")
def bench_roofline(
    width: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Width of the states. Repeat it for more.",
            show_default="32, 64, 128",
        ),
    ] = None,
    threads: Threads = 1,
    passes: Passes = 50,
    out: Figure = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare a step of SAS-GNN at inference with its dense and sparse products alone."""
    from eegnn.bench.roofline import WIDTHS, compare, draw, table

    with _measuring():
        rows = compare(width or WIDTHS, threads, passes, data_dir)
    _show(table(rows, threads), rows, draw, out, as_json)
    if as_json:
        print_json(threads=threads, passes=passes, rows=[row.as_dict() for row in rows])


@bench.command("blocks")
def bench_blocks(
    nodes: Annotated[
        list[int] | None,
        typer.Option(
            min=1000,
            metavar="N",
            help="Size of a generated graph. Repeat it for more.",
            show_default="100000, 1000000",
        ),
    ] = None,
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

    Each pass is a fresh process, whose peak memory counts above what it has with the raw data; the
    sizes take turns. The whole graph is computed too where it has at most 100,000 nodes.
    """
    from eegnn.bench.blocks import NODES, compare, draw, table

    with _measuring():
        rows = compare(nodes or NODES, threads, passes, block, epoch)
    _show(table(rows, threads), rows, draw, out, as_json)
    if as_json:
        print_json(
            threads=threads, passes=passes, block=block, rows=[row.as_dict() for row in rows]
        )


def _measuring() -> Any:
    return Console(stderr=True).status("measuring …")


def _show(
    table: Any,
    rows: Sequence[Any],
    draw: Callable[[Any, Path], None],
    out: Path | None,
    as_json: bool,
) -> None:
    console = Console(stderr=as_json)
    console.print(table)
    if out is not None:
        draw(rows, out)
        console.print(f"→ {out}")
