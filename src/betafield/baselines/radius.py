"""RadiusNeighbors: the share of successes in the window, without prior or posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from betafield import bandwidth as widths
from betafield import checks, trials
from betafield.baselines.base import Floats, Labels, TwoClasses, both

if TYPE_CHECKING:
    from betafield.windows import Forest


class RadiusNeighbors(TwoClasses):
    """The share of successes among the trials near a point.

    Fixed-radius nearest neighbours: with n trials within Δ of x, S of them successes,

        P(success at x) = S/n, and 1/2 if there is no trial.

    It has no posterior: it is equally certain after one trial and after a thousand.

    Parameters
    ----------
    bandwidth : float or "theory", default="theory"
        Δ, in the features' units. "theory": L^(−2/(d+2)) t^(−1/(d+2)).
    lipschitz : float, default=1.0
        L, how fast π may change, in the features' units; for "theory".

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
    bandwidth_ : float
        Δ in use.
    windows_ : Forest
        The sums of the trials, by place.

    Examples
    --------
    >>> from betafield.baselines import RadiusNeighbors
    >>> model = RadiusNeighbors(bandwidth=0.1).fit([[0.1], [0.15], [0.2], [0.9]], [1, 0, 1, 1])
    >>> model.predict_proba([[0.15], [0.5]])[:, 1].round(3).tolist()
    [0.667, 0.5]
    """

    n_trials_: int
    bandwidth_: float
    windows_: Forest

    def __init__(self, bandwidth: float | str = "theory", *, lipschitz: float = 1.0) -> None:
        self.bandwidth = bandwidth
        self.lipschitz = lipschitz

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from trials at X, of shape (t, d), with outcomes y. Forgets earlier trials."""
        from betafield.windows import Forest, Places

        self._check_options()
        seen = self._observed(X, y)
        t, d = seen.points.shape
        self._note(seen)
        self.bandwidth_ = self._width(t, d)
        # A copy, because the arrays of places belong to the windows.
        places = Places(seen.points.T.copy(), np.stack([~seen.success, seen.success]))
        self.windows_ = Forest(d).insert(places)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return the share of each class near each row of X, of shape (m, 2)."""
        check_is_fitted(self)
        points = trials.points(self, X, reset=False)
        held = self.windows_.sums(points, self.bandwidth_)
        n, S = held.sum(axis=1), held[:, 1]
        return both(np.where(n > 0, S / np.maximum(n, 1), 0.5))

    def predict(self, X: Any) -> Labels:
        """Return the class with the largest share; the first one in case of a tie."""
        return self._chosen(self.predict_proba(X))

    def _check_options(self) -> None:
        if not self._is_by_theory:
            rule = "allowed are a positive number and 'theory'"
            checks.positive("bandwidth", self.bandwidth, rule)
        checks.positive("lipschitz", self.lipschitz)

    @property
    def _is_by_theory(self) -> bool:
        return isinstance(self.bandwidth, str) and self.bandwidth == "theory"

    def _width(self, t: int, d: int) -> float:
        if self._is_by_theory:
            return widths.theory(t, d, float(self.lipschitz))
        return float(self.bandwidth)
