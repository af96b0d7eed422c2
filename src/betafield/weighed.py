"""The components of a field as a table, `weights_`, and the reach of the heaviest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from betafield.trials import Features

if TYPE_CHECKING:
    from betafield.process.found import Found
    from betafield.process.model import Smooth

Floats = npt.NDArray[np.float64]
Records = npt.NDArray[Any]


def records(smooth: Smooth, found: Found, features: Features) -> Records:
    """Return the components of a field as a table, without those used only at new places."""
    d = features.number
    names = [f"column {a}" for a in range(d)] if features.names is None else features.names
    kinds = [
        ("part", "U7"),
        ("link", "U13"),
        ("units", "U64"),
        ("levels", "U64"),
        ("form", "U9"),
        ("length_scales", np.float64, (d,)),
        ("stretch", np.float64, (d,)),
        ("width", np.float64),
        ("tau", np.float64),
        ("weight", np.float64),
    ]
    nothing = (np.full(d, np.nan), np.nan, np.nan)
    rest = 1.0 - sum(window.weight for window in smooth.windows)
    rows: list[tuple[Any, ...]] = []
    step = max(len(smooth.nodes), 1)  # a process with nodes for unknown rates is one row
    every = zip(smooth.fits[::step], smooth.by_component, found.components[::step], strict=True)
    for fit, share, one in every:
        levels = "" if one.effect is None else [*names, "groups"][one.effect]
        if features.categories.columns:
            levels = ", ".join(str(names[a]) for a in features.categories.columns)
        lengths = np.full(d, np.nan)
        lengths[features.numeric] = fit.lengths
        told = ("process", one.link, _units(one.scale), levels, one.form, lengths)
        rows.append((*told, *nothing, rest * share))
    first = _units(found.components[0].scale)
    for window in smooth.windows:
        stretch, apart = np.full(d, np.nan), stretched_apart(window.stretch, features)
        stretch[features.numeric] = window.stretch[: len(features.numeric)]
        levels = ", ".join(str(names[a]) for a in apart)
        rows.append(("windows", "logit", first, levels, "", nothing[0], stretch, *window[1:4]))
    table = np.array([row for row in rows if row[-1] > 0.0], dtype=kinds)
    return table[np.argsort(-table["weight"], kind="stable")]


def share_of(form: str, smooth: Smooth, found: Found) -> float:
    """Return the share of processes of this form."""
    components = found.components[:: max(len(smooth.nodes), 1)]
    return float(smooth.by_component @ [one.form == form for one in components])


def stretched_apart(stretch: Floats, features: Features) -> tuple[int, ...]:
    """Return the category columns whose levels are kept apart by windows with this stretch."""
    known, levels = features.categories, stretch[len(features.numeric) :]
    combined = [*((a,) for a in known.columns), *known.interactions]
    held = (combined[k] for k in np.flatnonzero(levels > 0.0).tolist())
    return tuple(sorted({a for each in held for a in each}))


def _units(scale: tuple[str, ...]) -> str:
    return ", ".join(scale) or "range"


def scales(smooth: Smooth, found: Found, features: Features) -> list[dict[str, float]]:
    """Return the weight of each unit in which processes measure a feature, one dict per feature.

    Units are "range", "rank", "log", "period", "longitude" and "latitude"; categories have
    "levels".
    The weights of a feature add up to 1, and the heaviest comes first.
    """
    each: list[dict[str, float]] = [{} for _ in range(features.number)]
    step = max(len(smooth.nodes), 1)
    for share, one in zip(smooth.by_component, found.components[::step], strict=True):
        for k, a in enumerate(features.numeric):
            kind = one.scale[k] if one.scale else "range"
            each[a][kind or "range"] = each[a].get(kind or "range", 0.0) + float(share)
    for a in features.categories.columns:
        each[a] = {"levels": 1.0}
    return [dict(sorted(one.items(), key=lambda item: (-item[1], item[0]))) for one in each]


def reach(smooth: Smooth) -> Floats:
    """Return the length scales about the middle of the box, in the features' own units."""
    box = smooth.boxes[int(np.argmax(smooth.weights))]
    half = np.diag(0.5 * smooth.lengths)
    low, high = (box.outside(np.clip(0.5 + sign * half, 0.0, 1.0)) for sign in (-1.0, 1.0))
    return np.asarray(np.diag(high - low) * np.maximum(smooth.lengths, 1.0))
