"""Processes that train, as forks of one that has made the imports.

Imports cost seconds. The process that forks computes nothing itself, since threads would not
survive the fork.
"""

from __future__ import annotations

import math
import os
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from eegnn.data.npz import write_npz
from eegnn.distributed import ALONE, Ranks
from eegnn.train.config import make_config
from eegnn.train.start import train

#: What a process that was refused ends with.
REFUSED = 3
BASE: dict[str, Any] = {"hidden_channels": 8, "num_layers": 4, "options": {"dropout": 0.3}}


def fork(function: Callable[..., None], *arguments: Any) -> int:
    """Call a function in a new process, in a group of its own, and return its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        function(*arguments)
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait(pid: int) -> int:
    """Return the exit code of a process, negative if a signal ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def watch(pid: int, limit: float = math.inf) -> float:
    """Wait until a process ends, or has computed so many seconds; return how many it has computed.

    Not seconds of the clock: on a busy machine all kills would come before the first epoch.
    """
    seconds = 0.0
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        seconds = max(seconds, computed(pid))
        if seconds >= limit:
            break
        time.sleep(min(max(0.001, (limit - seconds) / 2), 0.05))
    return seconds


def computed(pid: int) -> float:
    """CPU seconds of a process and its children; of Linux, as is the number of its clock."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = 0.0
    with suppress(OSError):  # one has ended meanwhile
        for each in (pid, *map(int, children.read_text().split())):
            found += time.clock_gettime((~each << 3) | 2)
    return found


def make_data(path: Path, kind: str) -> None:
    """Write a problem as a file; in a process of its own, for it computes."""
    from tests.train.problems import graph_problem, node_problem

    def write() -> None:
        problem = node_problem(200) if kind == "node" else graph_problem(30)
        write_npz(path, problem.graphs if kind == "graph" else problem.graphs[0])

    assert wait(fork(write)) == 0


def live(
    folder: Path, dataset: str, epochs: int, resume: bool = True, ranks: Ranks = ALONE
) -> None:
    """Begin a run, or go on with it, and train it to the end."""
    torch.set_num_threads(1)
    config = make_config(BASE, {"dataset": dataset, "epochs": epochs, "batch_size": 7})
    train(config, folder, resume, ranks=ranks)
