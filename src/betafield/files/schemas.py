"""Checks of the columns that files have, before the first row is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from betafield.categories import columns_of
from betafield.files.columns import Roles, value_kind
from betafield.files.pieces import File
from betafield.files.text import CSV
from betafield.refusals import refused

# The most names that a message lists.
LISTED = 12


def with_features(
    roles: Roles, files: list[File], schemas: list[Any], named: tuple[str, ...] = ()
) -> Roles:
    """Return the roles with all other columns as features; raise if there is any doubt.

    A column of text is not a feature, unless it is named as a category.
    """
    first = schemas[0]
    for file, schema in zip(files, schemas, strict=True):
        odd = set(schema.names) ^ set(first.names)
        if odd:
            raise refused(
                "features",
                f"{files[0].name} and {file.name} do not have the same columns "
                f"({spelled(sorted(odd))}); name those that are features",
            )
    names = tuple(name for name in first.names if name not in roles.all)
    for name in dict.fromkeys(names):
        kind = value_kind(first.field(name).type) if names.count(name) == 1 else "two of that name"
        if name.startswith("__index_level_"):
            kind = "the index of a pandas dataframe"
        if kind not in ("numbers", "booleans", "nothing") and name not in named:
            raise refused(
                "features",
                f"{files[0].name}, column {name!r}: found {kind}; name the columns "
                "that are features",
            )
    if not names:
        raise refused("features", f"{files[0].name} has no other columns; at least one is needed")
    if callable(roles.context):
        raise refused(
            "features", "name them where context is a function, whose columns may be none of them"
        )
    return Roles(names, **{k: v for k, v in vars(roles).items() if k != "features"})


def with_categories(roles: Roles, files: list[File], schemas: list[Any], asked: Any) -> Roles:
    """Return the roles with the features that are categories, as in `categorical_features`.

    Selected by type, these are columns of text in all files. Text in only one of several files,
    or a word among numbers, is taken for a mistake, unless the column is named.
    """
    if asked is None:
        return roles
    if isinstance(asked, str):
        each = list(zip(files, schemas, strict=True))
        found = [name for name in roles.features if all(_is_text(*one, name) for one in each)]
        return dataclasses.replace(roles, categories=tuple(found), worded=tuple(found))
    chosen = columns_of(asked, None, roles.features, len(roles.features))
    found = [roles.features[i] for i in chosen]
    return dataclasses.replace(roles, categories=tuple(found))


def _is_text(file: File, schema: Any, name: str) -> bool:
    """Return whether a column is text, as far as the file shows."""
    if schema.names.count(name) != 1 or value_kind(schema.field(name).type) != "text":
        return False
    return not (isinstance(file, CSV) and file.is_numeric(name))


def check(file: File, schema: Any, roles: Roles) -> None:
    """Raise for the first column that is missing, duplicated, or of the wrong kind."""
    for name in roles.all:
        times = schema.names.count(name)
        if times != 1:
            what = "has no column" if not times else f"has {times} columns"
            raise ValueError(
                f"{file.name}: {what} {name!r} for {roles.argument(name)}; "
                f"it has {spelled(schema.names)}"
            )
        if isinstance(file, CSV):  # whose values are checked one by one
            continue
        kind = value_kind(schema.field(name).type)
        is_label = name in (*roles.labels, *roles.categories)
        allowed = ("numbers", "booleans", *(["text"] if is_label else []))
        if kind not in (*allowed, "nothing"):
            raise ValueError(
                f"{file.name}, column {name!r}: found {kind}; {' or '.join(allowed)} are needed "
                f"for {roles.argument(name)}"
            )


def spelled(names: Sequence[str]) -> str:
    """Return names as listed in a message, only the first ones if there are many."""
    more = [f"and {len(names) - LISTED} more"] if len(names) > LISTED else []
    return ", ".join([*map(repr, names[:LISTED]), *more]) or "none"
