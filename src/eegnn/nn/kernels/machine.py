"""How kernels are compiled, kept and run."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import torch
from numba import config, get_num_threads, njit, set_num_threads

# No flag that says there are no NaNs: they must get through.
OPTIONS: dict[str, Any] = {
    "fastmath": {"contract", "nsz", "reassoc", "arcp"},
    "error_model": "numpy",  # a division that may raise is no vector instruction
    "nogil": True,
}
#: With fewer numbers to compute, several threads take longer than one.
PARALLEL_SIZE = 2**13
#: Rows that are computed together.
BLOCK = 32
Array = np.ndarray[Any, Any]
F = np.float32
#: Of what is used as an index: Numba asks of any other whether it counts from the end.
U = np.uint64
_LOCK = threading.Lock()  # some of Numba's pools of threads take one caller at a time
_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:12]

#: For what is part of others.
inlined = njit(inline="always", **OPTIONS)


def kept(function: Any, name: str, **options: Any) -> Any:
    """Compile a function when it is first called, and keep the result on disk.

    Numba files it under its name and makes it anew when its own file changes, but not when what it
    calls does: so the name has a digest of all files.
    """
    function.__qualname__ = f"{name}_{_DIGEST}"
    return njit(cache=True, **options, **OPTIONS)(function)


def part(function: Any) -> Any:
    """What a thread does with its part of the rows.

    Not inlined, since Numba would make parallel loops of what is in it. It allocates nothing, so
    no references have to be counted: without saying so, half of the time went into that.
    """
    try:
        return njit(_nrt=False, **OPTIONS)(function)  # type: ignore[call-overload]
    except KeyError:  # no option that Numba promises to keep
        return njit(**OPTIONS)(function)


class Kernel:
    """A function that is compiled for one thread and for several, when first called.

    Args:
        function: of a number of parts, its loop over which is shared by threads, and of what the
            kernel is called with.
    """

    def __init__(self, function: Any) -> None:
        other = FunctionType(function.__code__, function.__globals__, function.__name__)
        self.serial = kept(function, function.__name__)
        self.parallel = kept(other, f"{function.__name__}_parallel", parallel=True)
        self.__doc__ = function.__doc__

    def __call__(self, size: int, *arguments: Any) -> Any:
        """Run it on as many threads as PyTorch uses; ``size`` counts the numbers to compute."""
        threads = min(torch.get_num_threads(), config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
        if threads == 1 or size < PARALLEL_SIZE:
            return self.serial(1, *arguments)
        with _LOCK:
            before = get_num_threads()
            if before == threads:  # as it mostly is; saying so takes longer than a small kernel
                return self.parallel(threads, *arguments)
            set_num_threads(threads)
            try:
                return self.parallel(threads, *arguments)
            finally:
                set_num_threads(before)
