"""How much memory this process has."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def resident(field: Literal["VmRSS", "VmHWM"]) -> int | None:
    """Bytes of memory that this process has (``VmRSS``) or had at most (``VmHWM``).

    ``None`` where the system does not tell: Linux does.
    """
    status = Path("/proc/self/status")
    if not status.is_file():
        return None
    (line,) = (line for line in status.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])
