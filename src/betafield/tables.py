"""Any dataframe or column, as NumPy."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np


def native(table: Any) -> Any:
    """Return a dataframe or a series of any library as a NumPy array, anything else as it is."""
    if isinstance(table, np.ndarray | list | tuple | int | float):
        return table  # what is no table need not be asked: it counts for one point
    data = nw.from_native(table, pass_through=True, allow_series=True)
    if isinstance(data, nw.LazyFrame):
        raise TypeError("found a lazy frame; call its .collect() first")
    return data.to_numpy() if isinstance(data, nw.DataFrame | nw.Series) else table
