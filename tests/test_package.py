import re
import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import eegnn

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def lowest(requirements: list[str]) -> dict[str, Version]:
    found: dict[str, Version] = {}
    for requirement in map(Requirement, requirements):
        for bound in requirement.specifier:
            if bound.operator in (">=", "=="):
                found[canonicalize_name(requirement.name)] = Version(bound.version)
    return found


def test_the_lowest_versions_that_are_tried_are_the_declared_ones() -> None:
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    tried = lowest([line for line in lines if not line.startswith("#")])
    extras = list(chain.from_iterable(PROJECT["optional-dependencies"].values()))
    declared = lowest(PROJECT["dependencies"])
    assert set(declared) <= set(tried)
    declared |= lowest(extras)
    assert tried == {name: declared[name] for name in tried}


def test_the_citation_names_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == eegnn.__version__  # type: ignore[index]
