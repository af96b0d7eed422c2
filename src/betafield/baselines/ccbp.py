"""ContinuousCorrelatedBeta: a fixed kernel in place of a window that shrinks with the trials."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from betafield import checks, priors, trials
from betafield.baselines.base import Floats, Labels, TwoClasses, blocks, both
from betafield.posteriors import Beta


class ContinuousCorrelatedBeta(TwoClasses):
    """Beta posteriors from trials weighted by a fixed squared-exponential kernel.

    The Continuous Correlated Beta Process of Goetschalckx, Poupart and Hoey (2011): at x, a trial
    at x_i has the weight

        K(x, x_i) = exp(−‖x − x_i‖² / 2ℓ²),

    and π̃(x) ~ Beta(α(x) + Σ_i K s_i, β(x) + Σ_i K (1 − s_i)). The kernel does not narrow as
    trials come in, so the posterior concentrates on π smoothed by K rather than on π.
    A query costs O(t).

    Parameters
    ----------
    length_scale : float, default=0.1
        ℓ, in the features' units.
    prior : (alpha, beta), callable or Prior, default=(1.0, 1.0)
        Shapes of the prior, the same everywhere or X → (α, β) with one value per row of X.

    Attributes
    ----------
    classes_ : array
        The two classes, sorted; the second is the success.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Their names, if X had names.
    n_trials_ : int
        Trials seen, t.

    Examples
    --------
    A success at the query, and a failure at the distance at which it counts for half:

    >>> import numpy as np
    >>> from betafield.baselines import ContinuousCorrelatedBeta
    >>> model = ContinuousCorrelatedBeta(length_scale=1.0)
    >>> model.fit([[0.0], [np.sqrt(2 * np.log(2))]], [1, 0]).posterior([[0.0]])
    Beta(alpha=[2.], beta=[1.5])
    """

    n_trials_: int
    _points_: Floats
    _counts_: Floats

    def __init__(self, length_scale: float = 0.1, *, prior: Any = (1.0, 1.0)) -> None:
        self.length_scale = length_scale
        self.prior = prior

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from trials at X, of shape (t, d), with outcomes y. Forgets earlier trials."""
        checks.positive("length_scale", self.length_scale)
        seen = self._observed(X, y)
        if not callable(self.prior):
            priors.shapes(self.prior, seen.points, n_classes=2)
        self._note(seen)
        self._points_ = seen.points.copy()
        self._counts_ = np.stack([~seen.success, seen.success], axis=1).astype(np.float64)
        return self

    def posterior(self, X: Any) -> Beta:
        """Return the posterior of the success probability at each row of X."""
        check_is_fitted(self)
        points = trials.points(self, X, reset=False)
        shapes = priors.shapes(self.prior, points, n_classes=2) + self._near(points)
        return Beta(shapes[:, 1], shapes[:, 0])

    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior mean of each class's probability, of shape (m, 2)."""
        return both(self.posterior(X).mean())

    def predict(self, X: Any) -> Labels:
        """Return the class with the highest posterior mean; the first one in case of a tie."""
        return self._chosen(self.predict_proba(X))

    def _near(self, points: Floats) -> Floats:
        """Return Σ K (1 − s) and Σ K s, of shape (m, 2)."""
        sums = np.empty((len(points), 2))
        for block in blocks(len(points), self.n_trials_):
            sums[block] = self._kernel(points[block]) @ self._counts_
        return sums

    def _kernel(self, points: Floats) -> Floats:
        """Return K for all pairs of points and trials, in the memory of one such array."""
        K: Floats = cdist(points, self._points_)
        with np.errstate(over="ignore", under="ignore"):  # K is then 0, which is right
            K /= float(self.length_scale)
            np.square(K, out=K)
            K *= -0.5
            np.exp(K, out=K)
        return K
