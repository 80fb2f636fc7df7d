"""Two processes that train in one folder: one does, the other gets a sentence."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

from eegnn.train.run import RunFolder
from tests.torture.harness import Report, Wrong, run_cases
from tests.torture.processes import REFUSED, fork, live, make_data, wait
from tests.train.problems import timeless

EPOCHS = 4


def compete(folder: Path, data: str, resume: bool, delay: float) -> None:
    time.sleep(delay)
    try:
        live(folder, data, EPOCHS, resume)
    except (RuntimeError, FileExistsError) as error:
        expected = ("another process is training in", "holds a run already")
        if not any(words in str(error) for words in expected):
            raise
        raise SystemExit(REFUSED) from error


def case(where: Path, duration: float, rng: random.Random, report: Report) -> str:
    folder, resume = where / f"pair-{rng.getrandbits(48):x}", rng.random() < 0.5
    delays = (0.0, rng.uniform(0, duration) if rng.random() < 0.7 else 0.0)
    pair = [fork(compete, folder, str(where / "data.npz"), resume, delay) for delay in delays]
    codes = sorted(wait(pid) for pid in pair)
    if codes not in ([0, 0], [0, REFUSED]):
        raise Wrong(f"the processes ended with {codes}")
    if codes == [0, 0] and not resume:
        raise Wrong("two processes began the same run")
    found = [timeless(line) for line in RunFolder(folder).metrics()]
    if found != [timeless(line) for line in RunFolder(where / "alone").metrics()]:
        raise Wrong(f"epochs {[line['epoch'] for line in found]}, or other numbers")
    shutil.rmtree(folder)
    return "one after the other" if codes == [0, 0] else "one was refused"


def run(seed: int, numbers: range) -> Report:
    with tempfile.TemporaryDirectory() as temporary:
        where = Path(temporary)
        make_data(where / "data.npz", "node")
        start = time.perf_counter()
        assert wait(fork(live, where / "alone", str(where / "data.npz"), EPOCHS)) == 0
        duration = time.perf_counter() - start
        return run_cases("pairs", seed, numbers, partial(case, where, duration), seconds=300)
