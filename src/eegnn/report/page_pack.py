"""Arrays and JSON in a form that the page reads without a library."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import numpy.typing as npt

#: Full scale of a share in [0, 1].
FULL = 65535


def pack(values: npt.ArrayLike, dtype: str) -> dict[str, str]:
    """Encode numbers in base64, little-endian, as ``"u2"``, ``"u4"`` or ``"f4"``.

    Raises:
        ValueError: a number does not fit.
    """
    array = np.asarray(values)
    packed = array.astype(f"<{dtype}")
    if dtype != "f4" and not np.array_equal(packed, array):
        raise ValueError(f"values must fit into {dtype}, got up to {array.max()}")
    return {"dtype": dtype, "data": base64.b64encode(packed.tobytes()).decode("ascii")}


def pack_share(values: npt.ArrayLike) -> dict[str, str]:
    """Encode numbers of [0, 1] in steps of 1/65535; NaN becomes 0."""
    share = np.clip(np.nan_to_num(np.asarray(values, dtype=np.float64)), 0.0, 1.0)
    return pack(np.rint(share * FULL), "u2")


def rounded(values: Any, digits: int = 5) -> Any:
    """Round the numbers of nested lists; NaN and infinity, which JSON lacks, become ``None``."""
    if isinstance(values, dict):
        return {key: rounded(value, digits) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [rounded(value, digits) for value in values]
    if isinstance(values, float):
        return float(f"{values:.{digits}g}") if np.isfinite(values) else None
    return values


def script_json(content: Any) -> str:
    """Return JSON that is safe inside ``<script>``: nothing in it can end the element."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
