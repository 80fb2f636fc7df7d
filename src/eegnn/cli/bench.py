"""`eegnn bench`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from eegnn.cli.app import bench, print_json
from eegnn.cli.options import AsJson, DataDir, Device, Precision, choose_compute, flag, option

if TYPE_CHECKING:
    from eegnn.bench.rows import BenchmarkRow

Threads = option("N", "Threads to use.", min=1)
Passes = option(
    "N",
    "Timed passes, of which the median counts; a tenth of them where one takes seconds.",
    min=1,
)
Layers = option("N", "Depth. Repeat it for more.", min=1)
DEPTHS = [10, 20, 50, 100]
ASKED = [1, 10, 100]
Figure = option("FILE", "Draw the result, as .png or .pdf.", "--out")


@bench.command("inference")
def bench_inference(
    run: Annotated[
        list[Path] | None,
        option(
            "FOLDER",
            "A trained run of a model with exits, measured on its graph with its depth. Repeat it "
            "for more.",
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        option(
            "NAME",
            "A heterophilic data set; a graph of its size is generated if it is not on disk. "
            "Repeat it for more.",
            default="all five, unless there is a run",
        ),
    ] = None,
    layers: Annotated[list[int], Layers] = DEPTHS,
    threads: Annotated[int, Threads] = 1,
    passes: Annotated[int, Passes] = 20,
    default_path: Annotated[
        bool,
        typer.Option(
            "--default-path/--no-default-path",
            help="Also GCN as PyG's users call it, with edge_index: minutes on large graphs.",
        ),
    ] = True,
    out: Annotated[Path | None, Figure] = None,
    device: Annotated[str, Device] = "cpu",
    precision: Annotated[str, Precision] = "32",
    data_dir: Annotated[Path | None, DataDir] = None,
    as_json: Annotated[bool, AsJson] = False,
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
    threads: Annotated[int, Threads] = 1,
    passes: Annotated[int, Passes] = 5,
    out: Annotated[Path | None, Figure] = None,
    device: Annotated[str, Device] = "cpu",
    precision: Annotated[str, Precision] = "32",
    as_json: Annotated[bool, AsJson] = False,
) -> None:
    """Compare a training step of SASGNN with the same mathematics by PyG's message passing.

    Forward and backward, ten layers, width 32, on a graph with the size of Tolokers and on a
    100 × 100 grid.
    """
    compute = choose_compute(device, precision)
    from eegnn.bench.training import compare

    measure = partial(compare, passes, compute)
    _measure(measure, threads, out, as_json, passes=passes, **compute.as_dict())


@bench.command("compile")
def bench_compile(
    layers: Annotated[int, option("N", "Depth.", min=1)] = 21,
    threads: Annotated[int, Threads] = 1,
    passes: Annotated[int, Passes] = 20,
    out: Annotated[Path | None, Figure] = None,
    device: Annotated[str, Device] = "cpu",
    precision: Annotated[str, Precision] = "32",
    as_json: Annotated[bool, AsJson] = False,
) -> None:
    """Compare a training step of SASGNN and EEGNN with the same compiled by torch.compile.

    Forward and backward, width 32, on the graphs of `eegnn bench training`. Compiling takes minutes
    and, on a CPU, a C++ compiler.
    """
    compute = choose_compute(device, precision)
    from eegnn.bench.compiled import compare

    measure = partial(compare, layers, passes, compute)
    _measure(measure, threads, out, as_json, passes=passes, **compute.as_dict())


@bench.command("memory")
def bench_memory(
    dataset: Annotated[str, option("NAME", "A heterophilic data set.")] = "minesweeper",
    layers: Annotated[list[int], Layers] = DEPTHS,
    threads: Annotated[int, Threads] = 1,
    passes: Annotated[int, Passes] = 5,
    out: Annotated[Path | None, Figure] = None,
    device: Annotated[str, Device] = "cpu",
    precision: Annotated[str, Precision] = "32",
    data_dir: Annotated[Path | None, DataDir] = None,
    as_json: Annotated[bool, AsJson] = False,
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
        option(
            "NAME",
            "A data set that `eegnn datasets` lists. Repeat it for more.",
            default="all, in minutes",
        ),
    ] = None,
    threads: Annotated[int, Threads] = 1,
    out: Annotated[Path | None, Figure] = None,
    as_json: Annotated[bool, AsJson] = False,
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
        list[int], option("N", "Size of a generated graph. Repeat it for more.", min=1000)
    ] = [100_000, 1_000_000],  # noqa: B006
    block: Annotated[int, option("N", "Nodes of a block.", min=100)] = 10_000,
    epoch: Annotated[bool, flag("--epoch", "Also train for an epoch, by blocks.")] = False,
    threads: Annotated[int, Threads] = 1,
    passes: Annotated[int, Passes] = 3,
    out: Annotated[Path | None, Figure] = None,
    as_json: Annotated[bool, AsJson] = False,
) -> None:
    """Measure memory and time of one huge graph by blocks, and compare with the whole graph.

    Each pass is a new process, whose peak memory counts above what it has with the raw data; the
    sizes take turns. The whole graph is computed too where it has at most 100,000 nodes.
    """
    from eegnn.bench.blocks import compare

    measure = partial(compare, nodes, passes, block, epoch)
    _measure(measure, threads, out, as_json, passes=passes, block=block)


@bench.command("on-demand")
def bench_on_demand(
    nodes: Annotated[int, option("N", "Size of the generated graphs.", min=1000)] = 1_000_000,
    asked: Annotated[
        list[int], option("N", "Nodes of a query. Repeat it for more.", min=1)
    ] = ASKED,
    queries: Annotated[
        int, option("N", "Queries that are timed; fewer of those that take seconds.", min=1)
    ] = 100,
    files: Annotated[
        int | None,
        option(
            "N",
            "Also write a graph of this size to files, ask it, and compute it by blocks.",
            min=16_000,
        ),
    ] = None,
    threads: Annotated[int, Threads] = 1,
    out: Annotated[Path | None, Figure] = None,
    as_json: Annotated[bool, AsJson] = False,
) -> None:
    """Compare answers for a few nodes with those of the whole graph, and with GCN on hops.

    A grid of Minesweeper and a power-law graph; EEGNN is trained on what is around a node, which
    takes seconds. GCN is PyG's, untrained, on `k_hop_subgraph`: 20 layers, and two.
    """
    from eegnn.bench.on_demand import compare

    measure = partial(compare, nodes, asked, queries, files)
    _measure(measure, threads, out, as_json, queries=queries)


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
