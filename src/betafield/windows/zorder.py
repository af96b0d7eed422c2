"""An order in which nearby points tend to be neighbours: the z-order (Morton) curve.

A point's code interleaves the bits of its grid coordinates, the first axis highest. Points that
share the first b bits of their codes form one cell of a kd-tree that halves the axes in turn, so
sorting by code builds that tree.

The grid has one step for all axes, so its cells are cubes. It is aligned to powers of two: sets of
points with about the same extent get the same grid, so their codes can be compared, and joining
them merges sorted runs.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel
from betafield.windows.base import Floats

Codes = npt.NDArray[np.uint64]
CODE_BITS = 64
BYTE = 8
# Smaller extents count as zero.
TINY = 1e-280


def codes(axes: Floats) -> Codes:
    """Return the z-order code of each point, given by axes of shape (d, t).

    Examples
    --------
    >>> import numpy as np
    >>> corners = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]])
    >>> [int(code) for code in np.argsort(codes(corners))]
    [0, 1, 2, 3]
    """
    d, t = axes.shape
    out = np.zeros(t, dtype=np.uint64)
    if t == 0:
        return out
    low, high = axes.min(axis=1), axes.max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        extent = float(np.max(high - low))
    # A single point has one code. If the extent, or the number of cells per unit, overflows, one
    # cell for all is correct, though slow.
    if extent > TINY and np.isfinite(2.0 * extent):
        side = 2.0 ** np.ceil(np.log2(extent))
        bits = max(1, CODE_BITS // max(d, 2))
        origin = np.floor(low / side) * side
        cells = 2.0**bits / (2.0 * side)
        spread = _spread(min(d, CODE_BITS), bits)
        _interleave(np.ascontiguousarray(axes[:CODE_BITS]), origin, cells, bits, spread, out)
    return out


def _bits16(x: Floats) -> npt.NDArray[np.uint16]:
    """Return sixteen bits per point on a line, in the same order; all 0 if one is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> [int(bits) for bits in _bits16(np.array([2.0, 1.0, 3.0]))]
    [32767, 0, 65535]
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        low = x.min(initial=np.inf)
        scale = 65_535.0 / (x.max(initial=-np.inf) - low)
        if not np.isfinite(scale):
            return np.zeros(len(x), dtype=np.uint16)
        return np.asarray((x - low) * scale).astype(np.uint16)


def visiting_order(axes: Floats) -> npt.NDArray[np.intp]:
    """Return an order of the points along the curve, to a resolution of 2⁻¹⁶ of their extent.

    Sixteen bits are precise enough to share a cache, and NumPy sorts them in linear time.
    """
    if len(axes) == 1:
        return np.argsort(_bits16(axes[0]), kind="stable")
    code = codes(axes)
    differ = int(np.bitwise_or.reduce(code ^ code[:1]))
    shift = max(0, differ.bit_length() - 16)
    return np.argsort((code >> np.uint64(shift)).astype(np.uint16), kind="stable")


@functools.cache
def _spread(d: int, bits: int) -> Codes:
    """Return, for each byte, its bits spaced d apart, for as many bits as a coordinate has."""
    table = np.zeros(1 << BYTE, dtype=np.uint64)
    byte = np.arange(1 << BYTE, dtype=np.uint64)
    for bit in range(min(BYTE, bits)):
        table |= ((byte >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * d)
    return table


@kernel
def _interleave(
    axes: Floats, origin: Floats, cells: float, bits: int, spread: Codes, out: Codes
) -> None:
    d, t = axes.shape
    last = 2.0**bits - 1.0
    for k in range(d):
        lift = np.uint64(d - 1 - k)
        for i in range(t):
            place = (axes[k, i] - origin[k]) * cells
            place = place if place > 0.0 else 0.0
            cell = np.uint64(place if place < last else last)
            for byte in range(0, bits, BYTE):
                part = spread[(cell >> np.uint64(byte)) & np.uint64(255)]
                out[i] |= part << np.uint64(byte * d) + lift
