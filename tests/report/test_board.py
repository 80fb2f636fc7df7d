from pathlib import Path

import torch

from eegnn.data.minesweeper import minesweeper
from eegnn.nn.exits import Exits
from eegnn.report.board import draw_board


def test_picture_is_written(tmp_path: Path) -> None:
    data = minesweeper(10)
    n = 100
    exits = Exits(torch.arange(n) % 4, torch.zeros(n), torch.zeros(3, n), torch.tensor(0.5), 3)
    path = tmp_path / "board.png"
    draw_board(data, torch.rand(n), exits, path)
    assert path.read_bytes().startswith(b"\x89PNG")
