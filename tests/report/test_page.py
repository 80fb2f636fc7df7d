from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from eegnn.report.page import page_of, write_report
from tests.analysis.runs import trained
from tests.train.problems import node_problem

NASTY = "</script><script>alert('&')</script>{{data}}<img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def data_of(page: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


def test_the_report_is_one_file_that_needs_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(tmp_path / "run", node_problem(), monkeypatch)
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    seen: list[Path] = []
    size = write_report([run, run], tmp_path / "report.html", on_run=seen.append)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert size == len(page.encode())
    assert seen == [run, run]
    assert [one["name"] for one in data_of(page)["runs"]] == ["run", "run"]
    for tag, attributes in Tags(page).found:
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith("data:"), (tag, attributes)
    assert "@import" not in page
    assert "{{" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before


def test_names_are_never_markup() -> None:
    run = {"name": NASTY, "model": NASTY, "dataset": NASTY}
    page = page_of([run])
    assert data_of(page)["runs"] == [run]
    tags = [tag for tag, _ in Tags(page).found]
    assert tags.count("script") == 2
    assert "img" not in tags
    (title,) = re.findall("<title>(.*?)</title>", page, re.S)
    assert "<" not in title


def test_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="runs must name at least one folder"):
        write_report([], tmp_path / "report.html")


def test_a_folder_without_a_run_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds no run"):
        write_report([tmp_path], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()
