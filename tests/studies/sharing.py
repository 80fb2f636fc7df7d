"""What `test_sharing.py` runs: three workers on each storage, of which one is killed.

Workers are forks of a process that has made the imports and computed nothing.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from eegnn.studies.runner import Runner
from eegnn.studies.store import ResultStore
from eegnn.train import loop, start, storage  # noqa: F401  (before any fork)
from eegnn.train.config import Config
from tests.studies.tiny import config

SILENCE = 8.0


def wait_for(path: Path) -> None:
    """Wait, a minute at most, for what a worker says by making a file."""
    end = time.monotonic() + 60
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{path.name} is not there")
        time.sleep(0.05)


def work(home: Path, name: str, where: str, count: int, doomed: bool) -> None:
    """Do the runs. A doomed worker stops in the middle of its second run, to be killed."""
    begun = 0

    def watch(run: Config, line: dict[str, Any] | None) -> None:
        nonlocal begun
        if line is None:
            begun += 1
            with (home / "begun").open("a") as file:
                file.write(f"{run.split}\n")
            if not doomed:  # or the others may do all the runs before it has begun two
                wait_for(home / "stuck")
        elif doomed and begun == 2:
            (home / "stuck").touch()
            signal.pause()

    # The first two share their folders, as on one machine; the third is elsewhere.
    place = home / ("elsewhere" if name == "c" else "here")
    configs = [config(split=split) for split in range(count)]
    store = ResultStore(place / "results", "tiny")
    Runner(store, place / "runs", watch=watch).run(configs, where)


def fork(*arguments: Any) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            storage.HEARTBEAT_TIMEOUT = SILENCE
            work(*arguments)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def share(home: Path, where: str, count: int) -> list[int]:
    """Return how the workers ended, of which the second was killed and started again."""
    home.mkdir()
    workers = [fork(home, name, where, count, name == "b") for name in "abc"]
    try:
        wait_for(home / "stuck")
    finally:
        os.kill(workers[1], signal.SIGKILL)
        os.waitpid(workers[1], 0)
    workers[1] = fork(home, "b", where, count, False)
    return [os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers]


def main() -> None:
    torch.set_num_threads(1)
    home, tasks = Path(sys.argv[1]), json.loads(sys.argv[2])
    codes = {kind: share(home / kind, where, count) for kind, (where, count) in tasks.items()}
    print(json.dumps(codes))


if __name__ == "__main__":
    main()
