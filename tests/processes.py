"""Programs that tests run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


Done = subprocess.CompletedProcess[str]


def run_module(*command: str, cwd: Path = ROOT, seconds: int = 300) -> Done:
    """Run ``python -m`` with a module and its arguments; return the output of one that succeeds."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stderr
    return done


def run_ranks(program: Path, count: int = 2) -> Done:
    """Run a program by ``torchrun`` with this many processes, in its own folder."""
    launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node", str(count))
    return run_module(*launcher, program.name, cwd=program.parent)
