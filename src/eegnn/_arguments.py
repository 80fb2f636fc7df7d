"""Checks of the arguments of a model by their types, before anything is built."""

from __future__ import annotations

from dataclasses import Field, fields
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from eegnn import _check

#: The largest integers that arguments may be, by how their names end. A file from elsewhere may
#: hold any.
MOST = {"layers": 1000, "channels": 2**20, "dim": 2**20, "": 10_000}


def check_arguments(model: Any) -> None:
    """Check the fields of a dataclass.

    A ``bool`` is True or False, a ``Literal`` one of its values, an ``int`` at least 1, or what
    ``metadata`` of its field has as ``"at_least"``, and at most :data:`MOST`. A ``float`` whose
    name ends in ``dropout`` lies in [0, 1]. ``None`` is accepted where the type has it. Other types
    are left to the class.
    """
    kind: Any = type(model)
    for field, hint in _fields(kind):
        _check_argument(field, hint, getattr(model, field.name))


def _check_argument(field: Field[Any], hint: Any, value: Any) -> None:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    optional = NoneType in get_args(hint)
    kind = kinds[0] if optional and len(kinds) == 1 else hint
    name = field.name
    if get_origin(kind) is Literal:
        _check.choice(name, value, (None,) * optional + get_args(kind))
    elif value is None and optional:
        return
    elif kind is bool:
        _check.boolean(name, value)
    elif kind is int:
        most = next(most for ending, most in MOST.items() if name.endswith(ending))
        _check.integer(name, value, field.metadata.get("at_least", 1), most)
    elif name.endswith("dropout"):
        _check.number(name, value, 0, 1)


@cache
def _fields(kind: Any) -> list[tuple[Field[Any], Any]]:
    """Return the fields of a dataclass with their types."""
    hints = get_type_hints(kind)
    return [(field, hints[field.name]) for field in fields(kind)]
