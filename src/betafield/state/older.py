"""Models from files of version 1, written by earlier releases.

Their places were stretched by learned relevances, and windows of several widths and degrees were
weighed. Windows whose width was given or follows from theory are unchanged. A default model without
contexts is fitted again from its places, which are converted back to the features' own units; with
contexts, for which only likelihoods were kept, it becomes windows of the width that predicts best.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from betafield.evidence.encode import Counted
from betafield.field import Field
from betafield.methods import AnyField
from betafield.options import Options
from betafield.persistence import Arrays
from betafield.plain import fields_of, require
from betafield.smooth import SmoothField
from betafield.state.common import restored_options
from betafield.state.windows import VALUES as WINDOWS
from betafield.state.windows import Learned, as_field, learned
from betafield.sums import Sums
from betafield.windows import Places

VALUES = (*(name for name in WINDOWS if name not in ("kind", "categories")), "chosen")
# The smallest relevance of a feature.
LEAST = 4.0**-5


def restored(values: Any, arrays: Arrays) -> AnyField:
    """Return the field in a file of version 1."""
    fields = fields_of("values", values, VALUES)
    options = restored_options(fields["options"])
    others = ("weights.", "chosen.")
    kept = {name: each for name, each in arrays.items() if not name.startswith(others)}
    found = learned(fields, kept)
    stretch = _relevance(arrays, found.features.number)
    unstretched = found._replace(
        built=[_divided(part, stretch) for part in found.built],
        waiting=[_divided(part, stretch) for part in found.waiting],
    )
    return _in_use(options, unstretched)


def _relevance(arrays: Arrays, d: int) -> Any:
    """Return the factors by which places were stretched: powers of 1/4."""
    every = arrays.get("weights.relevance", np.empty(0))
    is_shaped = every.ndim == 2 and every.shape[1] == d and len(every)
    require(is_shaped, "weights.relevance", every.shape, f"(windows, {d})")
    first = every[0]
    is_sound = first.dtype == np.float64 and np.all((first >= LEAST) & (first <= 1.0))
    require(is_sound, "weights.relevance", first.tolist(), f"{LEAST} to 1")
    return first


def _divided(part: Places, stretch: Any) -> Places:
    return part._replace(axes=part.axes / stretch[:, None])


def _in_use(options: Options, found: Learned) -> AnyField:
    if not options.is_smooth:
        return as_field(options, found)
    if found.seen.distorted:
        return as_field(options._replace(method="windows"), found)
    field = as_field(options, found)
    sums = Sums(found.features.number, len(found.classes))
    for part in field.places():
        sums = sums.plus(_summed(field, part))
    empty = SmoothField(options, found.features, found.classes, sums)
    return dataclasses.replace(empty, sums=dataclasses.replace(sums, totals=found.seen))


def _summed(field: Field, part: Places) -> Sums:
    """Return the trials at places, in the features' own units."""
    points = field.units.restored(part.axes)
    if field.options.bounds is not None:
        points = points.clip(*field.bounds.T)
    return Sums.of(points, len(field.classes), Counted(None, part.counts, None, field.totals))
