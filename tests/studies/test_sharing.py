"""Three workers share runs over one storage, and one of them is killed and started again."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from eegnn.train.results import read_results
from tests.postgres import postgres
from tests.processes import run_module

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]


#: Kinds of storage, and how many runs are shared over it.
COUNTS = {"sqlite": 30, "journal": 8, "postgres": 8}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[int]], str]:
    """Share runs over all storages there are; return how workers ended, and what they said."""
    pytest.importorskip("optuna", reason="needs eegnn[tune]")
    home = tmp_path_factory.mktemp("sharing")
    urls = {"sqlite": f"sqlite:///{home / 'study.db'}", "journal": str(home / "study.journal")}
    with ExitStack() as stack:
        with suppress(pytest.skip.Exception):
            urls["postgres"] = stack.enter_context(postgres())
        tasks = {kind: (url, COUNTS[kind]) for kind, url in urls.items()}
        ran = run_module("tests.studies.sharing", str(home), json.dumps(tasks))
    return home, json.loads(ran.stdout.splitlines()[-1]), ran.stderr


@pytest.mark.parametrize("kind", COUNTS)
def test_every_run_is_done_once(kind: str, done: tuple[Path, dict[str, list[int]], str]) -> None:
    home, codes, said = done
    if kind not in codes:
        pytest.skip("no PostgreSQL server can be started here")
    assert codes[kind] == [0, 0, 0], said
    everything = list(range(COUNTS[kind]))
    begun = Counter(int(split) for split in (home / kind / "begun").read_text().split())
    assert sorted(begun) == everything
    assert sum(begun.values()) == len(everything) + 1, "only that of the dead begins again"
    for place in ("here", "elsewhere"):
        lines = read_results(home / kind / place / "results" / "tiny.jsonl")
        assert sorted(line["config"]["split"] for line in lines) == everything
