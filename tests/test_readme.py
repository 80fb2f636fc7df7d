import re
import warnings
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its random edges are directed, which is said once
        exec(compile(code, str(README), "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("Exits(units=500, num_layers=20")


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (README.parent / target).exists(), target
    for path in re.findall(r"`((?:src|tests)/[^`]+)`", text):
        assert (README.parent / path).exists(), path
