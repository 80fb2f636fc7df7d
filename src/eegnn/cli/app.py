"""The application that the commands belong to, and what they print with."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from importlib.metadata import version
from platform import python_version
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typer.core import TyperGroup

from eegnn import __version__

#: Characters of an argument on the command line; no path is longer.
MAX_ARGUMENT = 4096


class _Commands(TyperGroup):
    """Commands that say, after Ctrl-C or SIGTERM, how to go on."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise interrupted(stop, "a training run goes on with --resume") from None


def interrupted(stop: KeyboardInterrupt, how_to_go_on: str) -> typer.Exit:
    """Say how to go on, and return the exit: its code is 128 and the number of the signal."""
    print(f"eegnn: interrupted; {how_to_go_on}", file=sys.stderr)
    return typer.Exit(128 + (stop.args[0] if stop.args else signal.SIGINT))


def _stop_as_ctrl_c_does() -> None:
    """Let what ends a process when a machine or a terminal closes raise ``KeyboardInterrupt``.

    Not where the parent ignores the signal (``nohup``), and not for the processes of ``torchrun``,
    which may be waiting for each other and could not end in time.
    """

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt(number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, stop)


app = typer.Typer(
    name="eegnn",
    cls=_Commands,
    help="Graph neural networks whose nodes and graphs decide when they have seen enough.",
    epilog="Start with `eegnn demo`, then `eegnn train minesweeper`.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
bench = typer.Typer(help="Measure speed, always as ratios within one run.", no_args_is_help=True)
app.add_typer(bench, name="bench")


def _print_version(wanted: bool) -> None:
    if wanted:
        packages = [f"{name} {version(name)}" for name in ("torch", "torch_geometric")]
        print(f"eegnn {__version__},", ", ".join([f"Python {python_version()}", *packages]))
        raise typer.Exit


@app.callback()
def _options_of_every_command(
    _: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            metavar="",
            help="Show the versions of EEGNN, Python, PyTorch and PyG, and exit.",
        ),
    ] = False,
) -> None:
    """Give the application the options that stand before a command."""


def new_progress(label: str) -> Progress:
    """Return a bar on standard error with a label, a count, a text and the remaining time."""
    return Progress(
        TextColumn(label),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


@contextmanager
def progress_bar(epochs: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield what to call after each epoch with its line of metrics; the first call shows a bar.

    So what fails before, such as a data set that does not exist, leaves no empty bar behind.
    """
    bar = new_progress("training")
    task = bar.add_task("", total=epochs)
    with ExitStack() as stack:

        def show(line: dict[str, Any]) -> None:
            if not bar.live.is_started:
                stack.enter_context(bar)
            text = "loss {loss:.3f}  validation {val:.3f}  mean exit {exit_mean:.1f}"
            bar.update(task, completed=line["epoch"], description=text.format(**line))

        yield show


def command_line() -> str:
    """Return what was typed, to get a result again."""
    return shlex.join(["eegnn", *sys.argv[1:]])


def print_json(**fields: Any) -> None:
    """Print one JSON object, the last line of standard output; NaN, which JSON lacks, is null."""
    from eegnn._json import to_json

    print(to_json(fields), flush=True)


def main() -> None:
    """Run the command line; a failure is one sentence and exit code 1."""
    if "LOCAL_RANK" not in os.environ:
        _stop_as_ctrl_c_does()
    warnings.formatwarning = lambda message, *_, **__: f"warning: {_one_line(message)}\n"
    for argument in sys.argv[1:]:
        if len(argument) > MAX_ARGUMENT:
            print(f"eegnn: an argument is too long: {_one_line(argument)}", file=sys.stderr)
            sys.exit(2)
    try:
        with _quiet_unless_main_rank():
            app()
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        sys.exit(_failure(error))


def _is_other_rank() -> bool:
    """Whether ``torchrun`` started this process, and not as the first; known without torch."""
    return "LOCAL_RANK" in os.environ and os.environ.get("RANK", "0") != "0"


@contextmanager
def _quiet_unless_main_rank() -> Iterator[None]:
    """Let only the first of the processes that torchrun starts print."""
    if not _is_other_rank():
        yield
        return
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        yield


def _failure(error: Exception) -> str | int:
    """Return the message for a failure, or an exit code where another rank failed before."""
    if "LOCAL_RANK" in os.environ:
        from eegnn.distributed import is_first_failure, launched_by_torchrun

        if launched_by_torchrun() and not is_first_failure():
            return 1
    # The first process may just be showing its progress, on a line that has to end.
    line_end = "\n" if _is_other_rank() else ""
    return f"{line_end}eegnn: {_one_line(error)}"


def _one_line(message: object) -> str:
    """Return a message on one line; very long names in it are cut, and so is the message."""
    text = re.sub(r"\s*\n\s*", " ", str(message))
    text = re.sub(r"\S{600,}", lambda word: f"{word[0][:200]}…{word[0][-200:]}", text)
    return text if len(text) <= 4000 else f"{text[:3000]} … {text[-500:]}"
