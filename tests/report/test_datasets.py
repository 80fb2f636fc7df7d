from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from eegnn.data.registry import DATASETS
from eegnn.report.datasets import dataset_rows, table_of
from tests.data.tiny import tiny_mirror


@pytest.fixture(autouse=True)
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tiny_mirror(tmp_path / "mirror")
    monkeypatch.setenv("EEGNN_MIRROR", str(folder))
    return folder


def printed(table: RenderableType, width: int) -> str:
    text = io.StringIO()
    Console(width=width, file=text).print(table)
    return text.getvalue()


def test_listing_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a data set was opened")

    monkeypatch.setattr("eegnn.report.datasets.open_dataset", refuse)
    rows = dataset_rows(root=tmp_path / "data")
    assert [row["name"] for row in rows] == list(DATASETS)
    places = {row["name"]: row["place"] for row in rows}
    assert places["minesweeper"] == places["peptides-func"] == "in mirror"
    assert places["questions"] == "needs network"
    assert not (tmp_path / "data").exists()


def test_rows_are_json_with_the_published_figures(tmp_path: Path) -> None:
    (row,) = json.loads(json.dumps(dataset_rows(["texas"], tmp_path)))
    assert (row["nodes"], row["edges"], row["adjusted_homophily"]) == (183, 574, -0.26)
    assert row["url"].startswith("https://")
    assert "differences" not in row


def test_measuring_finds_what_is_not_as_published(tmp_path: Path) -> None:
    sweeper, questions = dataset_rows(["minesweeper", "questions"], tmp_path, measure=True)
    unlike = {difference["figure"]: difference for difference in sweeper["differences"]}
    assert unlike["nodes"] == {"figure": "nodes", "published": 10_000, "found": 40, "known": False}
    assert "features" not in unlike
    assert sweeper["nodes"] == 40
    assert questions["differences"] is None
    text = printed(table_of([sweeper, questions]), 300)
    assert "minesweeper: nodes 40, published 10,000\n" in text
    assert "not opened" in text


def test_a_wide_table_has_a_line_for_each_data_set_with_licence_and_source(tmp_path: Path) -> None:
    text = printed(table_of(dataset_rows(root=tmp_path), 180), 180)
    for name in DATASETS:
        assert sum(line.split()[:1] == [name] for line in text.splitlines()) == 1
    tolokers = next(line for line in text.splitlines() if line.startswith("tolokers"))
    for cell in ("roc_auc", "11,758", "1,038,000", "0.09", "MIT", "Platonov et al., 2023"):
        assert cell in tolokers
    assert "needs network" in tolokers
    photo = next(line for line in text.splitlines() if line.startswith("photo"))
    assert "238,162" in photo  # both directions, though published once


def test_a_narrow_table_leaves_columns_out_rather_than_cutting_them(tmp_path: Path) -> None:
    text = printed(table_of(dataset_rows(root=tmp_path), 80), 80)
    assert "…" not in text
    assert "Platonov" not in text
    assert all(len(line) <= 80 for line in text.splitlines())


ROWS = [
    {"name": "wisconsin", "nodes": 251, "edges": 916, "homophily": 0.19, "place": "on disk"},
    {"name": "tolokers", "nodes": 11_758, "edges": 1_038_000, "place": "needs network"},
    {
        "name": "reddit-multi-5k",
        "graphs": 4_999,
        "mean_nodes": 508.5,
        "mean_edges": 1_189.7,
        "place": "in mirror",
    },
    {"name": "texas", "nodes": 183, "edges": 574, "place": "on disk"},
]
KNOWN = {"figure": "mean_undirected_edges", "published": 64.14, "found": 62.14, "known": True}
ALARM = {"figure": "nodes", "published": 7, "found": None, "known": False}


@pytest.mark.parametrize("width", [80, 120])
def test_a_checked_table_has_a_line_each_and_the_differences_below(width: int) -> None:
    found = [[KNOWN], [KNOWN, ALARM], None, []]
    rows = [{**row, "differences": unlike} for row, unlike in zip(ROWS, found, strict=True)]
    text = printed(table_of(rows, width), width)
    table, notes = text.split("\n\n")
    verdicts = {line.split()[0]: line.rstrip().split("  ")[-1] for line in table.splitlines()[1:]}
    assert verdicts == {
        "wisconsin": "known slip",
        "tolokers": "differs",
        "reddit-multi-5k": "not opened",
        "texas": "as published",
    }
    assert "…" not in text
    assert all(len(line) <= width for line in text.splitlines())
    slip = "mean undirected edges 62.14, published 64.14 (a known slip)"
    assert notes.splitlines()[-3:] == [
        f"wisconsin: {slip}",
        f"tolokers: {slip}",
        "tolokers: nodes unknown, published 7",
    ]


def test_a_single_data_set_is_shown_in_full(tmp_path: Path) -> None:
    text = printed(table_of(dataset_rows(["wisconsin"], tmp_path)), 200)
    assert "the paper's edge homophily of 0.20" in text
    assert "https://github.com/graphdml-uiuc-jlu/geom-gcn" in text


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="did you mean texas"):
        dataset_rows(["texs"])


def test_a_data_set_whose_package_is_missing_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, root: Path | None = None) -> None:
        raise ImportError(f"{name} needs the package that nobody has")

    monkeypatch.setattr("eegnn.report.datasets.open_dataset", refuse)
    sweeper, peptides = dataset_rows(["minesweeper", "peptides-func"], tmp_path, measure=True)
    assert sweeper["place"] == peptides["place"] == "needs a package"
    assert sweeper["differences"] is None
    text = printed(table_of([sweeper, peptides]), 200)
    assert "minesweeper needs the package that nobody has" in text
    assert "peptides-func needs the package that nobody has" in text
