"""How to reproduce the model and the page."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

import betafield.report.words as words
from betafield.plain import native_value
from betafield.report.blocks import Block, Code, Section, Table, Text, say
from betafield.report.subject import Subject

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "plotly", "jinja2")


class Asked(NamedTuple):
    """The arguments of the page."""

    title: str | None
    level: float
    lipschitz: float | None
    command: str | None
    source: str | None
    above: float | None = None


def section(field: Subject, asked: Asked) -> Section:
    """Return the command, code, versions and a fingerprint of the trials."""
    blocks: list[Block] = []
    if asked.command is not None:
        blocks.append(Code("The command", asked.command))
    blocks.append(Code("In Python", code(field, asked)))
    if callable(field.model.prior):
        blocks.append(Text(Markup("The prior was a function, which a page cannot hold.")))
    blocks.append(_made_with(field, asked))
    return Section("reproduce", "How to reproduce this", blocks)


def code(field: Subject, asked: Asked) -> str:
    """Return Python code that makes the same model and page, given the same trials.

    Every parameter is written with `repr`, so no name can end a line or a string early.
    """
    source = "" if asked.source is None else f"# The trials: {asked.source!a}\n"
    return (
        f"from betafield import SmoothBetaClassifier, report\n\n{source}"
        f"{_columns(field)}model = {constructor(field.model)}\n{_learning(field)}\n"
        f"report.write({', '.join(['model', repr('report.html'), *_options(asked)])})\n"
    )


def constructor(model: Any) -> str:
    """Return the call that makes the model, with all parameters that are not defaults.

    Examples
    --------
    >>> from betafield import SmoothBetaClassifier
    >>> constructor(SmoothBetaClassifier(0.5, bounds=np.array([[0.0, 1.0]])))
    'SmoothBetaClassifier(bandwidth=0.5, bounds=[[0.0, 1.0]])'
    """
    usual = type(model)().get_params()
    given = {k: native_value(v) for k, v in model.get_params().items()}
    told = [f"{k}={_written(v)}" for k, v in given.items() if not _same(v, usual[k])]
    return f"{type(model).__name__}({', '.join(told)})"


def _same(value: Any, usual: Any) -> bool:
    return type(value) is type(usual) and bool(value == usual)


def _written(value: Any) -> str:
    return "..." if callable(value) else ascii(value)


def _columns(field: Subject) -> str:
    if not hasattr(field.model, "feature_names_in_"):
        return f"# X has {words.counted(len(field.names), 'column')}.\n"
    return f"features = {list(field.names)!a}\n"


def _learning(field: Subject) -> str:
    """Return the line that fits the model."""
    X = "trials[features]" if hasattr(field.model, "feature_names_in_") else "X"
    extra = ", context=context" if field.distorted else ""
    classes = ascii(field.model.classes_.tolist())
    return f"model.fit({X}, y{extra})  # y holds {classes}"


def _options(asked: Asked) -> list[str]:
    usual = Asked(None, 0.95, None, None, None)
    named = zip(asked._fields, asked, usual, strict=True)
    return [f"{k}={value!a}" for k, value, normal in named if value != normal]


def _made_with(field: Subject, asked: Asked) -> Table:
    import betafield

    rows: list[list[Any]] = [] if asked.source is None else [["Trials from", asked.source]]
    rows += [
        ["Fingerprint of the trials (SHA-256)", say("<code>{}</code>", fingerprint(field))],
        ["betafield", betafield.__version__],
        ["Python", platform.python_version()],
        *([package, version(package)] for package in PACKAGES),
    ]
    return Table(Markup("Made with"), ["what", "which"], rows, numeric=9)


def fingerprint(field: Subject) -> str:
    """Return a SHA-256 of names, classes, places and trials: equal for equal trials."""
    digest = hashlib.sha256()
    digest.update(ascii([field.names, field.model.classes_.tolist()]).encode())
    order, counts = np.argsort(field.model.field_.classes), field.seen.counts
    by_class = None if counts is None else counts[:, order]
    for values in (field.seen.points, field.seen.trials, by_class):
        if values is not None:
            digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
    return digest.hexdigest()
