from __future__ import annotations

import re
from pathlib import Path

import pytest

from eegnn.experiments import paper
from eegnn.experiments.paper import FOLDER, paper_table
from eegnn.studies.experiment import Score

FILES = sorted(FOLDER.glob("*.csv"))


def test_a_table_has_a_score_for_each_cell_with_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "FOLDER", tmp_path)
    (tmp_path / "t.csv").write_text(',a,b\nx,1.5 ± 0.25,\n"y, too",,20288\n', encoding="utf-8")
    assert paper_table("t") == {"x": {"a": Score(1.5, 0.25)}, "y, too": {"b": Score(20288)}}


def test_a_line_with_a_cell_too_few_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "FOLDER", tmp_path)
    (tmp_path / "t.csv").write_text(",a,b\nx,1.5\n")
    with pytest.raises(ValueError, match="zip"):
        paper_table("t")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_file_is_a_table_that_an_experiment_reads(file: Path) -> None:
    assert paper_table(file.stem)
    sources = "".join(path.read_text() for path in FOLDER.parent.glob("*.py"))
    name = re.sub(r"_\d+$", r"_{layers}", file.stem)  # one file for each depth
    assert f'"{name}"' in sources
