"""DataSet: what is known of a data set before it is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from torch_geometric.data import Data

from eegnn.data.fetch import Fetch
from eegnn.data.mirror import data_root, in_mirror
from eegnn.data.problem import Metric
from eegnn.data.splits import Splitter
from eegnn.typing import Level, Task

Place = Literal["on disk", "in mirror", "needs network"]


class Archive(NamedTuple):
    """A zip file that the mirror may hold in place of raw files, and the folder in it."""

    path: str
    folder: str


@dataclass(frozen=True)
class DataSet:
    """One entry of the registry.

    Attributes:
        name: what a user types.
        title: what its authors call it.
        family: the collection it belongs to.
        home: its folder below the data folder; holds ``raw`` and ``processed``.
        fetch: opens it by PyG's class.
        split: picks a split.
        splits: how many there are.
        level, task, metric: as in :class:`~eegnn.data.problem.Problem`.
        licence: of the data, as stated by who publishes it.
        citation, url: where it comes from.
        figures: published statistics, under the names of
            :meth:`eegnn.data.statistics.Statistics.figures`.
        slips: what the files have where a published figure is known to be wrong.
        shape: what is done to every graph.
        features: what that, or its makers, did to node features.
        split_file: published splits, relative to the data folder and the mirror.
        archive: see :class:`Archive`.
        needs: what ``home`` must hold before it is processed.
        remark: what a user should know, such as slips in published statistics.
    """

    name: str
    title: str
    family: str
    home: str
    fetch: Fetch = field(repr=False)
    split: Splitter = field(repr=False)
    splits: int
    level: Level
    task: Task
    metric: Metric
    licence: str
    citation: str
    url: str
    figures: Mapping[str, float] = field(repr=False)
    slips: Mapping[str, float] = field(default_factory=dict, repr=False)
    shape: Callable[[Data], Data] | None = field(default=None, repr=False)
    features: str = "as published"
    split_file: str | None = None
    archive: Archive | None = None
    needs: tuple[str, ...] = ("raw",)
    remark: str = ""

    @property
    def outputs(self) -> int:
        """Number of classes, labels or targets."""
        return int(self.figures["classes"])

    @property
    def inductive(self) -> bool:
        """Whether it has many graphs."""
        return "graphs" in self.figures

    def place(self, root: Path | None = None) -> Place:
        """Say whether it can be opened without a network, and from where."""
        home = data_root(root) / self.home
        if (home / "processed").is_dir() or any(home.glob("raw/*")):
            return "on disk"
        if in_mirror(f"{self.home}/raw") or (self.archive and in_mirror(self.archive.path)):
            return "in mirror"
        return "needs network"
