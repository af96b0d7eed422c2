"""Priors: the Beta shapes at each point before any trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.refusals import mistyped, refused

Floats = npt.NDArray[np.float64]
Field = float | Callable[[Floats], npt.ArrayLike]

# Shapes are numbers of imaginary trials: no more than can be counted, and no fewer than affect sums
# of floats.
LEAST, MOST = 2.0**-62, 2.0**62


@dataclass(frozen=True)
class Prior:
    """A prior that is given by its mean m(x) and its variance v(x).

    It is a callable X → (α, β), with ν = m(1 − m)/v − 1, α = mν, β = (1 − m)ν, and needs
    0 < m < 1 and 0 < v < m(1 − m).

    Examples
    --------
    Success is expected to fall from 0.9 to 0.1 along the feature, with a standard deviation of 0.1:

    >>> import numpy as np
    >>> prior = Prior.from_mean_variance(lambda X: 0.9 - 0.8 * X[:, 0], 0.01)
    >>> alpha, beta = prior(np.array([[0.0], [0.5]]))
    >>> alpha.round(6).tolist(), beta.round(6).tolist()
    ([7.2, 12.0], [0.8, 12.0])
    """

    mean: Field
    variance: Field

    @classmethod
    def from_mean_variance(cls, mean: Field, variance: Field) -> Prior:
        """Return the prior with this mean and variance, numbers or functions of X."""
        return cls(mean, variance)

    def __call__(self, X: Floats) -> tuple[Floats, Floats]:
        """Return α and β at the points X, of shape (m, d)."""
        m, v = _on("mean", self.mean, X), _on("variance", self.variance, X)
        with np.errstate(over="ignore"):  # for invalid means
            most = m * (1 - m)
        good = (m > 0) & (m < 1) & (v >= most / MOST) & (v < most)
        if not good.all():
            row = int(np.argmin(good))
            raise refused(
                "prior",
                f"found mean {m[row]:g} and variance {v[row]:g}; "
                "0 < mean < 1 and 0 < variance < mean (1 - mean) are needed",
                row=row,
            )
        size = most / v - 1
        return m * size, (1 - m) * size


def _on(name: str, field: Field, X: Floats) -> Floats:
    """Return one value per point of a number or a function."""
    rule = f"its {name} at {len(X)} points is a number or one number per point"
    values = checks.array("prior", field(X) if callable(field) else field, rule)
    if values.shape not in ((), (1,), (len(X),)):
        raise refused("prior", f"found shape {values.shape}; {rule}")
    return np.broadcast_to(values, len(X))


def shapes(prior: Any, X: Floats, n_classes: int) -> Floats:
    """Return the prior's Dirichlet shapes at X, one column per class in the classes' order.

    With two classes: (β, α), because success is the second. The result broadcasts against
    (m, n_classes).

    Examples
    --------
    >>> import numpy as np
    >>> shapes((2.0, 3.0), np.zeros((1, 1)), n_classes=2).tolist()
    [[3.0, 2.0]]
    """
    given = prior(X) if callable(prior) else prior
    columns = _columns(given, X, n_classes)
    if n_classes == 2:
        columns = columns[::-1]
    good = (columns >= LEAST) & (columns <= MOST)
    if not good.all():
        which, row = (int(i) for i in np.argwhere(~good)[0])
        raise refused(
            "prior",
            f"found a shape of {float(columns[which, row])!r}; "
            f"shapes must be positive and finite, from {LEAST:g} to {MOST:g}",
            row if callable(prior) else None,
        )
    return columns.T


def _columns(given: Any, X: Floats, n_classes: int) -> Floats:
    """Return the prior as (n_classes, m), or (n_classes, 1) if it is the same everywhere."""
    if isinstance(given, tuple) and [type(part) for part in given] == [float] * n_classes:
        return np.array(given)[:, None]  # the usual case, quick because it matters for one point
    rule = _wanted(n_classes)
    checks.refuse_masked("prior", given)
    if not (isinstance(given, tuple | list) or (isinstance(given, np.ndarray) and given.ndim)):
        raise mistyped("prior", f"found {checks.spelled(given)}; {rule}")
    parts = [np.atleast_1d(checks.array("prior", part, rule)) for part in given]
    try:
        columns = np.stack(np.broadcast_arrays(*parts))
    except ValueError as error:
        raise refused("prior", f"found {checks.spelled(given)}; {rule}") from error
    if n_classes > 2 and len(columns) == 2 and np.array_equal(*columns):
        columns = np.repeat(columns[:1], n_classes, axis=0)
    if columns.ndim != 2 or len(columns) != n_classes or columns.shape[1] not in (1, len(X)):
        raise refused(
            "prior", f"found shapes {[part.shape for part in parts]} for {len(X)} points; {rule}"
        )
    return columns


def _wanted(n_classes: int) -> str:
    what = "(alpha, beta)" if n_classes == 2 else f"{n_classes} values, one per class"
    return f"{what} is needed, each a number or one number per point"
