"""The report in a real browser."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from eegnn.data.minesweeper import minesweeper
from eegnn.data.problem import Problem
from eegnn.report.page import page_of
from eegnn.report.page_run import run_content
from tests.analysis.runs import trained
from tests.report.browser import Browser, find_browser
from tests.train.problems import graph_problem, regression_problem

CHROMIUM = find_browser()
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
]
SIDE, LAYERS = 12, 4
NASTY = "<script>alert(1)</script><b>bold</b>"
#: The colours in the middle of all cells of the board that is shown.
COLOURS = f"""(() => {{
  const shown = document.querySelector("canvas"), cell = shown.width / {SIDE};
  const copy = Object.assign(document.createElement("canvas"), {{ width: {SIDE}, height: {SIDE} }});
  const context = copy.getContext("2d", {{ willReadFrequently: true }});
  for (let u = 0; u < {SIDE * SIDE}; u++) {{
    const [x, y] = [u % {SIDE}, Math.floor(u / {SIDE})];
    context.drawImage(shown, (x + 0.5) * cell | 0, (y + 0.5) * cell | 0, 1, 1, x, y, 1, 1);
  }}
  const {{ data }} = context.getImageData(0, 0, {SIDE}, {SIDE});
  return Array.from({{ length: {SIDE * SIDE} }}, (_, u) => data.slice(4 * u, 4 * u + 3).join());
}})()"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"


def board_problem(side: int = SIDE) -> Problem:
    board = minesweeper(side)
    masks = (board.train_mask, board.val_mask, board.test_mask)
    train, val, test = (mask.nonzero().view(-1) for mask in masks)
    return Problem(
        "board", [board], "node", "classification", "roc_auc", 2, train, val, test, inductive=False
    )


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """A board with exits, the same at a fixed depth, graphs, and numbers at nodes."""
    folder = tmp_path_factory.mktemp("runs")
    found = []
    wanted = [
        (board_problem(), "eegnn"),
        (board_problem(), "sasgnn"),
        (graph_problem(), "eegnn"),
        (regression_problem(), "eegnn"),
    ]
    for number, (problem, model) in enumerate(wanted):
        with pytest.MonkeyPatch.context() as patch:
            run = trained(folder / f"run{number}", problem, patch, model)
            found.append(run_content(run))
    found[0]["dataset"] = found[1]["name"] = NASTY
    assert len(set(found[0]["left"]["histogram"])) > 2
    return found


@pytest.fixture(scope="module")
def page(contents: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page_of(contents), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    assert CHROMIUM is not None
    with Browser(CHROMIUM) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser, page: Path) -> Iterator[Browser]:
    """The first run is shown; at the end nothing may have gone wrong."""
    chromium.open(page)
    yield chromium
    assert chromium.errors == []
    assert chromium.requests == [page.resolve().as_uri()]


def exits_by_cell(contents: list[dict[str, Any]]) -> list[int]:
    packed = base64.b64decode(contents[0]["graph"]["layer"]["data"])
    return torch.frombuffer(bytearray(packed), dtype=torch.uint16).int().tolist()


def go_to(browser: Browser, layer: int) -> list[str]:
    """Move the slider as a user would, and return the colours of the cells."""
    browser.run(f"document.querySelector('input[type=range]').value = {layer}")
    browser.run("document.querySelector('input[type=range]').dispatchEvent(new Event('input'))")
    browser.wait("explorers[0].flash === 1")
    colours: list[str] = browser.run(COLOURS)
    return colours


def test_nodes_change_as_they_leave(browser: Browser, contents: list[dict[str, Any]]) -> None:
    exits = exits_by_cell(contents)
    browser.run("explorers[0].select(null)")
    idle = browser.run("css(themeColor('--idle'))")[4:-1].replace(" ", ",")
    for layer in range(1, LAYERS + 1):
        colours = go_to(browser, layer)
        assert [colour != idle for colour in colours] == [left <= layer for left in exits]
        assert f"Layer {layer}" in browser.run("document.querySelector('.status').textContent")
    ends = dict(zip(exits, colours, strict=True))
    assert len(set(ends.values())) == len(ends)  # a colour for each exit layer
    assert all(ends[exit] == colour for exit, colour in zip(exits, colours, strict=True))


def test_layers_are_counted_from_one(browser: Browser, contents: list[dict[str, Any]]) -> None:
    packed = base64.b64decode(contents[0]["graph"]["part"]["data"])
    tested = torch.frombuffer(bytearray(packed), dtype=torch.uint16).int() == 2
    left = torch.tensor(exits_by_cell(contents))[tested].tolist()
    card = "document.querySelector('[aria-label=\"Exit layers\"]')"
    browser.run(f"{card}.querySelector('details').open = true")
    browser.wait(f"{card}.querySelector('table') !== null")
    cells = "(row) => [...row.querySelectorAll('td')].map((cell) => +cell.textContent)"
    rows = browser.run(f"[...{card}.querySelectorAll('tr')].slice(1).map({cells})")
    assert rows == [[layer, left.count(layer)] for layer in range(1, LAYERS + 1)]
    ticks = browser.run(
        f"[...{card}.querySelectorAll('text[text-anchor=middle]')].map((one) => one.textContent)"
    )
    assert ticks == ["1", "2", "3", "4", "exit layer"]


def test_a_click_opens_a_trajectory(browser: Browser) -> None:
    browser.run("document.querySelector('canvas').scrollIntoView()")
    box = browser.run("document.querySelector('canvas').getBoundingClientRect().toJSON()")
    cell = box["width"] / SIDE
    browser.click(box["x"] + 4.5 * cell, box["y"] + 2.5 * cell)
    panel = browser.run("document.querySelector('.panel').innerText")
    assert "Cell 3, 5" in panel  # third row, fifth column
    for word in ("Left at", "Answer", "Truth", "still active", "step τ", "confidence"):
        assert word in panel
    browser.wait("document.querySelectorAll('.panel svg path').length >= 3")


def test_the_keyboard_does_it_all(browser: Browser) -> None:
    browser.run("document.querySelector('input[type=range]').focus()")
    at = "+document.querySelector('input[type=range]').value"
    assert browser.run(at) == LAYERS
    browser.press("ArrowLeft", 37)
    assert browser.run(at) == LAYERS - 1
    browser.press("Home", 36)
    assert browser.run(at) == 1
    browser.press(" ", 32, " ")
    assert browser.run("document.querySelector('.play').getAttribute('aria-label')") == "Pause"
    browser.wait(f"({at}) >= 2")
    browser.press(" ", 32, " ")
    assert browser.run("document.querySelector('.play').getAttribute('aria-label')") == "Play"
    browser.run("explorers[0].select(null); document.querySelector('canvas').focus()")
    for key, code in (("ArrowDown", 40), ("ArrowDown", 40), ("ArrowRight", 39)):
        browser.press(key, code)
    assert browser.run("explorers[0].selected") == SIDE + 1
    assert "Cell 2, 2" in browser.run("document.querySelector('.panel').innerText")


def test_playing_comes_to_an_end(browser: Browser) -> None:
    browser.run("document.querySelector('.play').click()")  # from the end: starts anew
    assert browser.run("explorers[0].layer") == 1
    browser.wait(f"explorers[0].layer === {LAYERS} && explorers[0].timer === null")


@pytest.mark.parametrize("mode", ["answer", "right"])
def test_colours_can_tell_other_things(browser: Browser, mode: str) -> None:
    before = go_to(browser, LAYERS)
    browser.run(f"document.querySelector('input[value={mode}]').click()")
    assert browser.run(COLOURS) != before


def test_names_are_shown_and_not_run(browser: Browser) -> None:
    assert NASTY in browser.run("document.querySelector('h1').textContent")
    assert NASTY in browser.run("document.getElementById('tabs').textContent")
    assert browser.run("document.querySelectorAll('h1 *, #tabs b').length") == 0


def test_every_run_and_all_side_by_side(browser: Browser) -> None:
    count = browser.run("document.querySelectorAll('#tabs button').length")
    assert count == 5
    for tab in range(count):
        browser.run(f"document.querySelectorAll('#tabs button')[{tab}].click()")
        browser.wait("document.querySelectorAll('.chart svg').length >= 5")
        browser.run("explorers.forEach((one) => { one.select(0); one.goTo(2); })")
        browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        browser.wait("document.querySelector('details table') !== null")
    browser.run("document.querySelectorAll('#tabs button')[0].click()")
    assert browser.run("document.querySelectorAll('canvas').length") == 4
    browser.run("explorers[0].goTo(1)")
    assert browser.run("explorers.map((one) => one.layer)") == [1, 1, 1, 1]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_a_phone_and_the_night(
    browser: Browser, page: Path, width: int, dark: bool
) -> None:
    browser.open(page, width, 800, dark)
    browser.wait("document.querySelectorAll('.chart svg').length >= 5")
    for tab in range(5):
        browser.run(f"document.querySelectorAll('#tabs button')[{tab}].click()")
        assert browser.run("document.documentElement.scrollWidth") <= width
    background = browser.run(BACKGROUND)
    assert (sum(background) < 200) == dark
    browser.run("document.getElementById('theme').click()")
    assert (sum(browser.run(BACKGROUND)) < 200) != dark


def test_what_can_be_used_has_a_name(browser: Browser) -> None:
    nameless = browser.run(
        """[...document.querySelectorAll("button, input, canvas, svg[role=img], aside, section")]
        .filter((one) => !one.getAttribute("aria-label") && !one.textContent.trim())
        .filter((one) => !one.labels?.length)
        .map((one) => one.outerHTML)"""
    )
    assert nameless == []
