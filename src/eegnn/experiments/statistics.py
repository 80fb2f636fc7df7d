"""What the data sets look like in numbers."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from eegnn.data.open import open_problem
from eegnn.data.registry import DATASETS
from eegnn.data.statistics import distance_statistics, size_statistics, statistics
from eegnn.data.topologies import TOPOLOGIES
from eegnn.studies.experiment import About, Cell, Cells, Measurement, Scope, Score
from eegnn.studies.quantities import Quantity
from eegnn.train.config import Config
from eegnn.train.schemas import NO_MODEL

FIELD = "statistics"
NODES = {"# nodes": "nodes", "# edges": "edges", "# features": "features", "# classes": "classes"}
HOMOPHILY = {"ξ_edge": "homophily", "ξ_adj": "adjusted_homophily"}
#: The tables: where they are, the family of data sets in the registry, which has the paper's
#: numbers, and the figures. In some of them the data sets are the columns.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "tab:datasets": ("heterophilic", NODES | HOMOPHILY),
    "tab:datasets_small_heterophilic": ("webkb", NODES | HOMOPHILY),
    "tab:homophilicnc_statistics": ("homophilic", NODES | {"# edges": "undirected_edges"}),
    "tab:tudataset_statistics": ("tu", {
        "# graphs": "graphs", "# avg. nodes": "mean_nodes", "# avg. edges": "mean_undirected_edges",
        "# classes": "classes",
    }),
    "tab:lrgb_statistics": ("lrgb", {
        "Total Graphs": "graphs", "Total Nodes": "nodes", "Avg Nodes": "mean_nodes",
        "Mean Deg.": "mean_degree", "Total Edges": "edges", "Avg Edges": "mean_edges",
        "Avg Shortest Path": "mean_shortest_path", "Avg Diameter": "mean_diameter",
    }),
    "Cora, not in the paper": ("planetoid", NODES),
    "OGB, not in the paper": ("ogb", NODES),
}  # fmt: skip
TRANSPOSED = ("homophilic", "tu")
#: What the registry does not have.
_PEPTIDES = {"mean_degree": 2.04, "mean_shortest_path": 20.89, "mean_diameter": 56.99}
DISTANCES = {
    "peptides-func": _PEPTIDES,
    "peptides-struct": _PEPTIDES,
    "pascalvoc-sp": {"mean_degree": 5.65, "mean_shortest_path": 10.74, "mean_diameter": 27.62},
}
ECHO, ECHO_TABLE = "echo-sssp", "tab:echo_data_statistics"
#: By topology: graphs, and mean and s.d. over them of nodes, degrees and edges.
ECHO_PAPER = {
    "Graph Topologies": (10_080, (83.69, 66.24), (2.53, 1.19), (211.63, 209.39)),
    "line": (1_680, (75.60, 27.32), (2.37, 0.10), (90.10, 33.89)),
    "ladder": (1_680, (56.52, 13.82), (2.92, 0.02), (82.54, 20.72)),
    "grid": (1_680, (193.10, 93.10), (2.95, 0.12), (288.32, 145.29)),
    "tree": (1_680, (60.42, 17.17), (1.96, 0.01), (59.42, 17.17)),
    "caterpillar": (1_680, (34.71, 7.96), (1.94, 0.02), (33.71, 7.96)),
    "lobster": (1_680, (81.79, 25.46), (1.97, 0.01), (80.79, 25.46)),
}


def measure(name: str, root: Path | None) -> dict[str, Any]:
    """Count a data set; of ECHO the graphs of each topology too, which come one after the other."""
    problem = open_problem(name, 0, root)
    found: dict[str, Any] = dict(statistics(problem))
    if name in DISTANCES:
        found |= distance_statistics(problem.graphs)
    if name == ECHO:
        size = len(problem.graphs) // len(TOPOLOGIES)
        parts = [problem.graphs[place * size :][:size] for place in range(len(TOPOLOGIES))]
        for row, part in zip(ECHO_PAPER, (problem.graphs, *parts), strict=True):
            found[row] = size_statistics(part) | distance_statistics(part)
            if row in TOPOLOGIES:  # the paper's mean over graphs; of all together, over nodes
                degrees = [data.edge_index.size(1) / int(data.num_nodes or 0) for data in part]
                found[row]["mean_degree"] = fmean(degrees)
    return found


def cells(scope: Scope) -> Cells:
    """A table for each of the paper's; the data is counted, nothing is trained."""
    for group, (family, figures) in TABLES.items():
        for entry in (entry for entry in DATASETS.values() if entry.family == family):
            published = {**entry.figures, **DISTANCES.get(entry.name, {})}
            for label, figure in figures.items():
                if figure == "mean_undirected_edges" and figure not in published:
                    figure = "mean_edges"  # of REDDIT-M alone the paper counts both directions
                number = published.get(figure) if "not in the paper" not in group else None
                row, column = (entry.title, label)[:: -1 if family in TRANSPOSED else 1]
                yield _cell((group, row, column), entry.name, (figure,), number)
    for row, (graphs, nodes, degrees, edges) in ECHO_PAPER.items():
        directions = "mean_edges" if row == "Graph Topologies" else "mean_undirected_edges"
        for column, figure, printed in (
            ("# Graphs", "graphs", (graphs,)),
            ("Avg Nodes", "mean_nodes", nodes),
            ("Avg Deg.", "mean_degree", degrees),
            ("Avg Edges", directions, edges),
            ("Avg Diam", "mean_diameter", (28.50, 6.92)),
            ("# Node Feat", "features", (2,)),
        ):
            yield _cell((ECHO_TABLE, row, column), ECHO, (row, figure), *printed)


def _cell(
    place: tuple[str, str, str],
    dataset: str,
    path: tuple[str, ...],
    number: float | None,
    sd: float | None = None,
) -> Cell:
    """Return a cell whose number is compared as printed: with two digits, or with none."""
    digits = 2 if path[-1].startswith("mean") or "homophily" in path[-1] else 0

    def read(run: dict[str, Any]) -> float:
        found = run[FIELD]
        for name in path:
            found = found[name]
        return round(found, digits)

    quantity = Quantity(path[-1].replace("_", " "), read, "equal", digits)
    paper = None if number is None else Score(number, sd)
    return Cell(*place, quantity, (Config(dataset=dataset, model=NO_MODEL),), paper)


ABOUT = About(
    title="The data sets in numbers",
    shows="The statistics of data sets: tab:datasets, tab:datasets_small_heterophilic, "
    "tab:homophilicnc_statistics, tab:tudataset_statistics, tab:lrgb_statistics and "
    "tab:echo_data_statistics.",
    settings="Counted in the files, and rounded as printed. Paths and diameters are those of "
    "connected graphs, means over graphs. The graphs of ECHO are generated anew, by its "
    "description; the s.d. beside the paper's means are over its graphs. Of all topologies "
    "together it counts both directions of an edge, of each alone one. Of ENZYMES the files have "
    "62.14 edges a graph; the homophily of Wisconsin is 0.20 with directed edges.",
    quick="there is nothing to leave out",
    minutes=(3, 3),
    measurement=Measurement(FIELD, measure),
)
