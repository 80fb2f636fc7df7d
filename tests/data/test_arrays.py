from __future__ import annotations

from pathlib import Path

import numpy as np

from eegnn.data.arrays import Arrays, cached


def build() -> Arrays:
    return {"nodes": np.arange(3), "x": np.linspace(0, 1, 6, dtype=np.float32).reshape(3, 2)}


def test_other_parameters_have_another_file(tmp_path: Path) -> None:
    for parameters in ({"k": 1}, {"k": 2}, {"k": 1}):
        cached(tmp_path, "arrays", parameters, build)
    assert len(list(tmp_path.rglob("*.npz"))) == 2


def test_damage_to_the_directory_of_a_file_hides_no_array(tmp_path: Path) -> None:
    truth = cached(tmp_path, "arrays", {}, build)
    (file,) = tmp_path.rglob("*.npz")
    content = file.read_bytes()
    for place in range(content.index(b"PK\x01\x02"), len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 128
        file.write_bytes(bytes(damaged))
        found = cached(tmp_path, "arrays", {}, build)
        assert found.keys() == truth.keys()
        assert all(np.array_equal(found[key], truth[key]) for key in truth)


def test_a_file_cut_short_is_made_anew(tmp_path: Path) -> None:
    cached(tmp_path, "arrays", {}, build)
    (file,) = tmp_path.rglob("*.npz")
    content = file.read_bytes()
    for length in range(0, len(content), 50):
        file.write_bytes(content[:length])
        cached(tmp_path, "arrays", {}, build)
        assert file.read_bytes() == content
    assert list(file.parent.iterdir()) == [file]
