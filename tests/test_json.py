from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from eegnn import _json


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_json_cannot_write_is_null(value: float) -> None:
    text = _json.to_json({"a": [1.5, value], "b": {"c": (value,)}})
    assert json.loads(text, parse_constant=pytest.fail) == {"a": [1.5, None], "b": {"c": [None]}}


def test_a_sealed_file_is_read_without_its_checksum(tmp_path: Path) -> None:
    content = {"b": 1, "a": [0.1, None, "é"], "numbers": {"2": 1, "10": 2}}
    (tmp_path / "a.json").write_bytes(_json.to_file(content))
    assert _json.read(tmp_path / "a.json", dict[str, Any]) == content


def test_every_flipped_bit_of_a_sealed_file_is_found_or_harmless(tmp_path: Path) -> None:
    content, path = {"split": 0, "score": 0.8125, "name": "cora"}, tmp_path / "a.json"
    written = _json.to_file(content)
    for position in range(8 * len(written)):
        damaged = bytearray(written)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        with suppress(ValueError):
            found = _json.read(path, dict[str, Any])
            # The name of the checksum itself was changed, or a blank.
            assert {name: found[name] for name in content} == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is damaged: it is not JSON"),
        (b"[" * 100_000, r"is damaged: it is not JSON"),
        (b"\xff", r"is damaged: it is not JSON"),
        (b"[1, 2]", r"is damaged: input should be a valid dictionary, got \[1, 2\]"),
        (b'{"a": "b"}', r"is damaged: a: input should be a valid integer.*, got 'b'"),
    ],
)
def test_what_does_not_fit_is_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        _json.read(path, dict[str, int], advice="; remove it")
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).endswith("; remove it")
    assert "\n" not in str(caught.value)


def test_long_values_are_cut(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"x" * 10_000: "y" * 10_000}))
    with pytest.raises(ValueError, match="is damaged") as caught:
        _json.read(tmp_path / "a.json", dict[str, int])
    assert len(str(caught.value)) < 1000


def test_a_line_is_named_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": null}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2, is damaged: a: "):
        _json.read_lines(tmp_path / "a.jsonl", dict[str, int])
