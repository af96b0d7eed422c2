"""The posterior at points that are queried after every trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from betafield.methods import AnyField
    from betafield.posteriors import Posterior
    from betafield.windows import Forest, Standing

Floats = npt.NDArray[np.float64]


class StandingPoints:
    """Points to query repeatedly, keeping from one trial to the next what can be reused.

    Parameters
    ----------
    rows : array of shape (m, d)

    Examples
    --------
    >>> from betafield import SmoothBetaClassifier
    >>> model = SmoothBetaClassifier(0.5).fit([[0.0], [1.0]], [0, 1])
    >>> StandingPoints(np.array([[0.0], [1.0]])).posterior(model.field_)
    Beta(alpha=[1., 2.], beta=[2., 1.])
    """

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self._asked: Standing | None = None

    def posterior(self, field: AnyField) -> Posterior:
        """Return `field.posterior(rows)`."""
        return field.posterior(self.rows, self._sums)

    def _sums(self, windows: Forest, queries: Floats, width: float) -> npt.NDArray[np.int64]:
        """Return sums over windows, reusing earlier ones if the queries are the same."""
        from betafield.windows import Standing

        if self._asked is None or not np.array_equal(self._asked.queries, queries):
            self._asked = Standing(queries)
        return self._asked.sums(windows, width)
