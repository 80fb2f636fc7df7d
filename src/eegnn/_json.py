"""JSON files: read by a schema, or refused in one sentence; written without NaN, with a checksum.

What a file holds is refused where it is read, by the name of the file. A bit that flips within a
number leaves good JSON with a wrong result: :func:`seal` adds a checksum that tells.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eegnn._check import shown

if TYPE_CHECKING:
    from pydantic import ValidationError

#: The entry of a JSON object that holds the checksum of all others.
SEAL = "sha256"


def to_json(content: Any, indent: int | None = None) -> str:
    """Encode as JSON, which has neither NaN nor infinity: they become ``null``."""
    return json.dumps(_finite(content), indent=indent, allow_nan=False)


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object with its checksum, which :func:`read` checks and removes."""
    return {**content, SEAL: _checksum(json.loads(to_json(content)))}


def to_file(content: Mapping[str, Any]) -> bytes:
    """Encode a sealed object as a file."""
    return (to_json(seal(content), indent=2) + "\n").encode()


def read(path: Path, schema: Any, advice: str = "") -> Any:
    """Read a file with one JSON value.

    Args:
        path: the file.
        schema: a type that pydantic knows, such as a ``TypedDict``.
        advice: what the message of an error ends with.

    Raises:
        ValueError: it is not JSON, does not fit the schema, or was changed.
    """
    return _parse(path.read_bytes(), schema, str(path), advice)


def read_lines(path: Path, schema: Any, content: bytes | None = None) -> list[Any]:
    """Read a file with a JSON value in each line, or its ``content``; see :func:`read`."""
    lines = (path.read_bytes() if content is None else content).splitlines()
    return [_parse(line, schema, f"{path}, line {n},") for n, line in enumerate(lines, start=1)]


def validate(schema: Any, value: Any) -> Any:
    """Return the value; an error of one sentence if it does not fit the schema."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(schema).validate_python(value)
    except ValidationError as error:
        key, message, seen = first_error(error)
        raise ValueError(
            f"{key}: {message}, got {seen}" if key else f"{message}, got {seen}"
        ) from None


def first_error(error: ValidationError) -> tuple[str, str, str]:
    """Return which value is wrong, what is wrong with it, and the value, for a message."""
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    key = ".".join(str(part)[:80] for part in first["loc"])
    return key, message[:1].lower() + message[1:], shown(first["input"])


def _parse(content: bytes, schema: Any, name: str, advice: str = "") -> Any:
    try:
        value = json.loads(content)
        changed = isinstance(value, dict) and value.pop(SEAL, None) not in (None, _checksum(value))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is damaged: it is not JSON ({error}){advice}") from error
    if changed:
        raise ValueError(
            f"{name} is damaged: it was changed{advice} (if by yourself, remove its entry {SEAL})"
        )
    try:
        return validate(schema, value)
    except ValueError as error:
        raise ValueError(f"{name} is damaged: {error}{advice}") from error


def _checksum(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
