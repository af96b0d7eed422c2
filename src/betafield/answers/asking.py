"""What an estimator is asked about the whole field: one mixin, a method per question."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import cautions, checks
from betafield.learned import Learned

Floats = npt.NDArray[np.float64]


class Answers(Learned):
    """An estimator that can be asked about the field as a whole."""

    def draws(self, X: Any, size: int = 2000, random_state: Any = None) -> Floats:
        """Return fields drawn from the joint posterior, at each row of X.

        Each draw is a whole field, equally likely: whatever is computed from every draw, such as an
        average, a difference or where a level is crossed, has the posterior of that number. The
        same seed gives the same fields at any points, asked together or apart, in any order.

        With a process, hyper-parameters are drawn too, and draws are weighed against the exact
        likelihood of the trials; with four features and more, or hundreds of levels, neither is,
        and draws have the law of `posterior`. With windows, each point's law is that of
        `posterior`, and points are correlated as far as windows reach.

        Parameters
        ----------
        X : array or dataframe of shape (m, d)
            Where to know the fields.
        size : int, default=2000
            Number of fields.
        random_state : int, numpy Generator or RandomState, default=None
            The seed; None: other fields each time.

        Returns
        -------
        array of shape (size, m), or (size, m, n_classes) with three classes and more
            The success probability of every field at every row.

        Examples
        --------
        The chance that success is likelier at 0.8 than at 0.2:

        >>> import numpy as np
        >>> from betafield import SmoothBetaClassifier
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(200, 1))
        >>> model = SmoothBetaClassifier().fit(X, rng.uniform(size=200) < X[:, 0])
        >>> low, high = model.draws([[0.2], [0.8]], random_state=0).T
        >>> float((high > low).mean().round(2))
        1.0
        """
        from betafield.answers import draws
        from betafield.process.noise import Seed

        size = checks.whole("size", size, low=1, rule="a whole number from 1 on is needed")
        seed = Seed.of(checks.generator("random_state", random_state))
        field, points = self.asked(X)
        cautions.at_points(field, points)
        return draws.fields(field, size, seed).at(points)
