"""The lines of ``metrics.jsonl`` as TensorBoard event files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eegnn.train.run import RunFolder

Line = dict[str, Any]


class EventFiles:
    """Writes event files beside a run, in the folder ``tensorboard``.

    ``metrics.jsonl`` is the record and event files are a view of it: what was written before the
    run was last resumed is purged when writing begins, and all finished epochs are written again.
    So each epoch is shown once, however often the run was stopped, and also if TensorBoard was
    asked for late.

    Used as a context around training, and called after each epoch with its line.

    Args:
        folder: of the run. Nothing is written before the first epoch is finished.

    Raises:
        ImportError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError(
                "--tensorboard needs TensorBoard: pip install 'eegnn[tensorboard]'"
            ) from error
        self._run = RunFolder(folder)
        self._make = SummaryWriter
        self._writer: Any = None

    def __call__(self, line: Line) -> None:
        """Write the line of an epoch that has just been added to ``metrics.jsonl``."""
        if self._writer is None:
            self._begin()
        else:
            self._write(line)

    def _begin(self) -> None:
        path = str(self._run.path / "tensorboard")
        self._writer = self._make(path, purge_step=1, flush_secs=10)
        for line in self._run.metrics():
            self._write(line)

    def _write(self, line: Line) -> None:
        for tag, value in scalars(line):
            self._writer.add_scalar(tag, value, line["epoch"])

    def __enter__(self) -> EventFiles:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._writer is None and kind is None:  # the run was finished before
            self._begin()
        if self._writer is not None:
            self._writer.close()


def scalars(line: Line) -> Iterator[tuple[str, float]]:
    """Yield the numbers of an epoch with their names; TensorBoard groups names by their prefix.

    Args:
        line: of ``metrics.jsonl``.
    """
    yield "loss", line["loss"]
    yield "score/val", line["val"]
    if line["test"] is not None:
        yield "score/test", line["test"]
    yield "exit/mean", line["exit_mean"]
    for name, layer in zip(("q10", "q50", "q90"), line["exit_quantiles"], strict=True):
        yield f"exit/{name}", layer
    for part, norm in line.get("grad", {}).items():
        yield f"grad/{part}", norm
    yield "lr", line["lr"]
