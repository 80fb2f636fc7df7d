"""The numbers that the paper prints: a CSV file for each table, in ``paper_tables``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from eegnn.studies.experiment import Score
from eegnn.studies.tables import PaperTable

FOLDER = Path(__file__).parent / "paper_tables"


def paper_table(name: str) -> PaperTable:
    """Read a table: a line for each row, with cells such as ``93.29 ± 0.61``, or empty ones."""
    with (FOLDER / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        (_, *columns), *lines = csv.reader(file)
    return {
        row: {column: _score(text) for column, text in zip(columns, cells, strict=True) if text}
        for row, *cells in lines
    }


def _score(text: str) -> Score:
    return Score(*map(json.loads, text.split(" ± ")))
