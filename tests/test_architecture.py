from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import eegnn

ROOT = Path(eegnn.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))

# Lower layers first; a module may import from its own layer and from those before it.
LAYERS = [
    {
        "__version__",
        "_arguments",
        "_check",
        "_edge_list",
        "_edge_values",
        "_json",
        "_linear",
        "_sparse_linear",
        "_spmm",
        "_tracing",
        "compute",
        "distributed",
    },
    {"graph", "_graph_cache", "subgraph", "source"},
    {"typing"},
    {"nn"},
    {"engine"},
    {"zoo"},
    {"io", "export"},
    {"data"},
    {"train"},
    {"analysis"},
    {"studies", "bench", "report", "serve"},
    {"experiments", "hub"},
    {"cli", "__main__"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
#: The one import upwards: the module asks the engine how to run the loop, when it is called.
LAZY = ("eegnn.nn.program", "eegnn.engine")
HEAVY = ("optuna", "plotly", "matplotlib", "typer", "rich", "huggingface_hub", "fastapi")


def part(module: str) -> str:
    """`eegnn.nn.sas_conv` → `nn`; the package itself → `__init__`."""
    return [*module.split("."), "__init__"][1]


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_imports(path: Path) -> Iterator[str]:
    """Every module of this package that a file imports, wherever in the file that is."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = dotted(path).split(".")
                if path.name != "__init__.py":
                    package = package[:-1]
                above = package[: len(package) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            names = [f"eegnn.{alias.name}" for alias in node.names] if base == "eegnn" else [base]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "eegnn")


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_dependencies_point_one_way(path: Path) -> None:
    own = part(dotted(path))
    if own == "__init__":
        return  # the front page gathers what users import
    assert own in RANK, f"{dotted(path)} has no place in the architecture"
    for imported in package_imports(path):
        if (dotted(path), imported) == LAZY:
            continue
        other = part(imported)
        assert other in RANK, f"{dotted(path)} imports {imported}, which has no place"
        assert RANK[other] <= RANK[own], f"{dotted(path)} imports upwards: {imported}"


def test_the_front_page_imports_no_layer_above_the_models() -> None:
    assert {part(name) for name in package_imports(ROOT / "__init__.py")} <= {"graph", "nn", "io"}


def test_modules_do_not_import_each_other_in_circles() -> None:
    graph = {dotted(path): set(package_imports(path)) for path in MODULES}
    graph[LAZY[0]].remove(LAZY[1])
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " → ".join((*trail, module))
        if module not in done:
            for other in graph.get(module, ()):
                visit(other, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def loaded_modules(statement: str) -> set[str]:
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_importing_the_package_loads_no_tools_for_tuning_plots_or_the_command_line() -> None:
    own = loaded_modules("from eegnn import *")  # every public name, should they come lazily
    assert "eegnn.nn.eegnn" in own
    heavy = {name for name in HEAVY if name in own}
    if heavy:  # then PyG must have brought it
        heavy -= loaded_modules("import torch_geometric.nn")
    assert heavy == set()


def test_users_import_what_the_design_lists() -> None:
    assert sorted(eegnn.__all__) == sorted(
        ["Adjacency", "SASConv", "SASGNN", "EarlyExit", "EEGNN", "Exits", "load", "save"]
    )
    for name in eegnn.__all__:
        assert getattr(eegnn, name).__name__ == name


def test_the_package_is_typed() -> None:
    assert (ROOT / "py.typed").is_file()


def public_definitions(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Public classes and functions, and public methods of public classes."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, kinds) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, kinds) and not inner.name.startswith("_"):
                        yield f"{node.name}.{inner.name}", inner


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_what_is_public_is_documented(path: Path) -> None:
    tree = ast.parse(path.read_text())
    if tree.body:
        assert ast.get_docstring(tree), f"{dotted(path)} has no docstring"
    undocumented = [
        name
        for name, node in public_definitions(path)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not ast.get_docstring(node)
    ]
    assert undocumented == []
