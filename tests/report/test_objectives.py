from pathlib import Path

from eegnn.report.objectives import draw_objectives


def test_picture_is_written(tmp_path: Path) -> None:
    path = tmp_path / "objectives.png"
    draw_objectives(path)
    assert path.read_bytes().startswith(b"\x89PNG")
