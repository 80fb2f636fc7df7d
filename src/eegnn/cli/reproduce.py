"""`eegnn reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import eegnn.cli.options as opt
from eegnn.cli.app import app, print_json

Name = typer.Argument(
    metavar="NAME", help="An experiment that --list names, or `all`.", show_default=False
)
ListAll = opt.flag("--list", "Say what there is, what it costs, and whether the data is here.")
WriteResults = opt.option(
    "FILE",
    "Write one page of all that is in the folder of results, and the NAME.csv and NAME.png of each "
    "experiment.",
    default=False,
)
Show = opt.option(
    "CELL",
    "List the runs behind cells: `GROUP, ROW, COLUMN` or a part of it, such as `EEGNN, Tolokers`. "
    "Nothing is run.",
    default=False,
)
Only = opt.option(
    "NAMES",
    "Run these models or data sets alone, such as `minesweeper,sasgnn,eegnn`.",
    default="all",
)
Splits = opt.option("N-N", "Splits, or seeds, such as `0-9` or `0,3`.", default="all")
Quick = opt.flag("--quick", "A small version, marked as such: NAME-quick.md and so on.")
Out = opt.option("FOLDER", "For NAME.jsonl (runs), NAME.md, NAME.csv, NAME.png.")
Runs = opt.option("FOLDER", "For runs that are not finished.")
Storage = opt.option(
    "FILE|URL",
    f"Share runs and results with all who have the same one: {opt.STORAGE} Needs `pip install "
    "'eegnn[tune]'`.",
    default="the folder of runs, on one machine",
)


@app.command()
def reproduce(
    name: Annotated[str | None, Name] = None,
    list_all: Annotated[bool, ListAll] = False,
    write_results: Annotated[Path | None, WriteResults] = None,
    show: Annotated[str | None, Show] = None,
    only: Annotated[str | None, Only] = None,
    splits: Annotated[str | None, Splits] = None,
    quick: Annotated[bool, Quick] = False,
    out: Annotated[Path, Out] = Path("results"),
    runs: Annotated[Path, Runs] = Path("runs"),
    storage: Annotated[str | None, Storage] = None,
    device: Annotated[str, opt.Device] = "cpu",
    precision: Annotated[str, opt.Precision] = "32",
    data_dir: Annotated[Path | None, opt.DataDir] = None,
    as_json: Annotated[bool, opt.AsJson] = False,
) -> None:
    """Repeat a table or figure of the paper, with its numbers beside ours.

    A run that is in the folder of results, in any of its .jsonl files, is not done again, on
    whatever device it was done. After Ctrl-C the same command goes on. Start it several times to
    share the work, on several machines with --storage.
    """
    if (name is not None) + list_all + (write_results is not None) != 1:
        raise typer.BadParameter("give one of NAME, --list and --write-results")
    if show is not None and name in (None, "all"):
        raise typer.BadParameter("needs the name of one experiment", param_hint="--show")
    compute = opt.choose_compute(device, precision)
    from eegnn.cli.experiments import Session
    from eegnn.experiments import registry
    from eegnn.studies.experiment import Scope

    scope = Scope(quick, _parse_numbers(splits))
    session = Session(scope, out, runs, storage, data_dir, Console(stderr=as_json), compute)
    if write_results is not None:
        session.write_results(write_results)
    elif list_all:
        rows = session.list_all()
        if as_json:
            print_json(experiments=rows)
    elif show is not None:
        cells = session.show(registry.find(str(name)), show)
        if as_json:
            print_json(cells=cells)
    else:
        chosen = registry.by_cost(quick) if name == "all" else [registry.find(str(name))]
        done = [session.reproduce(each, only, fetch=name != "all") for each in chosen]
        found = [result for result in done if result is not None]
        if not found and name != "all":
            raise typer.Exit(1)
        if as_json:
            print_json(**({"experiments": found} if name == "all" else found[0]))


def _parse_numbers(text: str | None) -> tuple[int, ...] | None:
    """Read ``0-9`` or ``0,3``."""
    if text is None:
        return None
    numbers: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            numbers += range(int(first), int(last or first) + 1)
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0:
        raise typer.BadParameter(f"must be such as 0-9 or 0,3, got {text!r}", param_hint="--splits")
    return tuple(dict.fromkeys(numbers))
