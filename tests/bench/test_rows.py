from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from eegnn.bench.rows import BenchmarkRow, draw, table


@dataclass(frozen=True)
class Row(BenchmarkRow):
    title = "Speed"
    columns = ("model", "layers", "size", "seconds", "ratio", "change", "nothing")
    x_label, y_label, log_axes = "layers", "s", True

    model: str
    layers: int
    size: int
    seconds: float | None
    change: tuple[int, int] = (5, 2_500_000)
    nothing: float | None = None

    @property
    def ratio(self) -> float:
        return self.layers / 3

    def points(self) -> Iterator[tuple[str, str, float, float]]:
        yield self.model, "time", self.layers, self.seconds or 1.0


ROWS = [Row("GCN", 20, 123_456_789, 0.01234), Row("GCN", 10, 12, None)]


def test_the_table_shows_the_columns_with_three_digits() -> None:
    printed = io.StringIO()
    Console(width=120, file=printed).print(table(ROWS, threads=2))
    text = printed.getvalue()
    assert "Speed, 2 thread(s)" in text
    assert "nothing" not in text
    first, second = (line for line in text.splitlines() if "GCN" in line)
    assert first.replace("│", " ").split() == (
        ["GCN", "20", "123", "M", "0.0123", "6.67", "5", "→", "2.5", "M"]
    )
    assert second.replace("│", " ").split() == ["GCN", "10", "12", "3.33", "5", "→", "2.5", "M"]


def test_json_has_fields_and_properties() -> None:
    assert ROWS[1].as_dict() == {
        "model": "GCN",
        "layers": 10,
        "size": 12,
        "seconds": None,
        "change": (5, 2_500_000),
        "nothing": None,
        "ratio": 10 / 3,
    }


def test_the_figure_is_written_into_a_new_folder(tmp_path: Path) -> None:
    draw(ROWS, tmp_path / "new" / "speed.png")
    assert (tmp_path / "new" / "speed.png").stat().st_size > 1_000
