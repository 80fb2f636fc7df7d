"""How this process was started; known without the seconds that it takes to import torch."""

from __future__ import annotations

import os


def started_together() -> bool:
    """Whether ``torchrun`` started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "LOCAL_RANK" in os.environ
