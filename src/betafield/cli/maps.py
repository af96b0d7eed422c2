"""Answers about places on Earth as GeoJSON and GeoTIFF, for mapping software."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import betafield.cli.writing as writing
from betafield.cli.usage import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from betafield.cli.writing import Columns
    from betafield.estimators import SmoothBetaClassifier

    Floats = npt.NDArray[np.float64]

# Longitude and latitude on WGS 84.
SYSTEM = "EPSG:4326"


def form(geojson: bool, geotiff: bool, named: str | None, grid: int | None) -> str | None:
    """Return the requested format, a map or a table."""
    asked = [name for name, wanted in (("geojson", geojson), ("geotiff", geotiff)) if wanted]
    if len(asked) > 1 or (asked and named is not None):
        raise UsageError("--geojson, --geotiff, --format: one of them at the most is needed")
    if geotiff and grid is None:
        raise UsageError("--geotiff: a raster has its points on a grid, so --grid is needed")
    return asked[0] if asked else named


def columns(model: SmoothBetaClassifier, form: str) -> tuple[int, int]:
    """Return which features are longitude and latitude."""
    earth = model.field_.options.wraps(model.field_.features).earth
    if earth is None:
        raise UsageError(
            f"--{form}: this model has neither longitude nor latitude; fit it with --geographic"
        )
    if form == "geotiff" and model.n_features_in_ > 2:
        raise UsageError(
            f"--geotiff: this model has {model.n_features_in_} features; a raster has longitude "
            "and latitude alone"
        )
    return earth


def write(tables: Iterator[Columns], earth: tuple[int, int], out: str, form: str) -> None:
    """Write answers, whose first columns are the features."""
    if form == "geojson":
        _write_features(tables, earth, out)
    else:
        writing.write_whole(lambda path: _write_raster(tables, earth, path), out, ".tif")


def _write_features(tables: Iterator[Columns], earth: tuple[int, int], out: str) -> None:
    """Write one point per row, with its answers as properties (RFC 7946)."""
    first = next(tables)
    with writing.opened(out) as file:
        file.write(b'{"type": "FeatureCollection", "features": [')
        between = "\n"
        for table in _again(first, tables):
            for feature in _features(table, earth):
                text = json.dumps(feature, ensure_ascii=False, allow_nan=False)
                file.write(f"{between}{text}".encode())
                between = ",\n"
        file.write(b"\n]}\n")


def _again(first: Columns, more: Iterator[Columns]) -> Iterator[Columns]:
    yield first
    yield from more


def _features(table: Columns, earth: tuple[int, int]) -> Iterator[dict[str, Any]]:
    from betafield.earth import wrapped

    names = list(table)
    places = [table[names[a]] for a in earth]
    others = [name for i, name in enumerate(names) if i not in earth]
    points = zip(wrapped(places[0]).tolist(), places[1].tolist(), strict=True)
    rows = zip(*(table[name].tolist() for name in others), strict=True)
    for point, row in zip(points, rows, strict=True):
        geometry = {"type": "Point", "coordinates": list(point)}
        properties = dict(zip(others, row, strict=True))
        yield {"type": "Feature", "geometry": geometry, "properties": properties}


def _write_raster(tables: Iterator[Columns], earth: tuple[int, int], path: str) -> None:
    """Write one band per column, with one cell per point of the grid and north at the top."""
    import numpy as np

    from betafield._extras import needed

    rasterio = needed("geo", "rasterio", "rasterio.transform")
    each = list(tables)
    table = {name: np.concatenate([part[name] for part in each]) for name in each[0]}
    names = list(table)
    longitude, latitude = (np.unique(table[names[a]]) for a in earth)
    if min(len(longitude), len(latitude)) < 2:
        raise ValueError("--geotiff: all trials have one longitude or one latitude; use --geojson")
    order = np.lexsort((table[names[earth[0]]], -table[names[earth[1]]]))
    shape, bands = (len(latitude), len(longitude)), [n for n in names if n not in names[:2]]
    wide, high = np.diff(longitude).mean(), np.diff(latitude).mean()
    corner = longitude[0] - 0.5 * wide, latitude[-1] + 0.5 * high
    described = {
        "driver": "GTiff",
        "height": shape[0],
        "width": shape[1],
        "count": len(bands),
        "dtype": "float64",
        "crs": SYSTEM,
        "transform": rasterio.transform.from_origin(*corner, wide, high),
    }
    with rasterio.open(path, "w", **described) as raster:
        for i, name in enumerate(bands, start=1):
            raster.write(table[name][order].reshape(shape), i)
            raster.set_band_description(i, name)
