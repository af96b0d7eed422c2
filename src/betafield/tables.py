"""Dataframes and columns of any library as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import narwhals as nw


def native(table: Any) -> Any:
    """Return a dataframe or a series of any library as a NumPy array, anything else as it is."""
    if isinstance(table, np.ndarray | list | tuple | int | float):
        return table  # skips the import; this matters for the time of a single query
    import narwhals as nw

    data = nw.from_native(table, pass_through=True, allow_series=True)
    if isinstance(data, nw.LazyFrame):
        raise TypeError("found a lazy frame; call its .collect() first")
    if isinstance(data, nw.DataFrame):
        return _rows(data)
    return data.to_numpy() if isinstance(data, nw.Series) else table


def _rows(data: nw.DataFrame[Any]) -> Any:
    """Return a dataframe as one array, of objects if dates might otherwise become numbers."""
    if not any(dtype.is_temporal() for dtype in data.schema.values()):
        return data.to_numpy()
    columns = [np.array(each.to_list(), dtype=object) for each in data.iter_columns()]
    return np.stack(columns, axis=1)
