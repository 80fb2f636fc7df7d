"""Damaged and hostile files of every kind: refused by name, or as good as the whole ones.

A bit that flips in a table of one's own is a table with another number, which nobody can know: for
such files a case is good if what was read is a valid problem. Files that the library writes for
itself have checksums, and whatever is read from a damaged one must be what was written.
"""

from __future__ import annotations

import io
import json
import pickle
import random
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as to_safetensors

from eegnn import EEGNN, load, save
from eegnn.analysis.calibrate import Calibration, read_calibration, write_calibration
from eegnn.analysis.exit_rule import Curve, Point
from eegnn.data.arrays import cached
from eegnn.data.files import read_problem
from eegnn.report.card import run_card
from eegnn.report.page_run import learning_curves
from eegnn.train.recipes import read_recipe
from eegnn.train.results import append_result, read_results
from eegnn.train.run import RunFolder
from tests.torture import data
from tests.torture.harness import Report, Wrong, check_sentence, run_cases
from tests.train.problems import NOISY, bits, new_run, node_problem, resumed_run


class Bomb:
    """What a pickle could do; the harness would notice a subprocess."""

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.system, ("touch /tmp/eegnn-was-executed",)


@dataclass(frozen=True)
class Kind:
    """A kind of file: where it is in the folder of :func:`material`, and how it is read."""

    path: str
    read: Callable[[Path], Any]
    exact: bool = True  #: whether what is read must be what was written


def _state(folder: Path) -> Any:
    return bits(RunFolder(folder / "run").state())


def _resume(folder: Path) -> Any:
    """What a resumed run goes on with."""
    trainer = resumed_run(folder / "run", node_problem())
    return bits(trainer.model.state_dict()), bits(trainer.optimizer.state_dict())


def _problem(name: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        graph = read_problem(folder / name).graphs[0]
        n = graph.x.size(0)
        valid = bool(graph.x.isfinite().all()) and graph.edge_index.size(0) == 2
        if graph.edge_index.numel():
            valid &= int(graph.edge_index.min()) >= 0 and int(graph.edge_index.max()) < n
        if not valid or len(graph.y) != n:
            raise Wrong(f"{name} is no valid problem: {graph}")
        return bits(graph.to_dict())

    return read


def _cache(folder: Path) -> Any:
    built = cached(folder, "cache", {"k": 1}, lambda: {"columns": np.arange(12.0)})
    return built["columns"].tolist()


def _edges(folder: Path) -> Any:
    from eegnn.data.files import read_graphs

    (graph,) = read_graphs(folder / "list.edges")
    return bits(graph.to_dict())


KINDS: dict[str, Kind] = {
    "config.json": Kind("run/config.json", lambda f: RunFolder(f / "run").config().model_dump()),
    "config.json, resumed": Kind("run/config.json", _resume),
    "metrics.jsonl": Kind("run/metrics.jsonl", lambda f: learning_curves(RunFolder(f / "run"))),
    "metrics.jsonl, resumed": Kind("run/metrics.jsonl", _resume),
    "summary.json": Kind("run/summary.json", lambda f: run_card(f / "run")),
    "model.json": Kind(
        "run/model.json", lambda f: bits(load(f / "run/model.safetensors").state_dict())
    ),
    "model.safetensors": Kind(
        "run/model.safetensors", lambda f: bits(load(f / "run/model.safetensors").state_dict())
    ),
    "state.pt": Kind("run/state.pt", _state),
    "state.pt, resumed": Kind("run/state.pt", _resume),
    "calibration.json": Kind("run/calibration.json", lambda f: read_calibration(f / "run")),
    "results.jsonl": Kind("results.jsonl", lambda f: read_results(f / "results.jsonl")),
    "recipe.toml": Kind("recipe.toml", lambda f: read_recipe(f / "recipe.toml"), exact=False),
    "recipe.json": Kind("recipe.json", lambda f: read_recipe(f / "recipe.json"), exact=False),
    "graph.npz": Kind("graph.npz", _problem("graph.npz")),
    "graph.x.npy": Kind("mapped.x.npy", _problem("mapped.npz"), exact=False),
    "graph.pt": Kind("graph.pt", _problem("graph.pt"), exact=False),
    "graph.graphml": Kind("graph.graphml", _problem("graph.graphml"), exact=False),
    "nodes.csv": Kind("csv/nodes.csv", _problem("csv"), exact=False),
    "edges.csv": Kind("csv/edges.csv", _problem("csv"), exact=False),
    "nodes.parquet": Kind("parquet/nodes.parquet", _problem("parquet"), exact=False),
    "list.edges": Kind("list.edges", _edges, exact=False),
    "cache": Kind("cache/*.npz", _cache),
}


@cache
def material() -> Path:
    """A folder with a file of each kind."""
    folder = Path(tempfile.mkdtemp(prefix="eegnn-torture-"))
    run = folder / "run"
    new_run(run, node_problem(), epochs=3, **NOISY).fit()
    points = tuple(Point(t, None, c, s) for t, c, s in ((None, 0.5, 0.8), (0.9, 0.6, 0.9)))
    curve = Curve("roc_auc", points, points[0], points[1])
    write_calibration(run, Calibration("roc_auc", 4, _weights(run), curve, curve, ()))
    append_result(folder / "results.jsonl", RunFolder(run), "eegnn train")
    append_result(folder / "results.jsonl", RunFolder(run), "eegnn train again")
    (folder / "recipe.toml").write_text("lr = 0.01\nepochs = 10\n[options]\ndropout = 0.2\n")
    (folder / "recipe.json").write_text(json.dumps({"config": {"lr": 0.01, "model": "gcn"}}))
    nodes, edges = data.random_tables(random.Random(0))
    for name, write in data.WRITERS.items():
        place = folder / name if name in ("csv", "parquet") else folder
        place.mkdir(exist_ok=True)
        write(place, nodes, edges)
    arrays = data.arrays_of(nodes, edges)
    np.save(folder / "mapped.x.npy", arrays.pop("x"))
    np.savez(folder / "mapped.npz", **arrays)
    ends = zip(edges["source"], edges["target"], strict=True)
    (folder / "list.edges").write_text("".join(f"{u} {v}\n" for u, v in ends))
    _cache(folder)
    return folder


def _weights(run: Path) -> str:
    from eegnn.analysis.calibrate import _checksum

    return _checksum(run)


@cache
def whole(kind: str) -> Any:
    """What is read from the file that is not damaged."""
    return KINDS[kind].read(material())


def damaged(rng: random.Random, content: bytes, name: str) -> bytes:
    """Damage bytes in one of many ways, or replace them by those of something hostile."""
    how = rng.choice(list(DAMAGE))
    if how == "json" and name.endswith((".json", ".jsonl")):
        return _json_damage(rng, content, rng.random() < 0.5)
    if how == "hostile":
        return rng.choice(hostile())
    return DAMAGE[how](rng, bytearray(content))


def _block(rng: random.Random, content: bytearray) -> slice:
    start = rng.randrange(len(content) + 1)
    return slice(start, start + rng.choice([1, 4, 16, 100, 5000]))


def _replace(make: Callable[[random.Random, bytes], bytes]) -> Any:
    def damage(rng: random.Random, content: bytearray) -> bytes:
        where = _block(rng, content)
        content[where] = make(rng, bytes(content[where]))
        return bytes(content)

    return damage


def _flip(rng: random.Random, content: bytearray) -> bytes:
    for _ in range(rng.choice([1, 1, 1, 3, 20])):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


DAMAGE: dict[str, Any] = {
    "cut": lambda rng, content: bytes(content[: rng.randrange(len(content))]),
    "flip": _flip,
    "flip again": _flip,
    "zeros": _replace(lambda rng, old: bytes(len(old))),
    "random": _replace(lambda rng, old: rng.randbytes(len(old))),
    "removed": _replace(lambda rng, old: b""),
    "inserted": _replace(lambda rng, old: rng.randbytes(rng.choice([1, 10, 1000])) + old),
    "twice": _replace(lambda rng, old: old + old),
    "appended": lambda rng, content: bytes(content) + rng.randbytes(rng.choice([1, 100])),
    "digit": lambda rng, content: bytes(content).replace(
        str(rng.randrange(10)).encode(), str(rng.randrange(10)).encode(), 1
    ),
    "json": _flip,
    "hostile": None,
}
#: What stands where another value was.
VALUES: list[Any] = [None, [], {}, "", "x" * 10_000, -1, 0, 10**30, 1.5, True, float("nan")]
VALUES += [1e308, [[[[]]]], {"a": {"b": 1}}, "../../etc/passwd", "__import__('os')"]


def _json_damage(rng: random.Random, content: bytes, forged: bool) -> bytes:
    """Change a value somewhere in a JSON object, remove it, or add one.

    Who forges a file knows what the checksum is for, and removes it.
    """
    lines = content.splitlines() if content.count(b"\n{") else [content]
    index = rng.randrange(len(lines))
    value = json.loads(lines[index])
    if forged:
        value.pop("sha256", None)
    place, key = value, rng.choice(list(value))
    while isinstance(place[key], dict) and place[key] and rng.random() < 0.7:
        place = place[key]
        key = rng.choice(list(place))
    how = rng.random()
    if how < 0.6:
        place[key] = rng.choice(VALUES)
    elif how < 0.8:
        del place[key]
    else:
        place[rng.choice(["x" * 10_000, "", "format", "options"])] = rng.choice(VALUES)
    lines[index] = json.dumps(value).encode()
    return b"\n".join(lines) + b"\n"


@cache
def hostile() -> list[bytes]:
    """Files that execute something when unpickled, or that are far larger than they look."""
    made = [b"", b"\0" * 100, b"null", b"[]", b"{}", b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe"]
    made += [pickle.dumps(Bomb()), b"\x80\x05" + pickle.dumps(Bomb(), protocol=0)]
    buffer = io.BytesIO()
    torch.save({"state": Bomb(), "sha256": "0"}, buffer)
    made.append(buffer.getvalue())
    made += [_deflated(buffer.getvalue()), _legacy_bomb()]
    objects = io.BytesIO()
    np.savez(objects, x=np.array([Bomb()], dtype=object))
    made.append(objects.getvalue())
    large = io.BytesIO()
    with zipfile.ZipFile(large, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f8", "fortran_order": False, "shape": (9 * 2**24, 1)}
        )
        with archive.open("x.npy", "w", force_zip64=True) as file:
            file.write(header.getvalue())
            for _ in range(9 * 2**27 // 2**24):
                file.write(bytes(2**24))
    made.append(large.getvalue())
    made += [to_safetensors({}), to_safetensors({"a": torch.arange(3)})]
    made += [_safetensors_header(text) for text in (b"[" * 10_000, b"{}", b'{"a": 3}')]
    laughs = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
    made.append(f'<!DOCTYPE g [<!ENTITY l0 "lol">{laughs}]><graphml>&l9;</graphml>'.encode())
    made.append(b"0 99999999999999\n1 2\n")
    made.append(b"source,target,f\n" + b"9" * 5000 + b",1,2\n")
    expanded = io.BytesIO()
    tensors = {"x": torch.zeros(1, 1).expand(10**6, 10**6), "edge_index": torch.zeros(2, 1).long()}
    torch.save(tensors, expanded)
    made.append(expanded.getvalue())
    made.append(_forged_model({"decoder_layers": 10**9}))
    return made


def _legacy_bomb() -> bytes:
    buffer = io.BytesIO()
    torch.save({"a": Bomb()}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def _deflated(content: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w", 8) as new:
        for part in old.infolist():
            new.writestr(part.filename, old.read(part))
        new.writestr("archive/data/99", bytes(2**27))
    return made.getvalue()


def _safetensors_header(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text


def _forged_model(changes: dict[str, Any]) -> bytes:
    """The description of a model that would be enormous."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save(EEGNN(3, 8, 2, 5), path)
        about = json.loads(path.with_suffix(".json").read_text())
    about["config"] |= changes
    return json.dumps(about).encode()


def case(rng: random.Random, report: Report) -> str:
    kind = rng.choice(list(KINDS))
    expected = whole(kind)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(shutil.copytree(material(), Path(temporary) / "copy"))
        (file,) = folder.glob(KINDS[kind].path)
        before = file.read_bytes()
        file.write_bytes(damaged(rng, before, file.name))
        try:
            found = KINDS[kind].read(folder)
        except Exception as error:
            check_sentence(error, file.name, str(file.parent))
            return f"refused: {kind}"
        forged = file.read_bytes().count(b'"sha256"') < before.count(b'"sha256"')
        if KINDS[kind].exact and not forged and not _agree(kind, found, expected):
            raise Wrong(f"{kind}: another result from a damaged file: {str(found)[:300]}")
        return f"read: {kind}"


def _agree(kind: str, found: Any, expected: Any) -> bool:
    """Whether it is what was written, or what a file without its last lines would hold.

    A calibration of other weights is none; by design it is made again.
    """
    if kind == "results.jsonl":
        return found == expected[: len(found)]
    return found == expected or (kind == "calibration.json" and found is None)


def run(seed: int, numbers: range) -> Report:
    for kind in KINDS:
        whole(kind)
    hostile()
    try:
        return run_cases("files", seed, numbers, case)
    finally:
        shutil.rmtree(material())
        material.cache_clear()
        if Path("/tmp/eegnn-was-executed").exists():
            raise Wrong("a pickle was executed")
