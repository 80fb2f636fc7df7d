"""What the entries of a collection have in common."""

from __future__ import annotations

from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeFeatures
from torch_geometric.utils import degree, to_undirected

from eegnn.data import fetch, splits
from eegnn.data.entry import Archive, DataSet
from eegnn.data.problem import Metric
from eegnn.typing import Level, Task

MOLECULES = "integer categories of atoms and bonds, as in OGB"


def heterophilous(name: str, metric: Metric, figures: dict[str, float]) -> DataSet:
    """Make an entry for one of the heterophilic five; PyG makes them undirected."""
    return DataSet(
        name=name,
        title=name.capitalize(),
        family="heterophilic",
        home=f"HeterophilousGraphDataset/{name.replace('-', '_')}",
        fetch=fetch.pyg("HeterophilousGraphDataset", name),
        split=splits.masks("the ten published 50/25/25 splits"),
        splits=10,
        level="node",
        task="classification",
        metric=metric,
        licence="MIT",
        citation="Platonov et al., 2023",
        url="https://github.com/yandex-research/heterophilous-graphs",
        figures=figures,
    )


def webkb(
    name: str, figures: dict[str, float], slips: dict[str, float] | None = None, remark: str = ""
) -> DataSet:
    """Make an entry for a web-page graph, made undirected here (self-loops stay, each once)."""
    return DataSet(
        name=name,
        title=name.capitalize(),
        family="webkb",
        home=f"WebKB/{name}",
        fetch=fetch.pyg("WebKB", name),
        split=splits.masks("the ten Geom-GCN splits"),
        splits=10,
        level="node",
        task="classification",
        metric="accuracy",
        licence="none stated",
        citation="Pei et al., 2020",
        url="https://github.com/graphdml-uiuc-jlu/geom-gcn",
        figures=figures,
        shape=_undirected,
        slips=slips or {},
        remark=remark,
    )


def cora(name: str, split: str, number: int, home: str, figures: dict[str, float]) -> DataSet:
    """Make an entry for Cora with one of the two published kinds of splits."""
    return DataSet(
        name=name,
        title=f"Cora ({split} split{'s' if number > 1 else ''})",
        family="planetoid",
        home=home,
        fetch=fetch.pyg("Planetoid", "Cora", split=split),
        split=splits.masks(f"Cora's {split} splits"),
        splits=number,
        level="node",
        task="classification",
        metric="accuracy",
        licence="none stated",
        citation="Yang et al., 2016",
        url="https://github.com/kimiyoung/planetoid",
        figures=figures,
        shape=NormalizeFeatures(),
        features="rows sum to one, as in Co-GNN",
    )


def shchur(name: str, kind: str, title: str, file: str, figures: dict[str, float]) -> DataSet:
    """Make an entry for a co-purchase or co-author graph, with a fixed 60/20/20 split."""
    path = f"splits/Amazon_Coauthor/{file}_split.npz"
    return DataSet(
        name=name,
        title=f"{kind} {title}",
        family="homophilic",
        home=f"{kind}/{title}",
        fetch=fetch.pyg(kind, title),
        split=splits.fixed(path),
        splits=1,
        level="node",
        task="classification",
        metric="accuracy",
        licence="MIT",
        citation="Shchur et al., 2018",
        url="https://github.com/shchur/gnn-benchmark",
        figures=figures,
        split_file=path,
    )


def tu(
    name: str,
    title: str,
    figures: dict[str, float],
    slips: dict[str, float] | None = None,
    remark: str = "",
) -> DataSet:
    """Make an entry for a TU set: ten folds; those without features get the degree."""
    folds = f"splits/TU_folds/{title.removesuffix('-5K')}_splits.json"
    bare = title.startswith(("IMDB", "REDDIT"))
    return DataSet(
        name=name,
        title=title,
        family="tu",
        home=f"TUDataset/{title}",
        fetch=fetch.pyg("TUDataset", title, use_node_attr=title == "ENZYMES"),
        split=splits.folds(folds),
        splits=10,
        level="graph",
        task="classification",
        metric="accuracy",
        licence="none stated",
        citation="Morris et al., 2020",
        url="https://chrsmrrs.github.io/datasets",
        figures=figures,
        shape=_with_degree if bare else None,
        features="the degree, one number a node" if bare else "as published",
        split_file=folds,
        slips=slips or {},
        remark=remark,
    )


def lrgb(
    name: str,
    level: Level,
    task: Task,
    metric: Metric,
    archive: Archive,
    licence: str,
    figures: dict[str, float],
) -> DataSet:
    """Make an entry for a set of the Long Range Graph Benchmark."""
    molecules = name.startswith("peptides")
    return DataSet(
        name=name,
        title=name.capitalize() if molecules else "PascalVOC-SP",
        family="lrgb",
        home=f"LRGBDataset/{name}",
        fetch=fetch.lrgb(name),
        split=splits.parts,
        splits=1,
        level=level,
        task=task,
        metric=metric,
        licence=licence,
        citation="Dwivedi et al., 2022",
        url="https://github.com/vijaydwivedi75/lrgb",
        figures=figures,
        features=MOLECULES if molecules else "as published",
        archive=archive,
    )


def ogb(
    name: str,
    level: Level,
    metric: Metric,
    licence: str,
    figures: dict[str, float],
    remark: str = "",
) -> DataSet:
    """Make an entry for a set of the Open Graph Benchmark."""
    return DataSet(
        name=name,
        title=name,
        family="ogb",
        home=f"ogb/{name.replace('-', '_')}",
        fetch=fetch.ogb(name),
        split=splits.ogb,
        splits=1,
        level=level,
        task="classification",
        metric=metric,
        licence=licence,
        citation="Hu et al., 2020",
        url=f"https://ogb.stanford.edu/docs/{'node' if level == 'node' else 'graph'}prop/#{name}",
        figures=figures,
        shape=_undirected if level == "node" else None,
        features="as published" if level == "node" else MOLECULES,
        needs=("raw", "split", "mapping", "RELEASE_v1.txt"),
        remark=remark,
    )


def _undirected(data: Data) -> Data:
    data.edge_index = to_undirected(data.edge_index, num_nodes=data.num_nodes)
    return data


def _with_degree(data: Data) -> Data:
    # A plain number, as in Errica et al. (2020), whose folds these are. One-hot would need 3,063
    # columns on REDDIT-BINARY, nearly all of them empty: 99 % of its degrees are below 13.
    data.x = degree(data.edge_index[0], data.num_nodes).unsqueeze(1)
    return data
