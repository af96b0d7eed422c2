"""The posterior at points that are asked for after every trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from betafield.posteriors import Posterior
    from betafield.windows import Standing

Floats = npt.NDArray[np.float64]


class StandingPoints:
    """Points whose posterior is the model's, with what can be kept from one trial to the next.

    Parameters
    ----------
    rows : array of shape (m, d)

    Examples
    --------
    >>> from betafield import SmoothBetaClassifier
    >>> model = SmoothBetaClassifier(0.5).fit([[0.0], [1.0]], [0, 1])
    >>> StandingPoints(np.array([[0.0], [1.0]])).posterior(model)
    Beta(alpha=[1., 2.], beta=[2., 1.])
    """

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self._asked: Standing | None = None

    def posterior(self, model: Any) -> Posterior:
        """Return `model.posterior(rows)`."""
        now = model._now()
        if len(now.weights_) > 1 or now._is_local():
            return now.posterior(self.rows)  # type: ignore[no-any-return]
        (record,) = now.weights_
        asked = self._standing(now._units_.scaled(self.rows) * record["relevance"])
        sums = asked.sums(now._windows_for(record["relevance"]), float(record["width"]))
        return now._reading().posterior(sums, now._shapes(self.rows))  # type: ignore[no-any-return]

    def _standing(self, queries: Floats) -> Standing:
        """Return what asks for these queries, as it did before if they are the same."""
        from betafield.windows import Standing

        if self._asked is None or not np.array_equal(self._asked.queries, queries):
            self._asked = Standing(queries)
        return self._asked
